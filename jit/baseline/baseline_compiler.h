// The baseline tier: one pass over a function's bytes, machine code out. Linear in the function's size.
#pragma once

#include <memory>

#include "base/ids.h"
#include "base/result.h"
#include "jit/abi/trampolines.h"
#include "jit/code/code_arena.h"
#include "jit/code/code_version.h"
#include "jit/compile_options.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

// Compiles one defined function. Thread-safe: concurrent calls share only the arena. The code is not
// published: the caller registers the version and stores its entry. Errors: kResource (arena full, frame too
// large), kInternal.
Result<std::unique_ptr<CodeVersion>> compile_baseline(const wasm::Module& module, FuncIndex function,
                                                      const CompileOptions& options, CodeArena& arena);

// The asmjit-made bridges between C++ and guest code.
Result<std::unique_ptr<Trampolines>> make_trampolines(CodeArena& arena);

}  // namespace hindsight::jit
