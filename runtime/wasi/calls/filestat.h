// A file's attributes as the guest reads them.
#pragma once

#include <sys/stat.h>

#include "runtime/wasi/abi.h"
#include "runtime/wasi/guest_memory.h"

namespace hindsight::wasi {

Errno store_filestat(GuestMemory memory, uint64_t at, const struct stat& status, Filetype type,
                     const layout::Filestat& to = layout::kFilestat);

}  // namespace hindsight::wasi
