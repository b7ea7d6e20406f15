// Events handled through a table of functions (../../call/dispatch.h), where each of four kinds is as frequent as the
// others and comes at random. Testing for a usual target costs a misprediction as the call does, and there is no usual
// target.
#define NAME "call_random"
#define REPETITIONS 4500
#define SEED 52
#define KIND(seed) random_below(seed, 4)
#include "../../call/dispatch.h"
