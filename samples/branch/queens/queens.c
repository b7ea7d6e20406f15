// All ways to place n queens on a board, by backtracking over three attacked sets kept as bits: recursion and
// short data-dependent loops.
//
// Arguments: the board's size, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t place(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
  if (columns == all) return 1;
  uint64_t solutions = 0;
  for (uint32_t open = all & ~(columns | left | right); open != 0;) {
    const uint32_t queen = open & -open;
    open ^= queen;
    solutions += place(all, columns | queen, (left | queen) << 1, (right | queen) >> 1);
  }
  return solutions;
}

int main(int argc, char** argv) {
  const uint32_t size = argument(argc, argv, 1, 14);
  const uint32_t repetitions = argument(argc, argv, 2, 60);
  uint64_t checksum = 0;
  // Each repetition blocks another corner, so each is another search.
  for (uint32_t r = 0; r < repetitions; ++r) {
    checksum = mix(checksum, place((1u << size) - 1, 0, 1u << (r % size), 0));
  }
  return report("queens", checksum);
}
