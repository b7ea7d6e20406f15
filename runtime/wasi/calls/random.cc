#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {
namespace {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): for
// reproducible runs, not for secrets.
uint64_t next_seeded(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Errno random_get(WasiContext& context, GuestMemory memory, uint32_t buffer, uint32_t length) {
  if (!memory.contains(buffer, length)) return Errno::kFault;
  uint64_t at = buffer;
  uint64_t left = length;
  uint64_t* seeded = context.random_state();
  while (left > 0) {
    if (seeded) {
      const uint64_t value = next_seeded(*seeded);
      const uint64_t step = std::min<uint64_t>(left, sizeof value);
      if (!memory.store_bytes(at, &value, step)) return Errno::kFault;
      at += step;
      left -= step;
      continue;
    }
    const ssize_t got = ::getrandom(memory.base + at, left, 0);
    if (got < 0) {
      if (errno != EINTR) return last_errno();
      if (context.interrupted()) return Errno::kIntr;
      continue;
    }
    at += static_cast<uint64_t>(got);
    left -= static_cast<uint64_t>(got);
  }
  return Errno::kSuccess;
}

}  // namespace hindsight::wasi::calls
