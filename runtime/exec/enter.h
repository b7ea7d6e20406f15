// Entering guest code, and how traps leave it.
//
// A trap never unwinds C++ frames that own anything. Generated code calls a builtin, and the builtin's worker returns.
// Only then a function without destructors jumps to Trampolines::unwind, which restores the stack of the innermost entry.
// Faults and interruptions reach the same function through a rewritten signal context.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "jit/abi/builtins.h"
#include "jit/abi/trampolines.h"
#include "runtime/instance/instance.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

// The table that every VmContext of this process points to.
const jit::Builtins& builtins();

// Calls `function` with arguments in `slots` and its results there afterwards; slots must hold max(params, results).
// `invoke` is trampolines->invoke(type of function). May be nested (a host function calling back). Errors: kUsage where
// another thread uses the store (nothing is touched), kTrap with the trap's name, kExit with the decimal status; details
// in store.trap.
Status enter(Store& store, jit::InvokeFn invoke, const jit::FuncRef& function, uint64_t* slots);
// The same, looking the trampoline up. kResource if it cannot be made.
Status enter(Store& store, const jit::FuncRef& function, uint64_t* slots);
// The module's start function, if it has one.
Status run_start(Instance& instance);

struct Activation;
// Puts back the state of thread and store that this entry needs to go on. For the end of a function of the host's, where the
// host may have let another entry run. On the entry's stack and thread.
void go_on_in(Activation& entry);

// HostCallee::dispatch of every host function; Store uses it.
uint32_t dispatch_host_call(jit::HostCallee* callee, uint64_t* slots);

// The error that a running host function of this store returns to throw an exception with these values, as
// words of slots. kResource if there is no memory for one.
std::unexpected<Error> throw_from_host(Store& store, const Tag& tag, const uint64_t* values);

// "wasm trap: name" as Error; the trap's name is the message's beginning.
Error to_error(const GuestTrap& trap);

}  // namespace hindsight::rt
