// The functions of wasi_snapshot_preview1 as an engine imports them: a name, a signature to check against the
// module's import, and a call. The engine needs nothing else of this room but a WasiContext.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/wasi/guest_memory.h"
#include "runtime/wasi/wasi_context.h"

namespace hindsight::wasi {

inline constexpr std::string_view kModuleName = "wasi_snapshot_preview1";

// How a call ended. After kExit the guest must not run on: the engine unwinds it and hands `code` to the
// embedder; `results` were not written.
struct Outcome {
  enum class Kind : uint8_t { kReturned, kExit };
  Kind kind = Kind::kReturned;
  uint32_t code = 0;

  static Outcome returned() { return {}; }
  static Outcome exit(uint32_t code) { return {Kind::kExit, code}; }
  bool exited() const { return kind == Kind::kExit; }
};

struct WasiFunction {
  std::string_view name;
  // Parameters, ':', results; 'i' is i32 and 'I' is i64. "iIi:i" is (i32, i64, i32) -> i32.
  std::string_view signature;
  // `args` holds one slot a parameter and `results` one slot a result. An i32 is the low half of its slot; the
  // upper half of an argument is ignored, that of a result is zero. `memory` is the guest's memory as it is now.
  // Blocks only where the guest asked for it; never throws.
  Outcome (*call)(WasiContext& context, GuestMemory memory, const uint64_t* args, uint64_t* results) noexcept;
};

// What went before preview 1, and programs still import. It is the same but for the layout of subscriptions and of
// files' attributes, and the numbers of fd_seek. It lacks sock_accept, which came later. Descriptors are common to
// both.
inline constexpr std::string_view kUnstableModuleName = "wasi_unstable";
std::span<const WasiFunction> unstable_functions();

// All of them, in the order of the specification. The table lives as long as the process.
std::span<const WasiFunction> functions();

// The one with this name, or null.
const WasiFunction* find_function(std::string_view name);

}  // namespace hindsight::wasi
