// Emits what interleave_pass.h describes.
#pragma once

#include <map>

#include "jit/optimizing/changes/interleave/interleave_shape.h"

namespace hindsight::jit::optimizing {

// A load whose address is known ahead of it, with what computes that, operands before users.
struct KnownLoad {
  llvm::LoadInst* load = nullptr;
  std::vector<llvm::Instruction*> operations;
  // Of loops within the search: what their phis begin with, in their place.
  std::map<llvm::Value*, llvm::Value*> firsts = {};
  // What else is fetched with it, in bytes from its place (node_lines.h).
  std::vector<int64_t> rest_of_node = {};

  llvm::Value* first_of(llvm::Value* value) const {
    const auto found = firsts.find(value);
    return found == firsts.end() ? value : first_of(found->second);
  }
};

struct InterleaveStarts {
  // Loads of heads, at places that are looked up and that all iterations come to: what a group can fetch
  // before its heads need it. Made of the outer loop's induction variables, with their steps.
  std::vector<KnownLoad> heads;
  std::vector<std::pair<llvm::PHINode*, llvm::Value*>> inductions;
  // Loads of the search, in one iteration, made of its header's phis: what is to be fetched for its next
  // step. One of those that share a line.
  std::vector<KnownLoad> steps;
};
// `is_near`: loads that addresses of steps may be made of, as they hardly ever wait. Each is in the cache, or is no memory of the
// guest's. None: an address is computed.
using NearLoads = std::function<bool(const llvm::LoadInst&)>;
InterleaveStarts find_interleave_starts(const IrModule& ir, const InterleaveShape& shape,
                                        llvm::DominatorTree& dominators, llvm::ScalarEvolution& evolution,
                                        const NearLoads& is_near = nullptr);

// What the next turn of a loop within the search loads, made of that loop's header's phis and of what is computed before.
std::vector<KnownLoad> find_turn_starts(llvm::Loop& within, llvm::ScalarEvolution& evolution);

// How many searches go into a vector, each in a lane of its own. This needs a step that is one block of
// operations that vectors have, with gathers of whole words for loads. 0: they do not.
unsigned search_lanes(const IrModule& ir, const InterleaveShape& shape);

// Precondition: `backedges`, an i64, is how often the outer loop's backedge will be taken, known at its
// preheader. The loops there were become the plain copy. No analysis survives, loops are neither simplified
// nor in LCSSA form.
void emit_interleaved(IrModule& ir, llvm::Function& function, const InterleaveShape& shape,
                      const InterleaveStarts& starts, llvm::Value* backedges, uint32_t cell,
                      const llvm::DebugLoc& location);

}  // namespace hindsight::jit::optimizing
