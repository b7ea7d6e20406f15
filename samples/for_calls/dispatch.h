// Events handled through a table of functions. Included by programs that name themselves and say of which KIND the next
// event is. They differ only in what kinds there are, how many of each and in which order.
//
// Arguments: log2 of the number of events, repetitions (default: REPETITIONS).
#include "../common/sample.h"

typedef uint32_t (*Handler)(uint32_t state, uint32_t value);

static uint32_t on_sample(uint32_t state, uint32_t value) {
  return state + (value ^ (state >> 7));
}
static uint32_t on_reset(uint32_t state, uint32_t value) {
  return value - state;
}
static uint32_t on_scale(uint32_t state, uint32_t value) {
  return state * (value | 1);
}
static uint32_t on_mark(uint32_t state, uint32_t value) {
  return (state << 5 | state >> 27) ^ value;
}

static Handler handlers[4] = {on_sample, on_reset, on_scale, on_mark};

typedef struct {
  uint32_t kind;
  uint32_t value;
} Event;

KERNEL static uint32_t dispatch(const Event* events, uint32_t count, uint32_t state) {
  for (uint32_t i = 0; i < count; ++i) state = handlers[events[i].kind](state, events[i].value);
  return state;
}

int main(int argc, char** argv) {
  const uint32_t count = 1u << argument(argc, argv, 1, 16);
  const uint32_t repetitions = argument(argc, argv, 2, REPETITIONS);

  Event* events = allocate(count, sizeof *events);
  uint64_t seed = SEED;
  for (uint32_t i = 0; i < count; ++i) {
    events[i].kind = KIND(&seed);
    events[i].value = (uint32_t)next_random(&seed);
  }
  // The table is not a constant for the compiler, as one filled by plug-ins is not.
  if (argc > 3) handlers[argument(argc, argv, 3, 0) & 3] = on_mark;

  // No handler forgets the state whole, and the checksum takes each repetition's.
  uint32_t state = 1;
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    state = dispatch(events, count, state);
    checksum = mix(checksum, state);
  }
  return report(NAME, checksum);
}
