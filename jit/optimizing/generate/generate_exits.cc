// Where running loops may be left: marks their headers (loop_exits.h).
#include <algorithm>

#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/generate/local_liveness.h"
#include "jit/optimizing/versions/loop_exits.h"

namespace hindsight::jit::optimizing {

// The place is after the header's phis, with the operand stack as the loop begins with it. A loop within
// others and without one of its own is left by those. One that stands alone is left only where running code
// entered it. There, the strips that looking may take cost only once.
void FunctionGenerator::mark_exit(const wasm::Instr& instr) {
  if (!ir_.request.loop_exits || ir_.request.nest || activations_.size() != 1 || !can_leave_loops(ir_.wasm, index_)) return;
  const wasm::FunctionBody& body = ir_.wasm.body(index_);
  const auto found =
      std::lower_bound(body.loops.begin(), body.loops.end(), instr.offset,
                       [](const wasm::LoopInfo& loop, WasmOffset offset) { return loop.offset < offset; });
  if (found == body.loops.end() || found->offset != instr.offset) return;
  const LoopIndex loop(static_cast<uint32_t>(found - body.loops.begin()));
  const bool contains_loops = std::any_of(found + 1, body.loops.end(),
                                          [&](const wasm::LoopInfo& other) { return other.parent == loop; });
  if (!contains_loops && (!entered_running_ || found->parent)) return;
  if (live_locals_.empty()) live_locals_ = locals_live_at_loops(ir_.wasm, body);
  std::vector<ExitValue> values;
  const auto locals = static_cast<uint32_t>(body.locals.size());
  for (uint32_t i = 0; i < locals; ++i) {
    if (!live_locals_[loop.value][i]) continue;
    llvm::AllocaInst* const slot = top().locals[i];
    values.push_back({i, b_.CreateLoad(slot->getAllocatedType(), slot)});
  }
  for (uint32_t i = 0; i < stack_.size(); ++i) values.push_back({locals + i, stack_[i]});
  emit_exit_marker(ir_, b_, loop, values);
  moved_values_ += values.size();
  calls_ = true;
}

}  // namespace hindsight::jit::optimizing
