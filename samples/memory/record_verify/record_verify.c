// Fetch records by number and verify the checksum stored in each, as a storage engine does with every page or
// value it reads. One 64-byte record a miss, and a chain of arithmetic that cannot start before it has
// arrived.
//
// Arguments: log2 of the number of records, log2 of the number of requests, repetitions.
#include "../../common/sample.h"

enum { kWords = 7 };

typedef struct {
  uint64_t words[kWords];
  uint64_t checksum;
} Record;

static inline uint64_t checksum_of(const Record* record) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < kWords; ++i) {
    hash = (hash ^ record->words[i]) * 0x9fb21c651e98df25u;
    hash ^= hash >> 29;
  }
  return hash;
}

KERNEL static uint32_t verify(const Record* records, const uint32_t* requests, uint32_t count) {
  uint32_t broken = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Record* record = &records[requests[i]];
    broken += checksum_of(record) != record->checksum;
  }
  return broken;
}

int main(int argc, char** argv) {
  const uint32_t record_count = 1u << argument(argc, argv, 1, 22);
  const uint32_t request_count = 1u << argument(argc, argv, 2, 22);
  const uint32_t repetitions = argument(argc, argv, 3, 10);

  Record* records = allocate(record_count, sizeof *records);
  for (uint32_t i = 0; i < record_count; ++i) {
    for (uint32_t w = 0; w < kWords; ++w) records[i].words[w] = (uint64_t)i * 0x9e3779b97f4a7c15u + w;
    records[i].checksum = checksum_of(&records[i]);
  }
  uint32_t* requests = allocate(request_count, sizeof *requests);
  uint64_t seed = 12;
  for (uint32_t i = 0; i < request_count; ++i) requests[i] = random_below(&seed, record_count);

  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    records[scatter(r, 20) % record_count].words[r % kWords] ^=
        1;  // damage one, so that there is something to find
    checksum = mix(checksum, verify(records, requests, request_count));
  }
  return report("record_verify", checksum);
}
