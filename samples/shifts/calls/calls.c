// Events handled through a table of functions, nearly all of which are of one kind, until nearly all are of another.
// What the phases are like: the usual kind, 0 to 5.
#include "../phases.h"

enum { kEvents = 1 << 16, kKinds = 6 };

typedef uint32_t (*Handler)(uint32_t state, uint32_t value);

static uint32_t on_sample(uint32_t state, uint32_t value) { return (state ^ value) * 0x9e3779b1u; }
static uint32_t on_reset(uint32_t state, uint32_t value) { return (state >> 7) + value; }
static uint32_t on_level(uint32_t state, uint32_t value) { return state + (value | 1) * 7; }
static uint32_t on_edge(uint32_t state, uint32_t value) { return (state << 5 | state >> 27) ^ value; }
static uint32_t on_timer(uint32_t state, uint32_t value) { return (state + value) ^ 0x5bd1e995u; }
static uint32_t on_error(uint32_t state, uint32_t value) { return state * 33 + value; }

static const Handler handlers[kKinds] = {on_sample, on_reset, on_level, on_edge, on_timer, on_error};

typedef struct {
  uint32_t kind, value;
} Event;

KERNEL static uint32_t handle(const Event* events, uint32_t state) {
  for (uint32_t i = 0; i < kEvents; ++i) state = handlers[events[i].kind](state, events[i].value);
  return state;
}

// The same for all batches.
KERNEL static uint32_t handle_all(const Event* first, const Event* second, const Plan* plan) {
  uint32_t state = 1;
  for (uint32_t batch = 0; batch < plan->batches; ++batch) {
    const Event* events = batch < plan->change ? first : second;
    for (uint32_t i = 0; i < kEvents; ++i) state = handlers[events[i].kind](state, events[i].value);
    mark(plan, batch + 1);
  }
  return state;
}

static Event* make_events(uint32_t usual, uint64_t seed) {
  Event* events = allocate(kEvents, sizeof *events);
  for (uint32_t i = 0; i < kEvents; ++i) {
    events[i].kind = random_below(&seed, 100) < 96 ? usual % kKinds : random_below(&seed, kKinds);
    events[i].value = (uint32_t)next_random(&seed);
  }
  return events;
}

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv, 0, 5);
  const Event* first = make_events(plan.first, 1);
  const Event* second = make_events(plan.second, 2);
  uint32_t state = 1;
  mark(&plan, 0);
  if (plan.one_call) {
    state = handle_all(first, second, &plan);
  } else {
    for (uint32_t batch = 0; batch < plan.batches; ++batch) {
      state = handle(batch < plan.change ? first : second, state);
      mark(&plan, batch + 1);
    }
  }
  return finish(&plan, "calls", state);
}
