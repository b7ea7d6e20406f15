// The passes of all kinds of changes: one table, in the order in which they run.
#pragma once

#include <llvm/IR/PassManager.h>

#include <string>
#include <vector>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

// Where in the pipeline a pass stands.
enum class Stage : uint8_t {
  kRotated,    // LLVM has simplified the function, and loops are counted by their latches
  kLeavable,   // then running loops got the places where they can be left
  kWidened,    // then loops were made fit for vectors: LLVM's second half comes next
  kOptimized,  // LLVM is done with the IR
};

struct ChangePass {
  ChangeKind kind;  // whose it is in the first place
  Stage stage;
  // Whether the function needs it. A pass that is needed takes the slots of its kind, and what they say of each place.
  bool (*is_needed)(const ChangeSet& changes);
  // With what it needs around it. The set outlives the passes.
  void (*add)(llvm::FunctionPassManager& passes, ChangeSet& changes);
};

// Those of a stage that are needed.
std::vector<ChangePass> passes_of(Stage stage, const ChangeSet& changes);
// Adds one, with a look at the function after it if the request asks to verify: `broken` then says what the first of them broke. It
// outlives the passes.
void add_verified(llvm::FunctionPassManager& passes, const ChangePass& pass, ChangeSet& changes,
                  std::string& broken);

}  // namespace hindsight::jit::optimizing
