// The gather with 28 dependent operations on each value; see ../gather.h.
#define NAME "gather_w28"
#define WORK 28
#include "../gather.h"
