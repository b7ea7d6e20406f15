#include "tests/jit/optimizing/optimized.h"
