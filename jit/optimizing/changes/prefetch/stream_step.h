// Loads of a slice that go through memory in even steps: what they read ahead can be asked about once a strip.
#pragma once

#include "jit/optimizing/changes/prefetch/prefetch_slice.h"

namespace hindsight::jit::optimizing {

// By how many bytes the address of a load among the slice's operations moves in an iteration, at most kLongestStreamStep
// either way. It is read from the operations, so that an index that wraps, or whose low bits are set by force, is elsewhere
// at times: a good guess, and no more. 0: it moves by no fixed amount.
int64_t stream_step(const PrefetchSlice& slice, const llvm::LoadInst& load);

}  // namespace hindsight::jit::optimizing
