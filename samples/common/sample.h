// What every workload shares: its arguments, its random numbers, its memory and its one line of output.
//
// A workload is a whole program. It builds its data from a fixed seed, runs a kernel a number of times, and
// prints one line `<name> <checksum>`. The checksum depends on every repetition and on nothing else: no time,
// no address, no library function whose last bit differs between systems. So a run is right exactly when its
// output is.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A kernel is kept a function of its own, as it would be in a larger program, so that profiles can name it.
#define KERNEL __attribute__((noinline))

// The index-th command line argument as a number, or `fallback` where it is missing or not a number.
static inline uint32_t argument(int argc, char** argv, int index, uint32_t fallback) {
  if (index >= argc) return fallback;
  char* end = NULL;
  unsigned long value = strtoul(argv[index], &end, 10);
  return end != argv[index] && *end == '\0' ? (uint32_t)value : fallback;
}

// The next number of a sequence that its state's first value determines (splitmix64; Steele, Lea, Flood
// 2014).
static inline uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A number in [0, bound), for any bound: the high half of a product instead of a remainder.
static inline uint32_t random_below(uint64_t* state, uint32_t bound) {
  return (uint32_t)(((next_random(state) >> 32) * bound) >> 32);
}

// A number in [0, 1) with 53 random bits.
static inline double random_unit(uint64_t* state) {
  return (double)(next_random(state) >> 11) * 0x1p-53;
}

// A one-to-one map of [0, 2^bits) onto itself that leaves no visible order. It places objects in memory as a
// heap that has been in use for long would. Each step (odd product, xor of a shifted copy) can be undone, so
// no two meet.
static inline uint32_t scatter(uint32_t index, uint32_t bits) {
  const uint32_t mask = bits >= 32 ? 0xffffffffu : (1u << bits) - 1;
  const uint32_t shift = bits / 2 + 1;
  for (int round = 0; round < 3; ++round) {
    index = (index * 0x9e3779b1u + 0x7f4a7c15u) & mask;
    index ^= index >> shift;
  }
  return index;
}

// Adds a value to a checksum so that order and every bit count.
static inline uint64_t mix(uint64_t checksum, uint64_t value) {
  checksum = (checksum ^ value) * 0x9fb21c651e98df25u;
  return checksum ^ (checksum >> 32);
}

static inline uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Memory for `count` objects of `size` bytes, aligned to a cache line; ends the program where there is none.
static inline void* allocate(size_t count, size_t size) {
  const size_t bytes = (count * size + 63) & ~(size_t)63;
  void* memory = size != 0 && bytes / size >= count ? aligned_alloc(64, bytes) : NULL;
  if (memory == NULL) {
    fprintf(stderr, "no memory for %lu objects of %lu bytes\n", (unsigned long)count, (unsigned long)size);
    exit(3);
  }
  return memory;
}

// The program's whole output; returns main's result.
static inline int report(const char* name, uint64_t checksum) {
  return printf("%s %016llx\n", name, (unsigned long long)checksum) > 0 ? 0 : 4;
}
