// A column read through a list of row numbers, with a given amount of work on each value. This is the shape of
// a database's late materialization, of feature look-ups and of sparse codes. Included by the gather_w*
// programs, which name themselves and their WORK: how many dependent integer operations follow each missing
// load. With work, what comes out goes into a digest in which order counts, as fingerprints, joins and
// encoders have it. Such a loop stays scalar whatever the machine's vectors. Without work it is a plain sum.
// (gather_hash is the sibling whose work can be vectorized.)
//
// Arguments: log2 of the column's length, log2 of the list's length, repetitions.
#include "../common/sample.h"

// WORK operations that wait for the loaded value: groups of four (shift, xor, multiply, add).
static inline uint32_t work_on(uint32_t value) {
#pragma clang loop unroll(full)
  for (uint32_t group = 0; group < WORK / 4; ++group) {
    value = (value ^ (value >> 15)) * (0x2c1b3c6du + 2 * group) + 0x297a2d39u;
  }
  return value;
}

KERNEL static uint64_t gather(const uint32_t* column, const uint32_t* rows, uint32_t count, uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t value = work_on(column[rows[i]]);
    sum = WORK != 0 ? mix(sum, value) : sum + value;
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t column_length = 1u << argument(argc, argv, 1, 26);
  const uint32_t row_count = 1u << argument(argc, argv, 2, 23);
  const uint32_t repetitions = argument(argc, argv, 3, 6);

  uint32_t* column = allocate(column_length, sizeof *column);
  uint32_t* rows = allocate(row_count, sizeof *rows);
  for (uint32_t i = 0; i < column_length; ++i) column[i] = i * 2654435761u;
  uint64_t seed = 1;
  for (uint32_t i = 0; i < row_count; ++i) rows[i] = random_below(&seed, column_length);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(r, gather(column, rows, row_count, checksum));
  return report(NAME, checksum);
}
