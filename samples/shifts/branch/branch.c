// A filter over values in a near cache, of which nearly all pass, until half of them, or nearly none, do. What the phases
// are like: how many of a hundred values pass.
#include "../phases.h"

enum { kValues = 1 << 14, kRounds = 4 };

typedef struct {
  uint32_t digest, passed;
} Found;

static inline Found look_at(Found found, uint32_t value, uint32_t limit) {
  if (value < limit) {
    found.digest = (found.digest ^ value) * 0x9e3779b1u;
    ++found.passed;
  } else {
    found.digest += value >> 3;
  }
  return found;
}

KERNEL static uint64_t filter(const uint32_t* values, uint32_t limit, uint64_t sum) {
  Found found = {(uint32_t)sum, (uint32_t)(sum >> 32)};
  for (uint32_t round = 0; round < kRounds; ++round)
    for (uint32_t i = 0; i < kValues; ++i) found = look_at(found, values[i], limit);
  return (uint64_t)found.passed << 32 | found.digest;
}

// The same for all batches.
KERNEL static uint64_t filter_all(const uint32_t* values, uint32_t first, uint32_t second, const Plan* plan) {
  Found found = {0, 0};
  for (uint32_t batch = 0; batch < plan->batches; ++batch) {
    const uint32_t limit = batch < plan->change ? first : second;
    for (uint32_t round = 0; round < kRounds; ++round)
      for (uint32_t i = 0; i < kValues; ++i) found = look_at(found, values[i], limit);
    mark(plan, batch + 1);
  }
  return (uint64_t)found.passed << 32 | found.digest;
}

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv, 97, 50);
  const uint32_t first = (uint32_t)((uint64_t)plan.first * 0xffffffffu / 100);
  const uint32_t second = (uint32_t)((uint64_t)plan.second * 0xffffffffu / 100);
  uint32_t* values = allocate(kValues, sizeof *values);
  uint64_t seed = 1;
  for (uint32_t i = 0; i < kValues; ++i) values[i] = (uint32_t)next_random(&seed);
  uint64_t sum = 0;
  mark(&plan, 0);
  if (plan.one_call) {
    sum = filter_all(values, first, second, &plan);
  } else {
    for (uint32_t batch = 0; batch < plan.batches; ++batch) {
      sum = filter(values, batch < plan.change ? first : second, sum);
      mark(&plan, batch + 1);
    }
  }
  return finish(&plan, "branch", sum);
}
