// What an LWP instruction raises instead of finishing, as a value: the exceptions of the real ones. Not a
// base Error: the instructions are emulated in signal handlers, where nothing may be allocated.
#pragma once

#include <cstdint>
#include <expected>

#include "base/result.h"

namespace hindsight::lwp {

enum class FaultKind : uint8_t {
  kInvalidOpcode,      // #UD: no LWP, or not enabled. A native program sees SIGILL.
  kGeneralProtection,  // #GP: a control block that cannot be. SIGSEGV with si_addr 0.
  kPageFault,          // #PF: memory that cannot be read or written. SIGSEGV with si_addr.
};

struct Fault {
  FaultKind kind = FaultKind::kInvalidOpcode;
  uint64_t address = 0;     // #PF: the first byte of the access that failed; #GP: the control block; else 0
  const char* reason = "";  // a phrase with static lifetime
  friend bool operator==(const Fault& a, const Fault& b) {
    return a.kind == b.kind && a.address == b.address;
  }
};

// A fault means that nothing happened: the instruction may be executed again once its cause is gone, as with
// the real ones. (Counters already flushed into memory stay there; flushing them again changes nothing.)
template <typename T>
using Outcome = std::expected<T, Fault>;

const char* to_string(FaultKind kind);  // "#UD", "#GP", "#PF"

// For callers that live by Result: kUnsupported, kUsage and kResource.
Error to_error(const Fault& fault);

}  // namespace hindsight::lwp
