// The clock that this processor can read without the kernel: the time-stamp counter of x86-64. It runs at one rate
// whatever the core's own clock does. In no order with loads and stores near it.
#pragma once

#include <cstdint>

namespace hindsight {

inline uint64_t read_ticks() {
  return __builtin_ia32_rdtsc();
}

}  // namespace hindsight
