// Packs the chosen rows of a table side by side, as a query's result or a message is put together. How long a row is, the
// program is told when it starts, so that each is a memcpy of a length that no compiler knows.
//
// Arguments: bytes a row, thousands of rows, repetitions.
#include "../../common/sample.h"

KERNEL static uint32_t pack(uint8_t* to, const uint8_t* table, uint32_t row_bytes, const uint32_t* chosen,
                            uint32_t count) {
  uint8_t* out = to;
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(out, table + (size_t)chosen[i] * row_bytes, row_bytes);
    out += row_bytes;
  }
  return (uint32_t)(out - to);
}

int main(int argc, char** argv) {
  const uint32_t row_bytes = argument(argc, argv, 1, 40);
  const uint32_t rows = 1000 * argument(argc, argv, 2, 8);
  const uint32_t repetitions = argument(argc, argv, 3, 40000);

  uint8_t* table = allocate(rows, row_bytes);
  uint64_t seed = 8;
  for (size_t i = 0; i < (size_t)rows * row_bytes; ++i) table[i] = (uint8_t)next_random(&seed);
  const uint32_t count = rows / 2;
  uint32_t* chosen = allocate(count, sizeof *chosen);
  for (uint32_t i = 0; i < count; ++i) chosen[i] = random_below(&seed, rows);
  uint8_t* packed = allocate(count, row_bytes);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    const uint32_t bytes = pack(packed, table, row_bytes, chosen, count);
    checksum = mix(mix(checksum, bytes), packed[(size_t)(checksum % bytes)]);
    chosen[r % count] = (uint32_t)(checksum % rows);
    table[checksum % bytes] ^= (uint8_t)r;
  }
  return report("pack_records", checksum);
}
