// Looks keys up in a hash table whose number of buckets is a prime that only the arguments know. That is one 64-bit
// remainder a key, by the same number every time.
//
// Arguments: buckets (a prime), keys a batch, repetitions.
#include "../../common/sample.h"

struct entry {
  uint64_t key;
  uint32_t next;  // index of the next entry of the bucket + 1; 0: none
  uint32_t value;
};

struct table {
  uint64_t buckets;
  uint32_t* heads;  // index of the first entry + 1; 0: none
  struct entry* entries;
};

static uint32_t find(const struct table* table, uint64_t key) {
  uint32_t at = table->heads[key % table->buckets];
  while (at != 0 && table->entries[at - 1].key != key) at = table->entries[at - 1].next;
  return at == 0 ? 0 : table->entries[at - 1].value;
}

KERNEL static uint64_t sum_of(const struct table* table, const uint64_t* keys, uint32_t count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += find(table, keys[i]);
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t buckets = argument(argc, argv, 1, 16381);
  const uint32_t count = argument(argc, argv, 2, 4000);
  const uint32_t repetitions = argument(argc, argv, 3, 100000);

  const uint32_t held = buckets / 8 + 1;
  struct table table = {buckets, allocate(buckets, sizeof *table.heads), allocate(held, sizeof *table.entries)};
  memset(table.heads, 0, buckets * sizeof *table.heads);
  uint64_t seed = 21;
  for (uint32_t i = 0; i < held; ++i) {
    const uint64_t key = next_random(&seed);
    uint32_t* head = &table.heads[key % buckets];
    table.entries[i] = (struct entry){key, *head, i + 1};
    *head = i + 1;
  }
  // Every fourth key is there, in runs of 64.
  uint64_t* keys = allocate(count, sizeof *keys);
  for (uint32_t i = 0; i < count; ++i)
    keys[i] = i % 256 < 64 ? table.entries[random_below(&seed, held)].key : next_random(&seed);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    const uint64_t sum = sum_of(&table, keys, count);
    checksum = mix(checksum, sum);
    keys[r % count] += checksum & 0xff;
  }
  return report("prime_buckets", checksum);
}
