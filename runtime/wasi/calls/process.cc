#include <sched.h>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {

Outcome proc_exit(WasiContext&, GuestMemory, uint32_t code) {
  return Outcome::exit(code);
}

// A guest has no handlers, so a signal to itself does what signals do without one. Most end it, as a shell
// reports it (128 + number), some do nothing, and stopping is not ours to offer.
ErrnoOrExit proc_raise(WasiContext&, GuestMemory, uint32_t signal) {
  constexpr uint32_t kNone = 0, kChld = 16, kCont = 17, kStop = 18, kTstp = 19, kTtin = 20, kTtou = 21,
                     kUrg = 22, kWinch = 27, kLast = 30;
  if (signal > kLast) return {.error = Errno::kInval, .exit_code = {}};
  switch (signal) {
    case kNone:
    case kChld:
    case kCont:
    case kUrg:
    case kWinch:
      return {};
    case kStop:
    case kTstp:
    case kTtin:
    case kTtou:
      return {.error = Errno::kNotsup, .exit_code = {}};
    default:
      return {.error = Errno::kSuccess, .exit_code = 128 + signal};
  }
}

Errno sched_yield(WasiContext& context, GuestMemory) {
  context.unlocked([] { ::sched_yield(); });
  return Errno::kSuccess;
}

}  // namespace hindsight::wasi::calls
