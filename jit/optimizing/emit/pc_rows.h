// The object's DWARF line table as a PcMap.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "jit/code/pc_map.h"
#include "jit/optimizing/emit/link_code.h"

namespace hindsight::jit::optimizing {

// Rows for all of `code`: see ir_module.h for what line and column mean. Instructions to which LLVM gives no
// line (merged or moved ones) are counted to the instruction before them in code order. So a stalled or
// faulting one is off by little, rather than lost. Stubs after the text have no wasm offset.
Result<PcMap> make_pc_map(std::span<const char> object, const LinkedCode& code,
                          std::vector<InlineSite> sites);

}  // namespace hindsight::jit::optimizing
