// The textbook hash join: build rows hang in chains of two on average, each probe walks one chain. Two
// dependent misses and an unpredictable chain length for every probe.
//
// Arguments: log2 of the number of build rows, log2 of the number of probe rows, repetitions.
#include "../../common/sample.h"

typedef struct Row {
  struct Row* next;
  uint32_t key;
  uint32_t payload;
} Row;

static inline uint32_t bucket_of(uint32_t key, uint32_t shift) {
  return (key * 0x9e3779b1u) >> shift;
}

KERNEL static void build(Row** buckets, uint32_t shift, Row* rows, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Row** head = &buckets[bucket_of(rows[i].key, shift)];
    rows[i].next = *head;
    *head = &rows[i];
  }
}

KERNEL static uint64_t probe(Row* const* buckets, uint32_t shift, const uint32_t* keys, uint32_t count,
                             uint64_t sum) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t key = keys[i];
    for (const Row* row = buckets[bucket_of(key, shift)]; row != NULL; row = row->next) {
      if (row->key == key) sum += row->payload;
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t row_bits = argument(argc, argv, 1, 24);
  const uint32_t row_count = 1u << row_bits;
  const uint32_t probe_count = 1u << argument(argc, argv, 2, 22);
  const uint32_t repetitions = argument(argc, argv, 3, 7);

  const uint32_t bucket_bits = row_bits - 1;
  Row** buckets = allocate((size_t)1 << bucket_bits, sizeof *buckets);
  memset(buckets, 0, ((size_t)1 << bucket_bits) * sizeof *buckets);
  Row* rows = allocate(row_count, sizeof *rows);
  for (uint32_t i = 0; i < row_count; ++i) {
    rows[i].key = scatter(i, 32);
    rows[i].payload = i;
  }
  build(buckets, 32 - bucket_bits, rows, row_count);

  uint32_t* keys = allocate(probe_count, sizeof *keys);
  uint64_t seed = 6;
  // Every fourth probe finds nothing, as a join with a filtered table does.
  for (uint32_t i = 0; i < probe_count; ++i) {
    keys[i] = scatter(random_below(&seed, row_count + row_count / 3), 32);
  }

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    checksum = mix(r, probe(buckets, 32 - bucket_bits, keys, probe_count, checksum));
  }
  return report("hash_join_chained", checksum);
}
