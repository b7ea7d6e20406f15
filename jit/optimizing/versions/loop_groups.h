// Changes by the loop that is had in two versions for them: where a change would be, and what goes on trial together.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/PassManager.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Where a change would be.
struct LoopPlace {
  WasmOffset loop;                 // the wasm loop that would be had in two versions, or in groups
  std::vector<WasmOffset> around;  // the loops around the place, innermost first
  std::set<WasmOffset> loads;      // in the loop
};

// The place of an instruction in the loop, or in a loop within. `at`: what stands for a loop where there is none.
LoopPlace place_of(const IrModule& ir, const llvm::Instruction& instruction, WasmOffset at,
                   const llvm::LoopInfo& loops, const llvm::Loop& loop);

// A wasm loop that a change may have. Only a ChangeSet gives them.
class LoopClaim {
 public:
  WasmOffset loop() const { return loop_; }

 private:
  friend class ChangeSet;
  explicit LoopClaim(WasmOffset loop) : loop_(loop) {}
  WasmOffset loop_;
};

// What goes on trial together: all that is changed in one loop, which is had in two versions.
template <typename Part>
struct LoopGroup {
  llvm::Loop* loop = nullptr;
  LoopClaim claim;
  std::vector<Part> parts = {};
};

template <typename Part>
LoopGroup<Part>& group_of(std::vector<LoopGroup<Part>>& groups, llvm::Loop& loop, const LoopClaim& claim) {
  const auto found = std::ranges::find(groups, &loop, &LoopGroup<Part>::loop);
  return found != groups.end() ? *found : groups.emplace_back(LoopGroup<Part>{&loop, claim});
}

// What is in a loop of another group goes with that one, by `join`. Loops of different groups are disjoint then.
template <typename Part>
std::vector<LoopGroup<Part>> merged(std::vector<LoopGroup<Part>> groups,
                                    const std::function<void(LoopGroup<Part>& around, Part part)>& join) {
  std::ranges::stable_sort(groups, {},
                           [](const LoopGroup<Part>& group) { return group.loop->getLoopDepth(); });
  std::vector<LoopGroup<Part>> apart;
  for (LoopGroup<Part>& group : groups) {
    const auto around = std::ranges::find_if(
        apart, [&](const LoopGroup<Part>& other) { return other.loop->contains(group.loop); });
    if (around == apart.end())
      apart.push_back(std::move(group));
    else
      for (Part& part : group.parts) join(*around, std::move(part));
  }
  return apart;
}

// Why it cannot be had twice: there can be no two versions of it, or it is too large. Empty: it can.
std::string_view why_not_twice(const llvm::Loop& loop, const llvm::DominatorTree& dominators);
// A loop that is left soon is taken with the loop around it, if that can be had twice. `turns_of`: how often a loop goes
// round; 0: nobody knows.
llvm::Loop& with_short_loops(llvm::Loop& loop, const llvm::DominatorTree& dominators,
                             const std::function<double(const llvm::Loop&)>& turns_of);

// Makes the function's loops what versions are made of: simplified, and closed (LCSSA). Keeps loops and dominators true.
void simplify_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace hindsight::jit::optimizing
