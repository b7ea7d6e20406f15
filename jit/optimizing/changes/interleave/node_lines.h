// The lines of the nodes that searches come to (prefetch/node_fetch.h). One that is run ahead gives way where it waits for a node. If
// all lines of the node are fetched then, it need not wait at the others: at the keys behind the first line, at the child's address.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Whether a load stalls, by its offset in the module.
using StallsAt = std::function<bool(const llvm::LoadInst&)>;

struct NodeLines {
  // By the load that waits for a node: what else is fetched then, in bytes from that load's place.
  std::map<const llvm::LoadInst*, std::vector<int64_t>> with;
  llvm::SmallPtrSet<const llvm::LoadInst*, 8> covered;  // loads that need not wait then
};

// `waits`: loads of the loop `outer` that are waited for. What is fetched with them is for others of these, and for loads that stall.
NodeLines find_node_lines(const IrModule& ir, const llvm::LoopInfo& loops,
                          const llvm::DominatorTree& dominators, const llvm::Loop& outer,
                          const StallsAt& stalls, const std::vector<llvm::LoadInst*>& waits);

// The same for what is fetched for a search's next step.
void add_node_lines(const IrModule& ir, const llvm::LoopInfo& loops, const llvm::DominatorTree& dominators,
                    const llvm::Loop& outer, const StallsAt& stalls, const std::vector<KnownLoad*>& steps);

}  // namespace hindsight::jit::optimizing
