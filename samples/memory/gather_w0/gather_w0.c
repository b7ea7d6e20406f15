// The gather with 0 dependent operations on each value; see ../gather.h.
#define NAME "gather_w0"
#define WORK 0
#include "../gather.h"
