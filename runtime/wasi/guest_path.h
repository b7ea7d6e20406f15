// A path as the guest passes it: an offset and a length, not terminated.
#pragma once

#include <climits>
#include <string>

#include "runtime/wasi/errno.h"
#include "runtime/wasi/guest_memory.h"

namespace hindsight::wasi {

// A copy of the path. kFault outside memory; kInval with a NUL inside, which the host would take for the
// end; kNametoolong where the host would refuse it anyway.
inline Answer<std::string> load_path(GuestMemory memory, uint32_t offset, uint32_t length) {
  if (!memory.contains(offset, length)) return std::unexpected(Errno::kFault);
  if (length >= PATH_MAX) return std::unexpected(Errno::kNametoolong);
  std::string path(length, '\0');
  if (length != 0) std::memcpy(path.data(), memory.base + offset, length);
  if (path.find('\0') != std::string::npos) return std::unexpected(Errno::kInval);
  return path;
}

}  // namespace hindsight::wasi
