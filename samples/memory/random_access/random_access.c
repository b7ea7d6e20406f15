// Updates of random words of a large table, in batches of 128 independent sequences as HPCC RandomAccess
// allows. Almost no work between the misses: the hardest case for software prefetch.
//
// Arguments: log2 of the table's length, thousands of batches of 128 updates.
#include "../../common/sample.h"

enum { kStreams = 128 };

KERNEL static void update(uint64_t* table, uint64_t mask, uint64_t* stream, uint32_t batches) {
  for (uint32_t b = 0; b < batches; ++b) {
    for (uint32_t j = 0; j < kStreams; ++j) {
      // One step of a shift register over x^63 + x^2 + x + 1.
      stream[j] = (stream[j] << 1) ^ ((int64_t)stream[j] < 0 ? 7 : 0);
      table[stream[j] & mask] ^= stream[j];
    }
  }
}

int main(int argc, char** argv) {
  const uint32_t length = 1u << argument(argc, argv, 1, 25);
  const uint32_t batches = 1000 * argument(argc, argv, 2, 2000);

  uint64_t* table = allocate(length, sizeof *table);
  for (uint32_t i = 0; i < length; ++i) table[i] = i;
  uint64_t stream[kStreams];
  uint64_t seed = 11;
  for (uint32_t j = 0; j < kStreams; ++j) stream[j] = next_random(&seed);

  for (uint32_t done = 0; done < batches; done += 1000) update(table, length - 1, stream, 1000);

  uint64_t checksum = 0;
  for (uint32_t i = 0; i < length; i += 64) checksum = mix(checksum, table[i]);
  return report("random_access", checksum);
}
