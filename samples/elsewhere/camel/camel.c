// Random indices that are hashed and looked up several levels deep, with some work on each element before the next. It
// is after Camel, one of the programs that Vector Runahead was measured with (Naithani, Ainsworth, Jones, Eeckhout,
// ISCA 2021). We know descriptions of it, not its source. Each index leads through three tables. What is found decides
// which counter goes up, and is kept with the element.
//
// Arguments: log2 of the entries of each table, log2 of the elements, passes.
#include "../../common/sample.h"

#define LEVELS 3
#define GROUPS 1024

typedef unsigned int uint;
typedef unsigned long long ull;

typedef struct element {
  uint index;
  uint score;
} element;

uint *table[LEVELS];
uint log_table;
element *elements;
ull groups[GROUPS];

static inline uint hash_of(uint x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

int main(int argc, char **argv) {
  uint log_elements, passes, n, mask;
  ull seed = 77;
  ull checksum = 0;

  log_table = argument(argc, argv, 1, 23);
  log_elements = argument(argc, argv, 2, 20);
  passes = argument(argc, argv, 3, 2);
  n = 1u << log_elements;
  mask = (1u << log_table) - 1;

  for (int level = 0; level < LEVELS; level++) {
    table[level] = allocate((size_t)mask + 1, sizeof(uint));
    for (uint i = 0; i <= mask; i++) table[level][i] = hash_of(i + (uint)level * 0x1000193u);
  }
  elements = allocate(n, sizeof(element));
  for (uint i = 0; i < n; i++) {
    elements[i].index = (uint)(seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 32);
    elements[i].score = 0;
  }

  for (uint pass = 0; pass < passes; pass++) {
    ull kept = 0;
    for (uint i = 0; i < n; i++) {
      uint x = elements[i].index;
      uint work = elements[i].score;

      for (int level = 0; level < LEVELS; level++) {
        x = table[level][hash_of(x) & mask];

        /* what is done with an element: a few steps of a polynomial and a shift that depends on it */
        uint y = x ^ pass;
        y = y * y + 0x9e3779b9u * y + (uint)level;
        y = (y << (x & 7)) | (y >> (31 - (x & 7)));
        work += y >> 3;
      }

      if ((work & 0xff) == 0xff) continue; /* a few are dropped */
      elements[i].score = work;
      groups[work % GROUPS] += x & 0xffff;
      kept++;
    }
    checksum = mix(checksum, kept);
    for (uint i = 0; i < GROUPS; i++) checksum = mix(checksum, groups[i]);
  }

  return report("camel", checksum);
}
