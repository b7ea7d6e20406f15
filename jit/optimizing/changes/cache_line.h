// The line of a cache: what one access brings, and one prefetch.
#pragma once

#include <cstdint>

namespace hindsight::jit::optimizing {

inline constexpr int64_t kLineBytes = 64;

}  // namespace hindsight::jit::optimizing
