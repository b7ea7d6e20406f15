// A hash join in main memory without partitioning, after Blanas, Li and Patel (SIGMOD 2011) and Balkesen, Teubner,
// Alonso and Oezsu (ICDE 2013). A bucket has a latch, a count and room for two
// tuples; what does not fit hangs in overflow buckets that come from a pool. Generating, building, probing and
// checking all stand in main.
//
// Arguments: log2 of the tuples of R, log2 of the tuples of S, joins.
#include "../../common/sample.h"

#define BUCKET_SIZE 2
#define OVERFLOW_CHUNK 1024
#define KEY_BITS 30

#define HASH(key, mask) ((((uint32_t)(key) * 2654435761u) >> 4) & (mask))
#define LOCK(latch) do { while ((latch) != 0) {} (latch) = 1; } while (0)
#define UNLOCK(latch) ((latch) = 0)

typedef int32_t join_key_t;
typedef int32_t join_value_t;

typedef struct tuple_t {
  join_key_t key;
  join_value_t payload;
} tuple_t;

typedef struct relation_t {
  tuple_t* tuples;
  uint64_t num_tuples;
} relation_t;

typedef struct bucket_t {
  char latch;
  uint32_t count;
  tuple_t tuples[BUCKET_SIZE];
  struct bucket_t* next;
} __attribute__((aligned(32))) bucket_t;

typedef struct bucket_pool_t {
  struct bucket_pool_t* next;
  uint32_t used;
  bucket_t buckets[OVERFLOW_CHUNK];
} bucket_pool_t;

typedef struct hashtable_t {
  bucket_t* buckets;
  uint32_t num_buckets;
  uint32_t hash_mask;
  bucket_pool_t* pool;
} hashtable_t;

static inline bucket_t* new_overflow(hashtable_t* ht) {
  if (ht->pool == NULL || ht->pool->used == OVERFLOW_CHUNK) {
    bucket_pool_t* fresh = allocate(1, sizeof(bucket_pool_t));
    fresh->next = ht->pool;
    fresh->used = 0;
    ht->pool = fresh;
  }
  bucket_t* b = &ht->pool->buckets[ht->pool->used++];
  b->latch = 0;
  b->count = 0;
  b->next = NULL;
  return b;
}

int main(int argc, char** argv) {
  const uint32_t log_r = argument(argc, argv, 1, 22);
  const uint32_t log_s = argument(argc, argv, 2, 24);
  const uint32_t joins = argument(argc, argv, 3, 2);
  uint64_t seed = 12345;
  uint64_t checksum = 0;

  // R: unique keys in random order. S: foreign keys, one in sixteen of which R does not have.
  relation_t relR, relS;
  relR.num_tuples = (uint64_t)1 << log_r;
  relS.num_tuples = (uint64_t)1 << log_s;
  relR.tuples = allocate(relR.num_tuples, sizeof(tuple_t));
  relS.tuples = allocate(relS.num_tuples, sizeof(tuple_t));
  for (uint64_t i = 0; i < relR.num_tuples; i++) {
    relR.tuples[i].key = (join_key_t)scatter((uint32_t)i, KEY_BITS);
    relR.tuples[i].payload = (join_value_t)i;
  }
  for (uint64_t i = relR.num_tuples - 1; i > 0; i--) {
    uint64_t j = random_below(&seed, (uint32_t)i + 1);
    tuple_t tmp = relR.tuples[i];
    relR.tuples[i] = relR.tuples[j];
    relR.tuples[j] = tmp;
  }
  const uint32_t domain = (uint32_t)(relR.num_tuples + relR.num_tuples / 16);
  for (uint64_t i = 0; i < relS.num_tuples; i++) {
    relS.tuples[i].key = (join_key_t)scatter(random_below(&seed, domain), KEY_BITS);
    relS.tuples[i].payload = (join_value_t)i;
  }

  hashtable_t ht;
  ht.num_buckets = (uint32_t)(relR.num_tuples / BUCKET_SIZE);
  ht.hash_mask = ht.num_buckets - 1;
  ht.pool = NULL;
  ht.buckets = allocate(ht.num_buckets, sizeof(bucket_t));

  for (uint32_t join = 0; join < joins; join++) {
    memset(ht.buckets, 0, ht.num_buckets * sizeof(bucket_t));

    // build
    for (uint64_t i = 0; i < relR.num_tuples; i++) {
      bucket_t* head = &ht.buckets[HASH(relR.tuples[i].key, ht.hash_mask)];
      bucket_t* into = head;
      LOCK(head->latch);
      if (into->count == BUCKET_SIZE) {
        // Only the first overflow bucket may have room: each new one is put in front of the others.
        into = head->next;
        if (into == NULL || into->count == BUCKET_SIZE) {
          bucket_t* fresh = new_overflow(&ht);
          fresh->next = into;
          head->next = fresh;
          into = fresh;
        }
      }
      into->tuples[into->count++] = relR.tuples[i];
      UNLOCK(head->latch);
    }

    // probe
    int64_t matches = 0;
    uint64_t payloads = 0;
    for (uint64_t i = 0; i < relS.num_tuples; i++) {
      const join_key_t key = relS.tuples[i].key;
      const bucket_t* b = &ht.buckets[HASH(key, ht.hash_mask)];
      do {
        for (uint32_t j = 0; j < b->count; j++) {
          if (b->tuples[j].key != key) continue;
          matches++;
          payloads += (uint64_t)b->tuples[j].payload * 3 + (uint64_t)relS.tuples[i].payload;
        }
      } while ((b = b->next) != NULL);
    }

    // How long the chains are, and whether each tuple of R is in the table once.
    uint32_t lengths[16] = {0};
    uint64_t stored = 0;
    for (uint32_t i = 0; i < ht.num_buckets; i++) {
      uint32_t length = 0;
      for (const bucket_t* b = &ht.buckets[i]; b != NULL; b = b->next) {
        stored += b->count;
        length++;
      }
      lengths[length < 16 ? length : 15]++;
    }
    if (stored != relR.num_tuples) {
      fprintf(stderr, "%lu of %lu tuples are in the table\n", (unsigned long)stored, (unsigned long)relR.num_tuples);
      return 1;
    }
    checksum = mix(mix(checksum, (uint64_t)matches), payloads);
    for (int i = 0; i < 16; i++) checksum = mix(checksum, lengths[i]);

    while (ht.pool != NULL) {
      bucket_pool_t* spent = ht.pool;
      ht.pool = spent->next;
      free(spent);
    }
    // The next join has other keys in a part of S.
    for (uint64_t i = join; i < relS.num_tuples; i += 8) {
      relS.tuples[i].key = (join_key_t)scatter(((uint32_t)matches + (uint32_t)i * 7919u) % domain, KEY_BITS);
    }
  }

  free(ht.buckets);
  free(relR.tuples);
  free(relS.tuples);
  return report("npo_join", checksum);
}
