// Operators whose operand is mostly the same number, as a profile has it. There is code for that number, with
// the operator as it was for all others. After B. Calder, P. Feller and A. Eustace, "Value Profiling", MICRO
// 1997, whose guarded specialization this is.
//
//     q = x / d        ->  if (d == 97) q = x / 97      (a multiplication, in a third of a division's time)
//                          else q = x / d
//
//     memory.copy d s n  ->  if (n == 24 && both ends lie within the memory)
//                              three words: all loads, then all stores, so that the two may overlap
//                            else memory.copy d s n     (which also is what traps)
//
// Nothing of this can trap: what would have does so in the operator as it was.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <functional>
#include <string_view>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// The divisor of a division, or the byte count of a call that is marked as a copy or fill (names.h). Null: it
// is neither, or the number is known.
llvm::Value* usual_operand(const llvm::Instruction& instruction);

// Why there can be no code for that number; empty: there can.
std::string_view why_not_usual(const llvm::Instruction& instruction, uint64_t value);

// Where a memory begins and its record, from which its length is read; both the same as long as the function
// runs.
struct MemoryPlace {
  llvm::Value* base = nullptr;
  llvm::Value* record = nullptr;
};
// Which memories a marked call needs to know; none for a division.
std::vector<uint32_t> memories_of(const llvm::Instruction& instruction);

// Gives the operator its second form. `certain`: the operand is that number wherever control comes by.
// Preconditions: usual_operand() is there, why_not_usual() said nothing, and `place` has all of
// memories_of(). Analyses know nothing of the change; blocks may be split.
void use_value(IrModule& ir, llvm::Instruction& instruction, const UsualValue& usual, bool certain,
               const std::function<MemoryPlace(uint32_t memory)>& place);

}  // namespace hindsight::jit::optimizing
