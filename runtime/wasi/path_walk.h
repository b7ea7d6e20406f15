// Component-by-component path resolution for kernels without openat2. See path_resolver.h for the promise.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/wasi/errno.h"
#include "runtime/wasi/own_files.h"
#include "runtime/wasi/owned_fd.h"

namespace hindsight::wasi {

// As PathResolver::open; `path` is not empty and not absolute. With `own` it is kNotcapable as soon as the path comes to a
// folder of the embedder's.
Answer<OwnedFd> open_by_walking(int directory, const std::string& path, int flags, uint32_t mode,
                                const OwnFiles* own);

}  // namespace hindsight::wasi
