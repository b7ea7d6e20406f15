// The gather with 100 dependent operations on each value; see ../gather.h.
#define NAME "gather_w100"
#define WORK 100
#include "../gather.h"
