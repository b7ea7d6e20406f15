#include "jit/optimizing/changes/interleave/node_lines.h"

#include <algorithm>

#include "jit/optimizing/changes/prefetch/node_fetch.h"

namespace hindsight::jit::optimizing {

NodeLines find_node_lines(const IrModule& ir, const llvm::LoopInfo& loops,
                          const llvm::DominatorTree& dominators, const llvm::Loop& outer,
                          const StallsAt& stalls, const std::vector<llvm::LoadInst*>& waits) {
  NodeLines lines;
  NodeWalks walks(ir, loops);
  // By walk: the load that comes to its node first, and where in the node that is.
  struct First {
    const llvm::LoadInst* load = nullptr;
    int64_t offset = 0;
  };
  std::map<size_t, First> first_of;
  for (const llvm::LoadInst* load : waits) {
    const auto place = walks.place_of(*load);
    if (!place || !walks.is_at_once(*place)) continue;
    const llvm::Loop& walk = walks.loop_of(*place);
    if (&walk == &outer || !outer.contains(&walk) || !walk.contains(load)) continue;
    First& first = first_of[place->walk];
    if (first.load == nullptr || dominators.dominates(load, first.load))
      first = {.load = load, .offset = place->offset};
  }
  if (first_of.empty()) return lines;
  std::vector<llvm::LoadInst*> others = waits;
  for (llvm::BasicBlock* block : outer.blocks())
    for (llvm::Instruction& instruction : *block)
      if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && stalls(*load))
        others.push_back(load);
  for (const llvm::LoadInst* load : others) {
    const auto place = walks.place_of(*load);
    if (!place || !first_of.contains(place->walk)) continue;
    const First& first = first_of.at(place->walk);
    // What is read of the node that the loop carries may be read before the next one is waited for.
    const llvm::BasicBlock* const latch = walks.loop_of(*place).getLoopLatch();
    if (load == first.load || !(dominators.dominates(first.load, load) ||
                                (place->is_carried && dominators.dominates(first.load->getParent(), latch))))
      continue;
    const auto fetch = walks.fetch_for(*load, *place);
    if (!fetch) continue;
    lines.covered.insert(load);
    for (const int64_t at : fetch->places) lines.with[first.load].push_back(at - first.offset);
  }
  return lines;
}

void add_node_lines(const IrModule& ir, const llvm::LoopInfo& loops, const llvm::DominatorTree& dominators,
                    const llvm::Loop& outer, const StallsAt& stalls, const std::vector<KnownLoad*>& steps) {
  std::vector<llvm::LoadInst*> waits;
  for (const KnownLoad* known : steps) waits.push_back(known->load);
  const NodeLines lines = find_node_lines(ir, loops, dominators, outer, stalls, waits);
  for (KnownLoad* known : steps)
    if (const auto with = lines.with.find(known->load); with != lines.with.end())
      known->rest_of_node = with->second;
}

}  // namespace hindsight::jit::optimizing
