// What prefetches fetch, in words, for tests: the slices of the prefetch pass, and what the like of it fetch.
//
//   ahead in @40:
//     i: goes by 1
//     a: @47 at [clamp(4*i + 4*D)]
//     fetch [4*a + 65536] for @52
//
// It is read from the code that a pass made (value_text.h), before other passes have had it. So are the choices that it makes
// branches of, where loads wait for them.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/PassManager.h>

#include <vector>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

// What each line begins with, at the beginning of OptimizeResult::dump.
inline constexpr const char* kFetchPrefix = ";fetch ";

// Where a dump is asked for: adds a pass that appends lines to ChangeSet::fetches for the prefetches that say what they are for
// (copy_origin.h) and were not told yet. Copies of a loop that have the same have them once.
void add_fetch_text(llvm::FunctionPassManager& passes, ChangeSet& changes);

// For a dump: appends what these choices of a loop choose between, as long as they are choices. `change`: the
// loop that has the change.
void tell_choices(ChangeSet& changes, const llvm::Function& function, const llvm::LoopInfo& loops,
                  const llvm::Loop& loop, WasmOffset change,
                  const std::vector<const llvm::Instruction*>& choices);

}  // namespace hindsight::jit::optimizing
