// A column of 16 KB read through a list of row numbers, with a digest of what comes out: the shape of the gathers in suite
// memory, on data that never leaves the first-level cache. A prefetch here is work for nothing.
//
// Arguments: log2 of the column's length, log2 of the list's length, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t gather(const uint32_t* column, const uint32_t* rows, uint32_t count, uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value = column[rows[i]];
    value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
    sum = mix(sum, value);
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t column_length = 1u << argument(argc, argv, 1, 12);
  const uint32_t row_count = 1u << argument(argc, argv, 2, 11);
  const uint32_t repetitions = argument(argc, argv, 3, 600000);

  uint32_t* column = allocate(column_length, sizeof *column);
  uint32_t* rows = allocate(row_count, sizeof *rows);
  for (uint32_t i = 0; i < column_length; ++i) column[i] = i * 2654435761u;
  uint64_t seed = 50;
  for (uint32_t i = 0; i < row_count; ++i) rows[i] = random_below(&seed, column_length);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = gather(column, rows, row_count, mix(r, checksum));
  return report("gather_cached", checksum);
}
