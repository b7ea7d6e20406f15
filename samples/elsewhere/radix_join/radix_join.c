// A radix-partitioned hash join, after Manegold, Boncz and Kersten (TKDE 2002) and the PRO of Balkesen, Teubner,
// Alonso and Oezsu (ICDE 2013). Both relations are partitioned in two passes, by a histogram, its prefix sums and a
// scatter each. Then each pair of partitions is joined by bucket chaining: an array of first tuples and one of next
// tuples, by number. A partition and its arrays fit into a cache.
//
// Arguments: log2 of the tuples of R, log2 of the tuples of S, bits of the radix, joins.
#include "../../common/sample.h"

#define NUM_PASSES 2
#define DIGIT(key, shift, bits) (((key) >> (shift)) & ((1u << (bits)) - 1))

typedef struct {
  uint32_t key;
  uint32_t payload;
} tuple_t;

typedef struct {
  tuple_t* tuples;
  uint32_t num_tuples;
} relation_t;

typedef struct {
  int64_t matches;
  uint64_t payloads;
} result_t;

// One pass: from `in` to `out`, by `bits` bits of the key from bit `shift` on. `ends` gets where partitions end.
static void radix_cluster(relation_t* out, const relation_t* in, uint32_t* hist, uint32_t* dst, uint32_t shift, uint32_t bits) {
  const uint32_t fanout = 1u << bits;
  uint32_t offset = 0;
  uint32_t i;

  memset(hist, 0, fanout * sizeof(uint32_t));
  for (i = 0; i < in->num_tuples; i++) {
    hist[DIGIT(in->tuples[i].key, shift, bits)]++;
  }
  for (i = 0; i < fanout; i++) {
    dst[i] = offset;
    offset += hist[i];
  }
  for (i = 0; i < in->num_tuples; i++) {
    const uint32_t digit = DIGIT(in->tuples[i].key, shift, bits);
    out->tuples[dst[digit]++] = in->tuples[i];
  }
}

// Joins two partitions whose keys agree in the lowest `shift` bits. Precondition: `first` has room for twice the tuples
// of `r`, and `next` for as many and one more.
static void join_partitions(const relation_t* r, const relation_t* s, uint32_t* first, uint32_t* next, uint32_t shift, result_t* result) {
  uint32_t bits = 0;
  if (r->num_tuples == 0 || s->num_tuples == 0) return;
  while (1u << bits < r->num_tuples) bits++;
  memset(first, 0, sizeof(uint32_t) << bits);

  // Tuples are numbered from 1, so that 0 ends a chain.
  for (uint32_t n = 1; n <= r->num_tuples; n++) {
    uint32_t* head = &first[DIGIT(r->tuples[n - 1].key, shift, bits)];
    next[n] = *head;
    *head = n;
  }
  int64_t matches = 0;
  uint64_t payloads = 0;
  for (uint32_t i = 0; i < s->num_tuples; i++) {
    const tuple_t outer = s->tuples[i];
    for (uint32_t n = first[DIGIT(outer.key, shift, bits)]; n != 0; n = next[n]) {
      const tuple_t* inner = &r->tuples[n - 1];
      if (inner->key == outer.key) {
        matches++;
        payloads += (uint64_t)inner->payload ^ outer.payload;
      }
    }
  }
  result->matches += matches;
  result->payloads += payloads;
}

