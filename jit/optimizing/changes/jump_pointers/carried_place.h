// Loads whose address comes from a pointer that their loop loads on its way: p, where p = p->next.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <expected>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace hindsight::jit::optimizing {

// The address of a load as a function of what the loop's header carries into a turn.
struct CarriedPlace {
  llvm::Loop* loop = nullptr;
  llvm::LoadInst* load = nullptr;
  llvm::Value* base = nullptr;           // of the memory; defined outside of the loop
  std::set<llvm::PHINode*> carried;      // the header's phis in it
  std::set<llvm::Instruction*> between;  // what is computed from them in the loop, without effects or traps
  // First elements stand for what an inner loop counts: its phi's value when it is entered.
  std::map<llvm::PHINode*, llvm::Value*> starts;

  // Computes it once more, at `b`, from `values` of the header's phis.
  llvm::Value* emit(llvm::IRBuilder<>& b, const std::map<llvm::PHINode*, llvm::Value*>& values) const;
};

// In the innermost loop around the load that carries such a pointer. Error: why there is none.
std::expected<CarriedPlace, std::string_view> find_carried_place(llvm::LoadInst& load,
                                                                 const llvm::LoopInfo& loops);

}  // namespace hindsight::jit::optimizing
