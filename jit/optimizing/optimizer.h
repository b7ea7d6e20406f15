// The optimizing tier's face. Its implementation (LLVM 19: IR generation, passes, ORC) is the shared object
// libhindsight-optimizing.so, opened with dlopen when something first gets hot, because linking LLVM into the
// host costs 50 ms at every start. This header knows no LLVM type.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "jit/code/code_arena.h"
#include "jit/code/code_version.h"
#include "jit/compile_options.h"
#include "jit/hints.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

struct OptimizeRequest {
  std::shared_ptr<const wasm::Module> module;
  FuncIndex function;
  // Loops that running baseline code may enter by OSR; each costs one more copy of the function's remainder.
  std::vector<LoopIndex> osr_loops;
  // Of a function that nobody calls again as far as is known: these loops' entries alone, in half of the
  // time; the version's `entry` is null. A function that calls itself is compiled whole nevertheless.
  bool loop_entries_only = false;
  CompileOptions options;
  Tuning tuning;
  FunctionHints hints;
  // Null, or a wish of whoever waits: once true, the compilation ends soon (what is left of a pass, some
  // milliseconds at most) with an error of kind kResource. Outlives the call.
  const std::atomic<bool>* abandoned = nullptr;
  bool dump_ir = false;  // keep the final IR and assembly in OptimizeResult::dump
  bool time_passes = false;  // fill OptimizeResult::passes; costs a few percent of the compile
};

struct OptimizeResult {
  std::unique_ptr<CodeVersion> version;
  std::string dump;
  std::vector<std::string> begun_anew;  // why, for each time that the compilation had to begin again
  std::string left_out;  // passes that a function of this size does not get, and why; empty: none
  std::vector<PassCost> passes;  // LLVM's and ours, code generation's too, by descending time
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Thread-safe; each call works in an LLVM context of its own. The code is not published. Never prints.
  virtual Result<OptimizeResult> compile(const OptimizeRequest& request, CodeArena& arena) = 0;
  virtual std::string description() const = 0;  // "LLVM 19.1.7, znver4, avx512..."
  // The shared objects that decide, with a request and this processor, what compile() makes: its own and LLVM's.
  virtual std::vector<std::string> files() const = 0;
};

// Exported by libhindsight-optimizing.so under this name; the caller owns the result. Null on failure.
inline constexpr const char* kOptimizerFactoryName = "hindsight_create_optimizer";
using OptimizerFactory = Optimizer* (*)();

}  // namespace hindsight::jit
