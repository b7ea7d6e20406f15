// A gather with work on each value, whose table changes its size. It goes from one that the nearest cache holds to one
// that none holds, or back. What the phases are like: log2 of the entries (4 bytes each) that are looked at.
#include "../phases.h"

enum { kRows = 1 << 16 };

static inline uint64_t work_on(uint64_t digest, uint32_t value) {
#pragma clang loop unroll(full)
  for (uint32_t group = 0; group < 7; ++group)
    value = (value ^ (value >> 15)) * (0x2c1b3c6du + 2 * group) + 0x297a2d39u;
  return mix(digest, value);
}

KERNEL static uint64_t gather(const uint32_t* table, const uint32_t* rows, uint32_t mask, uint32_t turn,
                              uint64_t digest) {
  for (uint32_t i = 0; i < kRows; ++i) digest = work_on(digest, table[(rows[i] + turn) & mask]);
  return digest;
}

// The same for all batches.
KERNEL static uint64_t gather_all(const uint32_t* table, const uint32_t* rows, const Plan* plan) {
  uint64_t digest = 0;
  for (uint32_t batch = 0; batch < plan->batches; ++batch) {
    const uint32_t mask = (1u << (batch < plan->change ? plan->first : plan->second)) - 1;
    const uint32_t turn = batch * 0x9e3779b1u;
    for (uint32_t i = 0; i < kRows; ++i) digest = work_on(digest, table[(rows[i] + turn) & mask]);
    mark(plan, batch + 1);
  }
  return digest;
}

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv, 10, 26);
  const uint32_t largest = plan.first > plan.second ? plan.first : plan.second;
  uint32_t* table = allocate((size_t)1 << largest, sizeof *table);
  uint32_t* rows = allocate(kRows, sizeof *rows);
  for (uint32_t i = 0; i < 1u << largest; ++i) table[i] = i * 2654435761u;
  uint64_t seed = 1;
  for (uint32_t i = 0; i < kRows; ++i) rows[i] = (uint32_t)next_random(&seed);

  uint64_t digest = 0;
  mark(&plan, 0);
  if (plan.one_call) {
    digest = gather_all(table, rows, &plan);
  } else {
    for (uint32_t batch = 0; batch < plan.batches; ++batch) {
      digest = gather(table, rows, (1u << (batch < plan.change ? plan.first : plan.second)) - 1,
                      batch * 0x9e3779b1u, digest);
      mark(&plan, batch + 1);
    }
  }
  return finish(&plan, "data", digest);
}
