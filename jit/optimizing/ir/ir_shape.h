// The shape of what a compilation made: its functions and their loops, and what these consist of. It names no value and no
// block, so that it changes where the code does and not where LLVM numbers otherwise. Tests compare it.
#pragma once

#include <string>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// What each line of a shape begins with, at the beginning of OptimizeResult::dump: a comment for LLVM.
inline constexpr const char* kShapePrefix = ";shape ";

// Each function has a line with what it contains outside of loops. Each loop has one in the order of the code, with what
// it contains outside of its own inner loops, which are indented below it. What is not there is not said. Code that ends
// in a trap does not count.
//
//   function: 3 loops, 1 prefetch; outside of them 1 load
//     loop of 2 blocks: 4 phis, looks at cell 0
//       loop of 1 block: 3 phis, 2 loads, 1 prefetch
//       loop of 1 block: 3 phis, 2 loads, vectors of <4 x i32>
//
// "Looks at a cell" is said of what reads whether its change is enabled, or counts iterations for a trial.
// Under a line: weights of its branches that are not those of traps.
std::string shape_of(IrModule& ir);

}  // namespace hindsight::jit::optimizing
