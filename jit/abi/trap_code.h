// Why guest code stopped. Names are those of the specification's test suite where it has one.
#pragma once

#include <cstdint>

namespace hindsight::jit {

enum class TrapCode : uint32_t {
  kNone = 0,
  kUnreachable,
  kMemoryOutOfBounds,
  kTableOutOfBounds,
  kUninitializedElement,  // call_indirect through a null entry ("uninitialized element")
  kIndirectCallTypeMismatch,
  kUndefinedElement,  // call_indirect beyond the table ("undefined element")
  kIntegerDivideByZero,
  kIntegerOverflow,
  kInvalidConversion,  // float to int of NaN ("invalid conversion to integer")
  kStackExhausted,     // "call stack exhausted"
  kInterrupted,        // by the embedder
  kHostError,          // a host function failed; ThreadState::pending_error has its words
  kExit,               // proc_exit: an unwinding, not a failure
  kOutOfResources,     // code or memory for a function could not be had
  kNullException,      // throw_ref of null ("null exception reference")
  kUncaughtException,  // no handler took it
  kUnalignedAtomic,    // an atomic access at an address that is no multiple of its size ("unaligned atomic")
  kExpectedShared,     // a wait on a memory that no other thread can change ("expected shared memory")
  kNullReference,      // ref.as_non_null of null ("null reference")
  kNullFunctionReference,  // call_ref of null ("null function reference")
  kTimedOut,               // the time limit of the call has passed
};

// "out of bounds memory access", ... ; never null.
const char* to_string(TrapCode code);

}  // namespace hindsight::jit
