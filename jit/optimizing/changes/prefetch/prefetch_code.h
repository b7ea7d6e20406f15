// What a prefetch adds to a loop: the slices, their cell, and the recurrences that run ahead (prefetch_pass.h shows it).
#pragma once

#include <vector>

#include "jit/optimizing/changes/change_set.h"
#include "jit/optimizing/changes/prefetch/prefetch_slice.h"
#include "jit/optimizing/changes/prefetch/record_span.h"
#include "jit/optimizing/versions/loop_versions.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {

// All slices of one loop.
struct LoopWork {
  llvm::Loop* loop = nullptr;
  LoopClaim claim;
  bool has_rows = false;  // its length is looked up each time that it is entered: it may be short
  std::vector<PrefetchSlice> slices;
  std::vector<Slot*> slots;  // one a slice
  RecordPlaces places = {};  // of all slices' targets
};

// A loop that is had in two versions for the slices in it, which may be of inner loops.
struct VersionedWorks {
  llvm::Loop* loop = nullptr;
  LoopClaim claim;
  std::vector<LoopWork> works = {};
};

// `backedges`: what emit_backedges() said of the loop. With a count it goes in strips. All slots have the cell `cell`.
void emit_prefetches(ChangeSet& changes, llvm::Function& function, LoopWork& work, uint32_t cell,
                     Backedges backedges);
// The same where the choice is made between strips of another loop, or of one that is not counted. Precondition:
// why_not_in_versions() says nothing of `group.loop`. Recurrences are of that loop.
void emit_prefetches_in_versions(ChangeSet& changes, llvm::Function& function, VersionedWorks& group,
                                 uint32_t cell);

}  // namespace hindsight::jit::optimizing
