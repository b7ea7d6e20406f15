// What an iteration touches of one record. Compilers give 28 bytes to what holds seven words, and allocators align to 16: such a
// record lies in two lines of the cache as often as not. A prefetch of the field that stalls brings one of them.
#pragma once

#include <llvm/Analysis/LoopInfo.h>

#include <map>
#include <vector>

#include "jit/optimizing/changes/prefetch/prefetch_slice.h"

namespace hindsight::jit::optimizing {

// For the target of each slice of the loop: which places are to be fetched in its stead, in bytes from it. Of the targets in one
// record the first has the record's ends, the others none. Inner loops count as they begin. A target without an entry stands for itself.
using RecordPlaces = std::map<const llvm::Instruction*, std::vector<int64_t>>;
RecordPlaces find_record_places(const llvm::Loop& loop, const std::vector<PrefetchSlice>& slices,
                                const llvm::LoopInfo& loops);

}  // namespace hindsight::jit::optimizing
