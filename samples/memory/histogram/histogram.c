// Counting keys into a histogram larger than any cache, as the ranking step of an integer sort does (NAS IS).
//
// Arguments: log2 of the number of counters, log2 of the number of keys, repetitions.
#include "../../common/sample.h"

KERNEL static void count_keys(uint32_t* counters, const uint32_t* keys, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) counters[keys[i]]++;
}

int main(int argc, char** argv) {
  const uint32_t counter_count = 1u << argument(argc, argv, 1, 26);
  const uint32_t key_count = 1u << argument(argc, argv, 2, 24);
  const uint32_t repetitions = argument(argc, argv, 3, 16);

  uint32_t* counters = allocate(counter_count, sizeof *counters);
  uint32_t* keys = allocate(key_count, sizeof *keys);
  memset(counters, 0, counter_count * sizeof *counters);
  uint64_t seed = 4;
  for (uint32_t i = 0; i < key_count; ++i) keys[i] = random_below(&seed, counter_count);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    keys[r % key_count] = scatter(r, 16) % counter_count;  // a new key each time, as the benchmark does
    count_keys(counters, keys, key_count);
    checksum = mix(checksum, counters[keys[(r * 7919u) % key_count]]);
  }
  for (uint32_t i = 0; i < counter_count; i += counter_count / 4096) checksum = mix(checksum, counters[i]);
  return report("histogram", checksum);
}
