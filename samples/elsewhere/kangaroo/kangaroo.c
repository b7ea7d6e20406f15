// Keys that hop through hashed buckets from table to table. It is after Kangaroo, one of the programs that Vector
// Runahead was measured with (Naithani, Ainsworth, Jones, Eeckhout, ISCA 2021). We know descriptions of it, not its
// source. A bucket holds up to seven entries of tag and value. The value that is found under a key is the key in the
// next table. The entry at the end of the way counts who came. Some keys are missing in a table: these ways end early.
//
// Arguments: log2 of the buckets of each table, log2 of the keys, passes.
#include "../../common/sample.h"

#define HOPS 3
#define SLOTS 7
#define NOT_FOUND ((entry_t *)0)

typedef struct entry {
  uint16_t tag;
  uint16_t visits;
  uint32_t value;
} entry_t;

typedef struct bucket {
  uint32_t used;
  uint32_t dropped;
  entry_t entries[SLOTS];
} bucket_t;

typedef struct {
  uint32_t shift;
  uint64_t multiplier;
  bucket_t *buckets;
} hash_table_t;

static inline entry_t *find(hash_table_t *t, uint32_t key) {
  uint64_t h = (key + 1) * t->multiplier;
  bucket_t *b = &t->buckets[h >> t->shift];
  uint16_t tag = (uint16_t)(h >> 16);
  for (uint32_t i = 0; i < b->used; i++) {
    if (b->entries[i].tag == tag) return &b->entries[i];
  }
  return NOT_FOUND;
}

static int insert(hash_table_t *t, uint32_t key, uint32_t value) {
  uint64_t h = (key + 1) * t->multiplier;
  bucket_t *b = &t->buckets[h >> t->shift];
  entry_t *e = find(t, key);
  if (e == NOT_FOUND) {
    if (b->used == SLOTS) {
      b->dropped++;
      return 0;
    }
    e = &b->entries[b->used++];
  }
  e->tag = (uint16_t)(h >> 16);
  e->visits = 0;
  e->value = value;
  return 1;
}

int main(int argc, char **argv) {
  const uint32_t log_buckets = argument(argc, argv, 1, 19);
  const uint32_t log_keys = argument(argc, argv, 2, 20);
  const uint32_t passes = argument(argc, argv, 3, 2);
  static const uint64_t multipliers[HOPS] = {0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u, 0xc2b2ae3d27d4eb4fu};
  const uint32_t per_table = 4u << log_buckets;
  const uint32_t num_keys = 1u << log_keys;
  hash_table_t tables[HOPS];
  uint64_t seed = 4242, checksum = 0;
  uint32_t stored = 0;

  for (int hop = 0; hop < HOPS; hop++) {
    tables[hop].shift = 64 - log_buckets;
    tables[hop].multiplier = multipliers[hop];
    tables[hop].buckets = allocate((size_t)1 << log_buckets, sizeof(bucket_t));
    memset(tables[hop].buckets, 0, sizeof(bucket_t) << log_buckets);
    for (uint32_t i = 0; i < per_table; i++) {
      // One value in 33 is no key of the next table.
      const uint64_t value = ((uint64_t)i * 2654435761u + (uint32_t)hop) % (per_table + per_table / 32);
      stored += (uint32_t)insert(&tables[hop], i, (uint32_t)value);
    }
  }
  uint32_t *keys = allocate(num_keys, sizeof(uint32_t));
  for (uint32_t i = 0; i < num_keys; i++) keys[i] = random_below(&seed, per_table);

  for (uint32_t pass = 0; pass < passes; pass++) {
    uint64_t arrived = 0, lost[HOPS] = {0}, sum = 0;
    for (uint32_t i = 0; i < num_keys; i++) {
      entry_t *e = find(&tables[0], keys[i]);
      if (!e) {
        lost[0]++;
        goto next;
      }
      e = find(&tables[1], e->value);
      if (!e) {
        lost[1]++;
        goto next;
      }
      e = find(&tables[2], e->value ^ (pass & 1));
      if (!e) {
        lost[2]++;
        goto next;
      }
      arrived++;
      sum += (uint64_t)e->value * (1u + e->visits);
      e->visits++;
    next:
      keys[i] += 97;
      if (keys[i] >= per_table) keys[i] -= per_table;
    }
    checksum = mix(mix(checksum, arrived), sum);
    for (int hop = 0; hop < HOPS; hop++) checksum = mix(checksum, lost[hop]);
  }
  return report("kangaroo", mix(checksum, stored));
}
