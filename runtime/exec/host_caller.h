// Where in guest code the host function that runs now was called from.
#pragma once

#include "runtime/exec/guest_thread.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

// The return address of the guest's call: in generated code, or in a bridge if the host itself called. Only
// from inside a host function of this store; null elsewhere. Three loads.
inline const void* host_call_return_address(const Store& store) {
  // host_frame is the frame of dispatch_host_call; its caller is the host_call bridge, which keeps an rbp
  // frame (jit/abi/trampolines.h) and was itself called by the guest.
  if (store.activation == nullptr || store.activation->host_frame == 0) return nullptr;
  const auto bridge = *reinterpret_cast<const uintptr_t*>(store.activation->host_frame);
  return *reinterpret_cast<void* const*>(bridge + sizeof(uintptr_t));
}

}  // namespace hindsight::rt
