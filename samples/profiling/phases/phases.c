// phases [rounds]: a program that marks its own phases and sizes through module hindsight_lwp.
//
// Each round builds a table of strings of random lengths, sorts their hashes and looks some of them up. The beginning
// of each phase is an event (data1: the round, data2: how much is to be done). The length of every 64th string is a
// value sample. It prints a checksum that depends on the work alone, never on whether anybody watched.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../include/hindsight_lwp.h"

enum { kBuild = 1, kSort = 2, kLookUp = 3, kDone = 4, kLength = 16 };
enum { kStrings = 40000, kLookUps = 60000, kLongest = 4096 };

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

// Lengths as texts have them: short ones often, long ones seldom.
static uint32_t next_length(void) {
  const uint64_t r = next_random();
  uint32_t length = 1 + (uint32_t)(r & 15);
  for (int bit = 16; bit < 24 && (r >> bit & 1) != 0; ++bit) length *= 2;
  return length < kLongest ? length : kLongest;
}

static uint64_t hashes[kStrings];
static unsigned char text[kLongest];

static void build(uint32_t round) {
  hindsight_lwp_insert_event(kStrings, round, kBuild);
  for (uint32_t i = 0; i < kStrings; ++i) {
    const uint32_t length = next_length();
    hindsight_lwp_value_sample(length, i, kLength);
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t k = 0; k < length; ++k) {
      text[k] = (unsigned char)('a' + (next_random() >> 40) % 26);
      hash = (hash ^ text[k]) * 0x100000001b3u;
    }
    hashes[i] = hash;
  }
}

static int by_value(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static void sort(uint32_t round) {
  hindsight_lwp_insert_event(sizeof hashes, round, kSort);
  qsort(hashes, kStrings, sizeof hashes[0], by_value);
}

static uint64_t look_up(uint32_t round) {
  hindsight_lwp_insert_event(kLookUps, round, kLookUp);
  uint64_t found = 0;
  for (uint32_t i = 0; i < kLookUps; ++i) {
    const uint64_t wanted = i % 2 ? next_random() : hashes[next_random() % kStrings];
    uint32_t low = 0, high = kStrings;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (hashes[middle] < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    if (low < kStrings && hashes[low] == wanted) found += low;
  }
  return found;
}

int main(int argc, char** argv) {
  const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], 0, 10) : 10;
  hindsight_lwp_name_flags(kBuild, "build", 5);
  hindsight_lwp_name_flags(kSort, "sort", 4);
  hindsight_lwp_name_flags(kLookUp, "look up", 7);
  hindsight_lwp_name_flags(kDone, "done", 4);
  hindsight_lwp_name_flags(kLength, "length of a string", 18);
  hindsight_lwp_set_value_interval(63);
  uint64_t checksum = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    build(round);
    sort(round);
    checksum = checksum * 31 + look_up(round);
    hindsight_lwp_insert_event(checksum, round, kDone);
  }
  printf("phases %016llx\n", (unsigned long long)checksum);
  return 0;
}
