// HostFunction: a function of the embedder that guests may import. BoundHostFunction: the same as one
// instance imports it; generated code passes it as the callee's context, so that the host function learns who
// called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "jit/abi/trampolines.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/vm_context.h"
#include "jit/wasm/types.h"

namespace hindsight::rt {

class Instance;
class Store;

// What a host function sees: arguments in slots[0..params), results to slots[0..results) (8 bytes each, small
// values in the low bytes, the rest zero). `caller` is the instance that imported the function; null if the
// host called it through a reference of its own. Errors become the guest's trap kHostError with the error's
// words. Kind kExit ends the entry as proc_exit (message: the decimal status). Kind kTrap from a nested call
// passes that trap on.
using RawHostFunction = std::function<Status(Instance* caller, uint64_t* slots)>;

struct HostFunction;

struct BoundHostFunction : jit::HostCallee {
  HostFunction* function = nullptr;
  Instance* caller = nullptr;
};

struct HostFunction {
  Store* store = nullptr;
  wasm::FuncType type;
  std::string name;  // "module.name", for messages
  RawHostFunction body;
  bool of_store = false;       // the body serves this store only; any other body serves any store's instances
  const void* code = nullptr;  // the type's host_call trampoline
  jit::TypeId type_held;
  uint32_t type_id = 0;       // its value
  BoundHostFunction unbound;  // with caller null
  jit::FuncRef ref{};         // to `unbound`; ref.owner is null, which marks host functions
};

}  // namespace hindsight::rt
