// From the host's errno to the guest's.
#pragma once

#include <expected>

#include "runtime/wasi/abi.h"

namespace hindsight::wasi {

// A value, or the errno that the guest gets.
template <typename T>
using Answer = std::expected<T, Errno>;

// Errors that preview 1 has no number for become kIo.
Errno from_host(int host_errno);

// The present errno of the thread; to be called directly after the failed call.
Errno last_errno();

}  // namespace hindsight::wasi
