#include "jit/abi/trap_code.h"

namespace hindsight::jit {

const char* to_string(TrapCode code) {
  switch (code) {
    case TrapCode::kNone:
      return "no trap";
    case TrapCode::kUnreachable:
      return "unreachable";
    case TrapCode::kMemoryOutOfBounds:
      return "out of bounds memory access";
    case TrapCode::kTableOutOfBounds:
      return "out of bounds table access";
    case TrapCode::kUninitializedElement:
      return "uninitialized element";
    case TrapCode::kIndirectCallTypeMismatch:
      return "indirect call type mismatch";
    case TrapCode::kUndefinedElement:
      return "undefined element";
    case TrapCode::kIntegerDivideByZero:
      return "integer divide by zero";
    case TrapCode::kIntegerOverflow:
      return "integer overflow";
    case TrapCode::kInvalidConversion:
      return "invalid conversion to integer";
    case TrapCode::kStackExhausted:
      return "call stack exhausted";
    case TrapCode::kInterrupted:
      return "interrupted";
    case TrapCode::kTimedOut:
      return "timed out";
    case TrapCode::kHostError:
      return "host function failed";
    case TrapCode::kExit:
      return "exit";
    case TrapCode::kOutOfResources:
      return "out of resources";
    case TrapCode::kNullException:
      return "null exception reference";
    case TrapCode::kUncaughtException:
      return "uncaught exception";
    case TrapCode::kUnalignedAtomic:
      return "unaligned atomic";
    case TrapCode::kExpectedShared:
      return "expected shared memory";
    case TrapCode::kNullReference:
      return "null reference";
    case TrapCode::kNullFunctionReference:
      return "null function reference";
  }
  return "unknown trap";
}

}  // namespace hindsight::jit
