// Events handled through a table of functions (../dispatch.h), where each of four kinds is as frequent as the others and
// comes at random. There is no usual target, but all four together fit into their caller.
#define NAME "call_random"
#define REPETITIONS 4500
#define SEED 52
#define KIND(seed) random_below(seed, 4)
#include "../dispatch.h"
