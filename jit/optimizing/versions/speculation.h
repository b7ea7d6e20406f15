// Code that is executed where the program perhaps does not come to, on values that it perhaps does not have.
// Whatever they are, such code neither traps nor reads outside of guest memory, and LLVM may not conclude
// anything from its being executed.
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// The divisor of an integer division, or what stands in for it where it would trap.
llvm::Value* harmless_divisor(llvm::IRBuilder<>& b, const llvm::Instruction& division);

class Speculation {
 public:
  Speculation(IrModule& ir, llvm::Function& function, llvm::DebugLoc location)
      : ir_(ir), function_(function), location_(std::move(location)) {}

  // The memory in which an address lies; empty: not known.
  static std::optional<uint32_t> memory_of(const IrModule& ir, const llvm::Value* address,
                                           const llvm::Function& function);

  // Looks up where a memory lies and how long it is, for what is emitted where `b` dominates. Memory only
  // grows: a length stays good. Returns null, or whether the memory has a byte where it may have none.
  llvm::Value* use_memory(llvm::IRBuilder<>& b, uint32_t memory);

  // `address`, or the memory's first byte where an access of so many bytes would not be inside.
  // Precondition: use_memory(), and the memory is not empty.
  llvm::Value* clamp(llvm::IRBuilder<>& b, llvm::Value* address, uint32_t memory, uint64_t bytes) const;

  // Makes a copy harmless whose operands are those of its own place by now: loads of linear memory are
  // clamped, division is by something, and branches are on something.
  // Preconditions: those of clamp(); it is a load, a branch, or only computes but for dividing.
  void make_harmless(llvm::Instruction& copy, const llvm::Instruction& original) const;

 private:
  struct Memory {
    llvm::Value *base, *length;
  };

  IrModule& ir_;
  llvm::Function& function_;
  const llvm::DebugLoc location_;
  std::map<uint32_t, Memory> memories_;
};

// Where an access goes in the guest's memory, in 32 bits. There a frame's slot is the same place whether its distance from the
// stack pointer was added as a number or stands in the instruction. For the program these differ where the sum wraps. What
// runs ahead may guess that it does not.
const llvm::SCEV* guest_address(llvm::ScalarEvolution& evolution, const llvm::Value& pointer);

}  // namespace hindsight::jit::optimizing
