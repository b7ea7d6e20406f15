// LLVM's passes and code generation: IrModule in, relocatable object out.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "jit/code/code_version.h"
#include "jit/optimizing/ir_module.h"
#include "jit/optimizing/pass_timer.h"
#include "jit/optimizing/prefetch_pass.h"

namespace hindsight::jit::optimizing {

struct EmittedObject {
  llvm::SmallVector<char, 0> bytes;  // ELF
  std::string dump;                  // final IR and assembly, if the request asked for them
};

// LLVM's passes. They end early, with false, if a hinted load gets no prefetch (the plan's sites say why):
// finding it kept it apart from other loads, which the rest of the passes would suffer from. The module is of
// no use then. Appends "optimize" to `times`.
bool optimize(IrModule& ir, llvm::TargetMachine& machine, PrefetchPlan& prefetches,
              std::vector<PassTime>& times, PassTimer& timer, PassLimits& limits);

// Code generation. Appends "codegen" to `times`.
Result<EmittedObject> emit(IrModule& ir, llvm::TargetMachine& machine, std::vector<PassTime>& times,
                           PassTimer& timer, PassLimits& limits);

// Whether nobody wants the result any more. Both of the above then skip what they can; their result is of no
// use.
bool is_abandoned(const OptimizeRequest& request);

// CPU seconds of the calling thread.
double thread_seconds();

}  // namespace hindsight::jit::optimizing
