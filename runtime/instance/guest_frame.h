// GuestFrame: one function of a wasm backtrace.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/ids.h"

namespace hindsight::wasm {
class Module;
}

namespace hindsight::rt {

struct GuestFrame {
  std::shared_ptr<const wasm::Module> module;
  FuncIndex function;
  std::optional<WasmOffset> offset;
  bool inlined = false;
};

inline constexpr size_t kMaxBacktraceFrames = 100;

}  // namespace hindsight::rt
