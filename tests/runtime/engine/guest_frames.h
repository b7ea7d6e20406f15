// In which code is the guest? For host functions that tests give to a guest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "jit/code/code_registry.h"
#include "runtime/engine/handles.h"

namespace hindsight::rt {

// The code that called the host function which calls this. Frames are chained by rbp: tests, runtime and guest keep it.
[[gnu::noinline]] inline std::optional<jit::RegisteredCode> caller_of_the_host(EngineHandle& engine) {
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  for (int depth = 0; depth < 64 && frame != nullptr; ++depth) {
    if (auto found = engine.code().registry().find(reinterpret_cast<const std::byte*>(frame[1]) - 1))
      return found;
    frame = reinterpret_cast<const uintptr_t*>(frame[0]);
  }
  return std::nullopt;
}

}  // namespace hindsight::rt
