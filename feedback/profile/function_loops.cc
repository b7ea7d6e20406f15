#include "feedback/profile/function_loops.h"

#include <algorithm>

namespace hindsight::feedback {

FunctionLoops::FunctionLoops(const wasm::FunctionBody& body) : inner_loops_(body.loops.size()) {
  std::vector<LoopIndex> open;
  // Closes what ends in front of this place. Invariant: loops are in byte order and nested.
  const auto close = [&](std::optional<WasmOffset> at) {
    while (!open.empty() && (!at || body.loops[open.back().value].end <= *at)) {
      const WasmOffset end = body.loops[open.back().value].end;
      open.pop_back();
      begin_stretch(end, open.empty() ? std::nullopt : std::optional(open.back()));
    }
  };
  for (uint32_t i = 0; i < body.loops.size(); ++i) {
    if (!body.loops[i].reachable) continue;
    close(body.loops[i].offset);
    open.push_back(LoopIndex(i));
    begin_stretch(body.loops[i].offset, open.back());
  }
  close(std::nullopt);
  for (size_t i = body.loops.size(); i-- > 0;)
    if (const std::optional<LoopIndex> parent = body.loops[i].parent)
      inner_loops_[parent->value] += 1 + inner_loops_[i];
}

void FunctionLoops::begin_stretch(WasmOffset at, std::optional<LoopIndex> loop) {
  if (stretches_.empty() || stretches_.back().begin != at.value)
    stretches_.push_back({at.value, loop});
  else
    stretches_.back().loop = loop;
}

std::optional<LoopIndex> FunctionLoops::innermost(WasmOffset at) const {
  const auto next =
      std::upper_bound(stretches_.begin(), stretches_.end(), at.value,
                       [](uint32_t offset, const Stretch& stretch) { return offset < stretch.begin; });
  return next == stretches_.begin() ? std::nullopt : (next - 1)->loop;
}

}  // namespace hindsight::feedback
