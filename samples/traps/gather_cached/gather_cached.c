// The gather with 4 dependent operations on each value; see ../../memory/gather.h. With a column of 16 KB (arguments 12 11
// 600000) its data never leaves the first-level cache: a prefetch here is work for nothing.
#define NAME "gather_cached"
#define WORK 4
#include "../../memory/gather.h"
