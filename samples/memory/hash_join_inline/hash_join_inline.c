// A hash join whose buckets are one cache line each, with up to seven entries inside. A probe is one miss,
// then a scan whose length (and so its last branch) nobody can predict.
//
// Arguments: log2 of the number of buckets, log2 of the number of probe rows, repetitions.
#include "../../common/sample.h"

enum { kEntries = 7 };

typedef struct {
  uint32_t count;
  uint32_t keys[kEntries];
  uint32_t payloads[kEntries];
  uint32_t unused;
} Bucket;

static inline uint32_t bucket_of(uint32_t key, uint32_t shift) {
  return (key * 0x9e3779b1u) >> shift;
}

KERNEL static void build(Bucket* buckets, uint32_t shift, uint32_t rows) {
  const uint32_t mask = 0xffffffffu >> shift;
  for (uint32_t i = 0; i < rows; ++i) {
    const uint32_t key = scatter(i, 32);
    uint32_t at = bucket_of(key, shift);
    while (buckets[at].count == kEntries) at = (at + 1) & mask;  // a full bucket spills into its neighbour
    Bucket* bucket = &buckets[at];
    bucket->keys[bucket->count] = key;
    bucket->payloads[bucket->count] = i;
    bucket->count++;
  }
}

KERNEL static uint64_t probe(const Bucket* buckets, uint32_t shift, const uint32_t* keys, uint32_t count,
                             uint64_t sum) {
  const uint32_t mask = 0xffffffffu >> shift;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t key = keys[i];
    uint32_t at = bucket_of(key, shift);
    for (;;) {
      const Bucket* bucket = &buckets[at];
      const uint32_t entries = bucket->count;
      uint32_t e = 0;
      while (e < entries && bucket->keys[e] != key) ++e;
      if (e < entries) {
        sum += bucket->payloads[e];
        break;
      }
      if (entries < kEntries) break;  // it did not spill: the key is nowhere
      at = (at + 1) & mask;
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t bucket_bits = argument(argc, argv, 1, 22);
  const uint32_t probe_count = 1u << argument(argc, argv, 2, 22);
  const uint32_t repetitions = argument(argc, argv, 3, 16);

  const uint32_t bucket_count = 1u << bucket_bits;
  Bucket* buckets = allocate(bucket_count, sizeof *buckets);
  memset(buckets, 0, bucket_count * sizeof *buckets);
  const uint32_t rows = bucket_count * 3;  // 3 of 7 entries in use on average
  build(buckets, 32 - bucket_bits, rows);

  uint32_t* keys = allocate(probe_count, sizeof *keys);
  uint64_t seed = 7;
  for (uint32_t i = 0; i < probe_count; ++i) keys[i] = scatter(random_below(&seed, rows + rows / 3), 32);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    checksum = mix(r, probe(buckets, 32 - bucket_bits, keys, probe_count, checksum));
  }
  return report("hash_join_inline", checksum);
}
