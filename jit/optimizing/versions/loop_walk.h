// LoopWalk: what a value is computed from within a loop, one instruction after the other, as far as somebody wants to know.
//
//     for (LoopWalk walk(loop, kMost, start); const Instruction* i = walk.next();) {
//       if (llvm::isa<llvm::LoadInst>(i)) return true;
//       walk.follow(*i);
//     }
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instruction.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace hindsight::jit::optimizing {

// Whether it is one of the loop's variables.
inline bool is_header_phi(const llvm::Instruction& instruction, const llvm::Loop& loop) {
  return llvm::isa<llvm::PHINode>(instruction) && instruction.getParent() == loop.getHeader();
}

class LoopWalk {
 public:
  // Looks at so many instructions at most.
  LoopWalk(const llvm::Loop& loop, size_t most) : loop_(loop), most_(most) {}
  LoopWalk(const llvm::Loop& loop, size_t most, const llvm::Value* from) : LoopWalk(loop, most) { add(from); }

  void add(const llvm::Value* value) { rest_.push_back(value); }
  void follow(const llvm::Instruction& instruction) {
    for (const llvm::Value* operand : instruction.operands()) add(operand);
  }
  // An instruction of the loop that was not looked at yet; null: there is none, or it would be one too many.
  const llvm::Instruction* next() {
    while (!rest_.empty()) {
      const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(rest_.back());
      rest_.pop_back();
      if (instruction == nullptr || !loop_.contains(instruction) || !seen_.insert(instruction).second)
        continue;
      was_cut_ = seen_.size() > most_;
      return was_cut_ ? nullptr : instruction;
    }
    return nullptr;
  }
  bool was_cut() const { return was_cut_; }
  bool has_seen(const llvm::Instruction& instruction) const { return seen_.contains(&instruction); }

 private:
  const llvm::Loop& loop_;
  const size_t most_;
  std::vector<const llvm::Value*> rest_;
  llvm::SmallPtrSet<const llvm::Instruction*, 32> seen_;
  bool was_cut_ = false;
};

}  // namespace hindsight::jit::optimizing
