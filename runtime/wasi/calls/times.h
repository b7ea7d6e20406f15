// Times: the guest counts nanoseconds in 64 unsigned bits, the host has timespec.
#pragma once

#include <cstdint>
#include <ctime>

#include "runtime/wasi/abi.h"
#include "runtime/wasi/errno.h"

namespace hindsight::wasi {

// kOverflow where the time is before 1970 or after 2554.
Answer<uint64_t> to_nanoseconds(timespec time);

// What utimensat wants for a guest's pair of times; kInval for contradicting or unknown fstflags.
struct TimePair {
  timespec values[2];  // access, modification
};
Answer<TimePair> to_time_pair(uint64_t atim, uint64_t mtim, uint32_t flags);

// The host's clock; kInval for an id that does not exist.
Answer<clockid_t> host_clock(uint32_t id);

}  // namespace hindsight::wasi
