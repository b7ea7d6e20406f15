// Names of what is compiled: the whole function, and code that its running loops enter.
#pragma once

#include <string>

#include "base/ids.h"

namespace hindsight::jit::optimizing {

inline constexpr const char* kEntryName = "function";
inline constexpr const char* kRemainderPrefix = "osr";
inline constexpr const char* kNestPrefix = "nest";

inline std::string osr_name(LoopIndex loop) {
  return kRemainderPrefix + std::to_string(loop.value);
}
inline std::string nest_name(LoopIndex root) {
  return kNestPrefix + std::to_string(root.value);
}

}  // namespace hindsight::jit::optimizing
