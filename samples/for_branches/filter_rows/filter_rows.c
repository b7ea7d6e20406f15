// Scans a column and keeps the numbers of the rows that pass a comparison, half of them and in no order. Each row
// is a coin toss in front of a store.
//
// Arguments: thousands of rows, repetitions.
#include "../../common/sample.h"

KERNEL static uint32_t filter(const uint32_t* column, uint32_t rows, uint32_t limit, uint32_t* kept) {
  uint32_t count = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (column[row] < limit) kept[count++] = row;
  }
  return count;
}

int main(int argc, char** argv) {
  const uint32_t rows = 1000 * argument(argc, argv, 1, 50);
  const uint32_t repetitions = argument(argc, argv, 2, 30000);

  uint32_t* column = allocate(rows, sizeof *column);
  uint32_t* kept = allocate(rows, sizeof *kept);
  uint64_t seed = 34;
  for (uint32_t i = 0; i < rows; ++i) column[i] = (uint32_t)next_random(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    const uint32_t limit = 0x70000000u + random_below(&seed, 0x20000000u);
    const uint32_t count = filter(column, rows, limit, kept);
    checksum = mix(mix(checksum, count), kept[count / 2]);
  }
  return report("filter_rows", checksum);
}