int main(int argc, char** argv) {
  const uint32_t log_r = argument(argc, argv, 1, 22);
  const uint32_t log_s = argument(argc, argv, 2, 23);
  const uint32_t radix_bits = argument(argc, argv, 3, 14);
  const uint32_t joins = argument(argc, argv, 4, 2);
  uint64_t seed = 20130408;
  uint64_t checksum = 0;
  if (radix_bits < NUM_PASSES || radix_bits > 18) {
    fprintf(stderr, "from %d to 18 bits are possible\n", NUM_PASSES);
    return 2;
  }

  relation_t R, S, tmpR, tmpS;
  R.num_tuples = tmpR.num_tuples = 1u << log_r;
  S.num_tuples = tmpS.num_tuples = 1u << log_s;
  R.tuples = allocate(R.num_tuples, sizeof(tuple_t));
  S.tuples = allocate(S.num_tuples, sizeof(tuple_t));
  tmpR.tuples = allocate(R.num_tuples, sizeof(tuple_t));
  tmpS.tuples = allocate(S.num_tuples, sizeof(tuple_t));
  for (uint32_t i = 0; i < R.num_tuples; i++) {
    R.tuples[i].key = scatter(i, log_r);
    R.tuples[i].payload = i;
  }
  for (uint32_t i = 0; i < S.num_tuples; i++) {
    S.tuples[i].key = random_below(&seed, R.num_tuples);
    S.tuples[i].payload = (uint32_t)next_random(&seed);
  }

  const uint32_t bits1 = radix_bits / NUM_PASSES;
  const uint32_t bits2 = radix_bits - bits1;
  const uint32_t fanout1 = 1u << bits1, fanout2 = 1u << bits2;
  uint32_t* histR = allocate(fanout1, sizeof(uint32_t));
  uint32_t* histS = allocate(fanout1, sizeof(uint32_t));
  uint32_t* dst = allocate(fanout1 > fanout2 ? fanout1 : fanout2, sizeof(uint32_t));
  uint32_t* histR2 = allocate(fanout2, sizeof(uint32_t));
  uint32_t* histS2 = allocate(fanout2, sizeof(uint32_t));

  for (uint32_t join = 0; join < joins; join++) {
    result_t result = {0, 0};

    // first pass: by the low bits, into the temporary relations
    radix_cluster(&tmpR, &R, histR, dst, 0, bits1);
    radix_cluster(&tmpS, &S, histS, dst, 0, bits1);

    // second pass: each partition by the bits above, back into the relations, and right away the joins
    uint32_t baseR = 0, baseS = 0;
    for (uint32_t p = 0; p < fanout1; p++) {
      relation_t inR = {tmpR.tuples + baseR, histR[p]};
      relation_t inS = {tmpS.tuples + baseS, histS[p]};
      relation_t outR = {R.tuples + baseR, histR[p]};
      relation_t outS = {S.tuples + baseS, histS[p]};
      radix_cluster(&outR, &inR, histR2, dst, bits1, bits2);
      radix_cluster(&outS, &inS, histS2, dst, bits1, bits2);

      uint32_t largest = 1;
      for (uint32_t q = 0; q < fanout2; q++) {
        if (histR2[q] > largest) largest = histR2[q];
      }
      uint32_t* first = malloc(2 * sizeof(uint32_t) * largest);
      uint32_t* next = malloc(sizeof(uint32_t) * (largest + 1));
      if (first == NULL || next == NULL) return 3;
      relation_t r = {outR.tuples, 0}, s = {outS.tuples, 0};
      for (uint32_t q = 0; q < fanout2; q++) {
        r.num_tuples = histR2[q];
        s.num_tuples = histS2[q];
        join_partitions(&r, &s, first, next, bits1 + bits2, &result);
        r.tuples += histR2[q];
        s.tuples += histS2[q];
      }
      free(first);
      free(next);
      baseR += histR[p];
      baseS += histS[p];
    }

    if (result.matches != (int64_t)S.num_tuples) {
      fprintf(stderr, "%lld matches instead of %lu\n", (long long)result.matches, (unsigned long)S.num_tuples);
      return 1;
    }
    checksum = mix(mix(checksum, (uint64_t)result.matches), result.payloads);

    // The next join starts from relations in another order.
    for (uint32_t i = 0; i < S.num_tuples; i++) {
      const uint32_t j = (i * 40503u + (uint32_t)checksum) & (S.num_tuples - 1);
      S.tuples[i].key = (S.tuples[i].key * 5 + S.tuples[j].payload) & (R.num_tuples - 1);
    }
    for (uint32_t i = 0; i < R.num_tuples; i++) {
      R.tuples[i].key = scatter(i ^ (join & 1), log_r);
      R.tuples[i].payload = i + join;
    }
  }
  return report("radix_join", checksum);
}
