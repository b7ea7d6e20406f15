// From an asmjit CodeHolder to bytes in the arena: the only place that knows that code is written through one
// address and runs at another.
#pragma once

#include <asmjit/asmjit.h>

#include "base/result.h"
#include "jit/code/code_arena.h"

namespace hindsight::jit {

// An asmjit error as ours. kResource when memory ran out, else kInternal. `error` is not kErrorOk.
std::unexpected<Error> asmjit_error(asmjit::Error error, const char* doing);

// The environment that all our code is made for.
asmjit::Environment code_environment();

// Keeps the first error of an emission, so that it need not be checked instruction by instruction.
class FirstError final : public asmjit::ErrorHandler {
 public:
  asmjit::Error first = asmjit::kErrorOk;
  void handleError(asmjit::Error error, const char*, asmjit::BaseEmitter*) override {
    if (!first) first = error;
  }
};

// Flattens, relocates for the executable address and copies through the writable view. The code holder is
// spent afterwards.
Result<CodeAllocation> place_code(asmjit::CodeHolder& code, CodeArena& arena, size_t alignment = 64);

}  // namespace hindsight::jit
