// What the programs of this suite share: two phases of batches, of which the second asks for other code than the first.
//
// Arguments: what the first phase is like, what the second is like (see each program), batches of the first, batches of
// the second, form. Form 0 is a kernel called for each batch, form 1 one call whose loop does them all. A last argument
// 1 writes what each batch took to stderr. What is printed on stdout depends on the batches alone.
#pragma once

#include <time.h>

#include "../common/sample.h"

static uint64_t now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

typedef struct {
  uint32_t first, second;  // what the phases are like
  uint32_t change, batches;
  uint32_t one_call;
  uint64_t* ends;  // when each batch ended; ends[0] is when the first began. Null: nobody asks
} Plan;

static inline void mark(const Plan* plan, uint32_t batches_done) {
  if (plan->ends != NULL) plan->ends[batches_done] = now();
}

static inline Plan read_plan(int argc, char** argv, uint32_t first, uint32_t second) {
  Plan plan;
  plan.first = argument(argc, argv, 1, first);
  plan.second = argument(argc, argv, 2, second);
  plan.change = argument(argc, argv, 3, 1000);
  plan.batches = plan.change + argument(argc, argv, 4, 1000);
  plan.one_call = argument(argc, argv, 5, 0);
  plan.ends = argument(argc, argv, 6, 0) != 0 ? allocate(plan.batches + 1, sizeof *plan.ends) : NULL;
  return plan;
}

// The end of main.
static inline int finish(const Plan* plan, const char* name, uint64_t checksum) {
  if (plan->ends != NULL) {
    for (uint32_t i = 0; i <= plan->batches; ++i)
      fprintf(stderr, "%llu\n", (unsigned long long)(plan->ends[i] - plan->ends[0]));
  }
  return report(name, checksum);
}
