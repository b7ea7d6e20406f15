// The level of the memory hierarchy that answered a load.
#pragma once

#include <cstdint>
#include <string_view>

namespace hindsight {

enum class MemoryLevel : uint8_t { kUnknown, kL1, kL2, kL3, kMemory };

constexpr std::string_view to_string(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kUnknown:
      return "unknown";
    case MemoryLevel::kL1:
      return "L1";
    case MemoryLevel::kL2:
      return "L2";
    case MemoryLevel::kL3:
      return "L3";
    case MemoryLevel::kMemory:
      return "memory";
  }
  return "unknown";
}

}  // namespace hindsight
