// A selection over a column in random row order: keep the rows whose value is under a limit. Whether a row is
// kept is known only when its value has arrived, so every second miss ends in a mispredicted branch.
//
// Arguments: log2 of the column's length, log2 of the list's length, repetitions.
#include "../../common/sample.h"

enum { kKeptBits = 14, kKeptMask = (1 << kKeptBits) - 1 };

KERNEL static uint32_t select_rows(const uint32_t* column, const uint32_t* rows, uint32_t count,
                                   uint32_t limit, uint32_t* kept) {
  uint32_t kept_count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t row = rows[i];
    if (column[row] < limit) kept[kept_count++ & kKeptMask] = row;
  }
  return kept_count;
}

int main(int argc, char** argv) {
  const uint32_t column_length = 1u << argument(argc, argv, 1, 26);
  const uint32_t row_count = 1u << argument(argc, argv, 2, 23);
  const uint32_t repetitions = argument(argc, argv, 3, 16);

  uint32_t* column = allocate(column_length, sizeof *column);
  uint32_t* rows = allocate(row_count, sizeof *rows);
  uint32_t* kept = allocate(kKeptMask + 1, sizeof *kept);
  for (uint32_t i = 0; i < column_length; ++i) column[i] = scatter(i, 32);
  uint64_t seed = 2;
  for (uint32_t i = 0; i < row_count; ++i) rows[i] = random_below(&seed, column_length);
  memset(kept, 0, (kKeptMask + 1) * sizeof *kept);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    // Limits around the middle: half of the rows are kept, and which half changes a little each time.
    const uint32_t limit = 0x78000000u + (r % 16) * 0x01000000u;
    checksum = mix(checksum, select_rows(column, rows, row_count, limit, kept));
    checksum = mix(checksum, kept[r & kKeptMask]);
  }
  return report("gather_branch", checksum);
}
