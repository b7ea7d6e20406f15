#include "jit/optimizing/changes/branch_form/chosen_ways.h"

#include "jit/optimizing/changes/branch_form/form_parameters.h"
#include "jit/optimizing/changes/branch_form/if_conversion.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// What a value hangs on within an iteration.
struct Origins {
  bool has_phi = false;   // the phi of the loop's header
  bool has_load = false;  // some load
};

Origins origins_of(const Value* value, const PHINode& phi, const llvm::Loop& loop) {
  Origins origins;
  LoopWalk walk(loop, kMostWalkedToAChoice, value);
  while (const Instruction* const instruction = walk.next()) {
    origins.has_phi |= instruction == &phi;
    origins.has_load |= llvm::isa<llvm::LoadInst>(instruction);
    if (!is_header_phi(*instruction, loop)) walk.follow(*instruction);
  }
  return origins;
}

// What says which side a choice takes. Of a minimum both sides do.
std::vector<const Value*> deciders_of(const Instruction& choice) {
  if (llvm::isa<llvm::SelectInst, llvm::CastInst>(choice)) return {choice.getOperand(0)};
  return {choice.getOperand(0), choice.getOperand(1)};
}

}  // namespace

ChosenWays::ChosenWays(const llvm::Loop& loop, const llvm::LoopInfo& loops) : loop_(loop) {
  const llvm::BasicBlock* const latch = loop.getLoopLatch();
  if (!latch) return;
  for (const PHINode& phi : loop.getHeader()->phis()) {
    // Without a load between: that one would have to be waited for all the same.
    LoopWalk walk(loop, kMostWalkedToAChoice, phi.getIncomingValueForBlock(latch));
    while (const Instruction* const instruction = walk.next()) {
      if (is_header_phi(*instruction, loop) || llvm::isa<llvm::LoadInst>(instruction)) continue;
      if (is_choice_or_flag(*instruction) && loops.getLoopFor(instruction->getParent()) == &loop)
        for (const Value* decider : deciders_of(*instruction))
          if (const Origins origins = origins_of(decider, phi, loop); origins.has_phi && origins.has_load)
            choices_[&phi].insert(instruction);
      walk.follow(*instruction);
    }
  }
}

std::vector<Instruction*> ChosenWays::of(const llvm::LoadInst& load) const {
  llvm::SmallPtrSet<const Instruction*, 8> found;
  for (const auto& [phi, choices] : choices_)
    if (origins_of(load.getPointerOperand(), *phi, loop_).has_phi)
      found.insert(choices.begin(), choices.end());
  std::vector<Instruction*> in_order;
  if (found.empty()) return in_order;
  for (llvm::BasicBlock* block : loop_.blocks())
    for (Instruction& instruction : *block)
      if (found.contains(&instruction)) in_order.push_back(&instruction);
  return in_order;
}

}  // namespace hindsight::jit::optimizing
