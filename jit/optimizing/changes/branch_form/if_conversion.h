// If-conversion (J. R. Allen et al., "Conversion of Control Dependence to Data Dependence", POPL 1983) of
// branches with all that lies between them and where their ways meet, and the reverse.
//
// LLVM makes a select of a branch only where both arms together are a handful of cheap operations that may be
// executed for nothing. Here the arms may also load and store. An access of an arm that is not chosen goes to
// a place where it does no harm. So nothing is read or written, and nothing traps, that would not have.
//
//     if (c) { t = load p; store t + 1, q; n' = n + 1 }      p' = c ? p : anywhere;  t = load p'
//                                                        ->  q' = c ? q : nowhere;   store t + 1, q'
//     n'' = phi(n, n')                                       n'' = c ? n + 1 : n
//
// Branches within become choices of choices, in the order in which the program decides. So what a condition is where the program
// does not come to it does not matter.
//
//     if (c) { if (++i == m) goto x } else { if (++j == n) goto y }
//                       ->  leaves = c ? i + 1 == m : j + 1 == n;  if (leaves) { if (c) goto x; else goto y }
//                           i' = c ? i + 1 : i;  j' = c ? j : j + 1
#pragma once

#include <llvm/IR/Instructions.h>

#include <optional>

#include "jit/optimizing/changes/branch_form/hammock.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// All of the hammock moves before its branch, which is removed; what its ways had said differently is chosen.
// The blocks that are left empty are deleted, and the join becomes part of the branch's block if nothing else
// leads there. Where ways left the loop, or led aside, one branch does in their place, and which of them it was is decided behind it.
void convert_to_selects(IrModule& ir, const Hammock& hammock);

// A choice: a select, or the smaller or larger of two integers.
bool is_choice(const llvm::Instruction& instruction);
// That, or a condition as a number.
bool is_choice_or_flag(const llvm::Instruction& instruction);
// The choice becomes a branch, with all others of its block on the same condition where that is possible.
// What only one side needs is computed there. `likely`: the share of executions that choose the first
// operand, if the choice itself does not say. Precondition: is_choice_or_flag().
void convert_to_branch(IrModule& ir, llvm::Instruction& choice, std::optional<double> likely);

}  // namespace hindsight::jit::optimizing
