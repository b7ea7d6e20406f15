// A branch that is a coin toss around a long chain of arithmetic. It is mispredicted every second time, and worth
// having all the same. What it skips takes longer than a misprediction, so computing both sides and choosing is slower.
//
// Arguments: log2 of the number of items, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t visit(const uint32_t* items, uint32_t count, uint64_t state) {
  for (uint32_t i = 0; i < count; ++i) {
    state += items[i];
    if (items[i] & 0x10000) {
#pragma clang loop unroll(full)
      for (int step = 0; step < 8; ++step) {
        state ^= state >> 29;
        state *= 0x9e3779b97f4a7c15u;
      }
    }
  }
  return state;
}

int main(int argc, char** argv) {
  const uint32_t count = 1u << argument(argc, argv, 1, 16);
  const uint32_t repetitions = argument(argc, argv, 2, 4000);

  uint32_t* items = allocate(count, sizeof *items);
  uint64_t seed = 55;
  for (uint32_t i = 0; i < count; ++i) items[i] = (uint32_t)next_random(&seed);
  uint64_t checksum = 1;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(r, visit(items, count, checksum));
  return report("branch_even", checksum);
}
