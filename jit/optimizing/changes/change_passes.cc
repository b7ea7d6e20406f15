#include "jit/optimizing/changes/change_passes.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <iterator>

#include "jit/optimizing/changes/branch_form/form_pass.h"
#include "jit/optimizing/changes/interleave/interleave_pass.h"
#include "jit/optimizing/changes/jump_pointers/jump_pass.h"
#include "jit/optimizing/changes/prefetch/prefetch_pass.h"
#include "jit/optimizing/changes/prefetch/spread_prefetches.h"
#include "jit/optimizing/changes/values/usual_trips.h"

namespace hindsight::jit::optimizing {
namespace {

template <ChangeKind... kinds>
bool asks_for(const ChangeSet& changes) {
  return (changes.asks_for(kinds) || ...);
}

constexpr ChangePass kPasses[] = {
    {ChangeKind::kInterleave, Stage::kRotated, asks_for<ChangeKind::kInterleave>, add_interleave},
    {ChangeKind::kValue, Stage::kLeavable, asks_for_trips, add_usual_trips},
    // Also lets go of the loads that were kept apart for interleaving.
    {ChangeKind::kPrefetch, Stage::kLeavable, asks_for<ChangeKind::kPrefetch, ChangeKind::kInterleave>,
     add_prefetch},
    {ChangeKind::kJumpPointers, Stage::kWidened, asks_for<ChangeKind::kJumpPointers>, add_keep_turns},
    {ChangeKind::kPrefetch, Stage::kOptimized, asks_for<ChangeKind::kPrefetch>, add_spread_prefetches},
    // Branches, choices and operators of one loop are one change.
    {ChangeKind::kSelect, Stage::kOptimized,
     asks_for<ChangeKind::kSelect, ChangeKind::kBranch, ChangeKind::kValue, ChangeKind::kSpeculate>,
     add_form},
    {ChangeKind::kJumpPointers, Stage::kOptimized, asks_for<ChangeKind::kJumpPointers>, add_jump},
};

class VerifyPass : public llvm::PassInfoMixin<VerifyPass> {
 public:
  VerifyPass(ChangeKind kind, std::string& broken) : kind_(kind), broken_(&broken) {}
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (broken_->empty() && llvm::verifyFunction(function, &out))
      *broken_ = "IR is broken after " + std::string(to_string(kind_)) + ": " + text;
    return llvm::PreservedAnalyses::all();
  }

 private:
  ChangeKind kind_;
  std::string* broken_;
};

}  // namespace

std::vector<ChangePass> passes_of(Stage stage, const ChangeSet& changes) {
  std::vector<ChangePass> passes;
  std::ranges::copy_if(kPasses, std::back_inserter(passes), [&](const ChangePass& pass) {
    return pass.stage == stage && pass.is_needed(changes);
  });
  return passes;
}

void add_verified(llvm::FunctionPassManager& passes, const ChangePass& pass, ChangeSet& changes,
                  std::string& broken) {
  pass.add(passes, changes);
  if (changes.ir.request.verify) passes.addPass(VerifyPass(pass.kind, broken));
}

}  // namespace hindsight::jit::optimizing
