// Events handled through a table of functions (../dispatch.h), where 96 % of the events are of one kind. Guarded
// inlining of the usual target is for this.
#define NAME "call_dominant"
#define REPETITIONS 24000
#define SEED 40
#define KIND(seed) (random_below(seed, 100) < 96 ? 0 : 1 + random_below(seed, 3))
#include "../dispatch.h"
