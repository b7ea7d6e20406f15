// Binary searches with random keys in a sorted array that fits the second-level cache. Each step is a coin
// toss, and whether a branch or a select is faster depends on what the processor mispredicts.
//
// Arguments: thousands of numbers, log2 of the number of searches, repetitions.
#include "../../common/sample.h"

KERNEL static uint64_t search(const uint32_t* sorted, uint32_t count, const uint32_t* keys, uint32_t searches,
                              uint64_t sum) {
  for (uint32_t i = 0; i < searches; ++i) {
    uint32_t low = 0, high = count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (sorted[middle] < keys[i]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    sum += low;
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t count = 1000 * argument(argc, argv, 1, 100);
  const uint32_t searches = 1u << argument(argc, argv, 2, 18);
  const uint32_t repetitions = argument(argc, argv, 3, 130);

  uint32_t* sorted = allocate(count, sizeof *sorted);
  uint32_t* keys = allocate(searches, sizeof *keys);
  uint64_t seed = 33;
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; ++i) sorted[i] = value += 1 + random_below(&seed, 63);
  for (uint32_t i = 0; i < searches; ++i) keys[i] = random_below(&seed, value);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r)
    checksum = mix(r, search(sorted, count, keys, searches, checksum));
  return report("binary_search", checksum);
}
