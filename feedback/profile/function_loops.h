// Which loop of a function an instruction is in. A table made once of the loops that validation noted, so that each sample
// costs one search.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

class FunctionLoops {
 public:
  // Linear in the number of loops.
  explicit FunctionLoops(const wasm::FunctionBody& body);
  // The loop around the instruction that has no other around it in between; none: it is in no loop of this function. Loops
  // that nothing reaches are passed over. O(log n).
  std::optional<LoopIndex> innermost(WasmOffset at) const;
  // How many loops are in the loop, at any depth.
  uint32_t inner_loops(LoopIndex loop) const { return inner_loops_[loop.value]; }

 private:
  // From `begin` on, up to where the next one begins.
  struct Stretch {
    uint32_t begin = 0;
    std::optional<LoopIndex> loop;
  };
  void begin_stretch(WasmOffset at, std::optional<LoopIndex> loop);

  std::vector<Stretch> stretches_;  // ascending
  std::vector<uint32_t> inner_loops_;
};

}  // namespace hindsight::feedback
