// LLVM's passes and code generation: IrModule in, relocatable object out.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "jit/code/code_version.h"
#include "jit/optimizing/budget.h"
#include "jit/optimizing/changes/change_set.h"
#include "jit/optimizing/ir/ir_module.h"
#include "jit/optimizing/pass_timer.h"

namespace hindsight::jit::optimizing {

struct EmittedObject {
  llvm::SmallVector<char, 0> bytes;  // ELF
  std::string dump;                  // shape (ir_shape.h), final IR and assembly, where asked for
};

// LLVM's passes, and those of the changes. Appends "optimize" to `times`. Once the budget is over or the code too large they skip what they
// can, and their result is of no use.
Status optimize(IrModule& ir, llvm::TargetMachine& machine, ChangeSet& changes, std::vector<PassTime>& times,
                PassTimer& timer, PassLimits& limits, Budget& budget);

// Code generation. Appends "codegen" to `times`. Errors: kResource, when the budget is over or the code becomes too large.
Result<EmittedObject> emit(IrModule& ir, llvm::TargetMachine& machine, std::vector<PassTime>& times,
                           PassTimer& timer, PassLimits& limits, Budget& budget);

}  // namespace hindsight::jit::optimizing
