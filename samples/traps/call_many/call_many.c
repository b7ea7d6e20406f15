// Events handled through a table of functions, where each of sixteen kinds is as frequent as the others and comes at
// random. No few targets take half of the calls, so comparing with any of them is work for nothing.
//
// Arguments: log2 of the number of events, repetitions.
#include "../../common/sample.h"

enum { kKinds = 16 };

typedef uint32_t (*Handler)(uint32_t state, uint32_t value);

// As many functions of one shape, which no linker folds: each has a constant and a shift of its own.
#define HANDLER(n) \
  static uint32_t on_##n(uint32_t state, uint32_t value) { return (state << (n + 1) | state >> (31 - n)) + value * (2 * n + 1); }
HANDLER(0) HANDLER(1) HANDLER(2) HANDLER(3) HANDLER(4) HANDLER(5) HANDLER(6) HANDLER(7)
HANDLER(8) HANDLER(9) HANDLER(10) HANDLER(11) HANDLER(12) HANDLER(13) HANDLER(14) HANDLER(15)

static Handler handlers[kKinds] = {on_0, on_1, on_2,  on_3,  on_4,  on_5,  on_6,  on_7,
                                   on_8, on_9, on_10, on_11, on_12, on_13, on_14, on_15};

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
  const uint32_t repetitions = argument(argc, argv, 2, 4500);

  Event* events = allocate(count, sizeof *events);
  uint64_t seed = 54;
  for (uint32_t i = 0; i < count; ++i) {
    events[i].kind = random_below(&seed, kKinds);
    events[i].value = (uint32_t)next_random(&seed);
  }
  // The table is not a constant for the compiler, as one filled by plug-ins is not.
  if (argc > 3) handlers[argument(argc, argv, 3, 0) % kKinds] = on_0;

  uint32_t state = 1;
  uint64_t checksum = 0;
  for (uint32_t r = 0; r < repetitions; ++r) {
    state = dispatch(events, count, state);
    checksum = mix(checksum, state);
  }
  return report("call_many", checksum);
}
