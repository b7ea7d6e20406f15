// A loop around a branch that goes one way 99 times in 100, at random. The predictor is right but for the hundredth time,
// and what the branch skips is worth skipping. Computing both sides and choosing is slower; laying out what hardly ever
// runs behind the rest is not.
//
// Arguments: log2 of the number of items, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t visit(const uint32_t* items, uint32_t count, uint64_t state) {
  for (uint32_t i = 0; i < count; ++i) {
    state += items[i];
    if (items[i] % 128 == 0) {  // once in a hundred
      state ^= state >> 13;
      state *= 0x9e3779b97f4a7c15u;
      state ^= state >> 31;
    }
  }
  return state;
}

int main(int argc, char** argv) {
  const uint32_t count = 1u << argument(argc, argv, 1, 12);
  const uint32_t repetitions = argument(argc, argv, 2, 1500000);

  uint32_t* items = allocate(count, sizeof *items);
  uint64_t seed = 51;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t value = (uint32_t)next_random(&seed) & 0xffffff80u;
    items[i] = random_below(&seed, 100) == 0 ? value : value | (1 + random_below(&seed, 127));
  }
  uint64_t checksum = 1;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(r, visit(items, count, checksum));
  return report("branch_biased", checksum);
}
