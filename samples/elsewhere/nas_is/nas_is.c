/* Integer sort, after kernel IS of the NAS Parallel Benchmarks (Bailey et al., RNR-94-007). Keys whose distribution
   is nearly Gaussian are ranked again and again by counting. A few ranks are looked at in each iteration. At the end
   the keys are put in order, and all of them are checked. Arrays are global and have the size of the largest class.

   Arguments: log2 of the number of keys (at most 25), log2 of their limit (at most 24), iterations (at most 20).  */
#include "../../common/sample.h"

#define LARGEST_LOG_KEYS 25
#define LARGEST_LOG_LIMIT 24
#define MAX_ITERATIONS 20
#define PROBES 5

typedef int INT_TYPE;

INT_TYPE keys[1 << LARGEST_LOG_KEYS];
INT_TYPE unsorted[1 << LARGEST_LOG_KEYS];
INT_TYPE counts[1 << LARGEST_LOG_LIMIT];
INT_TYPE probe_at[PROBES];
INT_TYPE probe_rank[MAX_ITERATIONS + 1][PROBES];

int num_keys, key_limit, iterations;
int passed;

/* The generator of the NAS report, x = a x mod 2^46, and its result in [0, 1). A double holds products of 23 by 23 bits
   exactly, so both numbers are cut in two halves.  */
static double nas_random(double *state, double multiplier) {
  const double half = 0x1p23;
  const double a_high = (double)(int)(multiplier / half), a_low = multiplier - half * a_high;
  const double x_high = (double)(int)(*state / half), x_low = *state - half * x_high;
  double middle = a_high * x_low + a_low * x_high;
  middle -= half * (double)(int)(middle / half);
  double product = half * middle + a_low * x_low;
  product -= 0x1p46 * (double)(int)(product / 0x1p46);
  *state = product;
  return product / 0x1p46;
}

static void make_keys(double seed) {
  const double multiplier = 1220703125.0; /* 5^13 */
  double quarter = key_limit / 4;
  int i, k;

  for (i = 0; i < num_keys; i++) {
    double sum = 0;
    for (k = 0; k < 4; k++) sum += nas_random(&seed, multiplier);
    keys[i] = (INT_TYPE)(quarter * sum);
  }
}

static void rank_keys(int iteration) {
  INT_TYPE wanted[PROBES];
  INT_TYPE i;

  /* Each iteration changes a key at the lower end and one at the upper.  */
  keys[iteration] = iteration;
  keys[iteration + MAX_ITERATIONS] = key_limit - iteration;
  for (i = 0; i < PROBES; i++) wanted[i] = keys[probe_at[i]];

  for (i = 0; i < key_limit; i++) counts[i] = 0;
  for (i = 0; i < num_keys; i++) {
    unsorted[i] = keys[i];
    counts[keys[i]]++;
  }
  for (i = 1; i < key_limit; i++) counts[i] += counts[i - 1];

  for (i = 0; i < PROBES; i++) {
    INT_TYPE rank;
    if (wanted[i] <= 0 || wanted[i] >= key_limit) continue;
    rank = counts[wanted[i] - 1];
    probe_rank[iteration][i] = rank;
    /* So ranks hardly move.  */
    if (iteration == 1 ? rank < num_keys : abs(rank - probe_rank[iteration - 1][i]) <= 2) passed++;
  }
}

static int verify_all(void) {
  INT_TYPE i, wrong = 0;

  for (i = 0; i < num_keys; i++) {
    INT_TYPE key = unsorted[i];
    keys[--counts[key]] = key;
  }
  for (i = 1; i < num_keys; i++)
    if (keys[i] < keys[i - 1]) wrong++;
  if (wrong) {
    fprintf(stderr, "%d keys are out of order\n", wrong);
    return 0;
  }
  passed++;
  return 1;
}

int main(int argc, char **argv) {
  int i, iteration;
  uint64_t checksum = 0;

  num_keys = 1 << argument(argc, argv, 1, 23);
  key_limit = 1 << argument(argc, argv, 2, 21);
  iterations = (int)argument(argc, argv, 3, 10);
  if (num_keys > 1 << LARGEST_LOG_KEYS || key_limit > 1 << LARGEST_LOG_LIMIT || iterations < 1 ||
      iterations > MAX_ITERATIONS) {
    fprintf(stderr, "no class is that large\n");
    return 2;
  }

  make_keys(314159265.0);
  /* where no iteration changes a key */
  for (i = 0; i < PROBES; i++) probe_at[i] = 2 * MAX_ITERATIONS + 1 + (int)((uint32_t)(i + 1) * 48104u % (uint32_t)(num_keys / 2));

  /* once for caches and pages; what it verifies does not count */
  rank_keys(1);
  passed = 0;

  for (iteration = 1; iteration <= iterations; iteration++) {
    rank_keys(iteration);
    for (i = 0; i < PROBES; i++) checksum = mix(checksum, (uint64_t)probe_rank[iteration][i]);
  }

  if (!verify_all()) return 1;
  if (passed != PROBES * iterations + 1) {
    fprintf(stderr, "%d of %d tests passed\n", passed, PROBES * iterations + 1);
    return 1;
  }
  for (i = 0; i < num_keys; i += 997) checksum = mix(checksum, (uint64_t)keys[i]);
  return report("nas_is", checksum);
}
