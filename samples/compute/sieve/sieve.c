// Primes by a segmented sieve: strided byte stores into the second-level cache, then a count.
//
// Arguments: the limit in millions, repetitions.
#include "../../common/sample.h"

enum { kSegment = 1 << 18, kLargestRoot = 1 << 16 };

static uint8_t composite[kSegment];
static uint32_t primes[6600];
static uint32_t next_multiple[6600];

static uint32_t small_primes(void) {
  static uint8_t crossed[kLargestRoot];
  uint32_t count = 0;
  memset(crossed, 0, sizeof crossed);
  for (uint32_t i = 2; i < kLargestRoot; ++i) {
    if (crossed[i]) continue;
    primes[count] = i;
    next_multiple[count++] = i * i;
    if (i < 256) {
      for (uint32_t j = i * i; j < kLargestRoot; j += i) crossed[j] = 1;
    }
  }
  return count;
}

// Crosses out the multiples in [begin, begin + length) and counts what is left.
KERNEL static uint32_t sieve_segment(uint32_t begin, uint32_t length, uint32_t prime_count) {
  memset(composite, 0, sizeof composite);
  for (uint32_t p = 0; p < prime_count && primes[p] * primes[p] < begin + length; ++p) {
    const uint32_t prime = primes[p];
    uint32_t multiple = next_multiple[p] - begin;
    for (; multiple < length; multiple += prime) composite[multiple] = 1;
    next_multiple[p] = begin + multiple;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < length; ++i) count += composite[i] == 0;
  return count;
}

static uint64_t sieve(uint32_t limit) {
  const uint32_t prime_count = small_primes();
  uint64_t checksum = 0;
  for (uint32_t begin = 0; begin < limit; begin += kSegment) {
    const uint32_t length = limit - begin < kSegment ? limit - begin : kSegment;
    checksum = mix(checksum, sieve_segment(begin, length, prime_count));
  }
  return checksum;
}

int main(int argc, char** argv) {
  const uint32_t limit = 1000000 * argument(argc, argv, 1, 200);
  const uint32_t repetitions = argument(argc, argv, 2, 10);
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) checksum = mix(checksum, sieve(limit));
  return report("sieve", checksum);
}
