// Indirect calls whose usual targets a profile knows: each is compared with the table's element, and
// generated in place. What the table holds then does not matter. An element is the FuncRef that it points to,
// and that of a function of this module is known before it is looked at.
//
//     reference = table[index]
//     if (reference == &f) { body of f }
//     else if (reference == &g) { body of g }
//     else { check, call through it }
//     joined results
#include <algorithm>

#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Value;

namespace {
// A sample of the calls does not show that no other target is ever called.
constexpr double kLeastCallShareLeft = 0.01;
}  // namespace

std::vector<FunctionGenerator::LikelyTarget> FunctionGenerator::likely_targets(
    const wasm::Instr& instr) const {
  std::vector<LikelyTarget> targets;
  for (const Request& request : ir_.request.changes) {
    if (request.site != Site{ChangeKind::kInlineCalls, instr.offset}) continue;
    for (const CallTargets::Target& target : what_of<CallTargets>(request).targets) {
      const std::optional<FuncIndex> function = instr.opcode == wasm::Opcode::kCallRef
                                                    ? FuncIndex(target.element)
                                                    : ir_.wasm.initial_element(instr.index2, target.element);
      // A function of another module has an index of that module: it may be anything here.
      if (!function || function->value >= ir_.wasm.function_count() || ir_.wasm.is_imported(*function))
        continue;
      if (ir_.wasm.type_of(*function) != ir_.wasm.types[instr.index]) continue;
      const auto same = std::find_if(targets.begin(), targets.end(),
                                     [&](const LikelyTarget& other) { return other.function == *function; });
      if (same != targets.end())
        same->share += target.share;
      else if (should_inline(*function))
        targets.push_back({*function, target.share});
    }
  }
  return targets;
}

// Generation goes on in the first target's body.
bool FunctionGenerator::enter_likely_targets(const wasm::Instr& instr) {
  const std::vector<LikelyTarget> targets = likely_targets(instr);
  if (targets.empty()) return false;
  const wasm::FuncType& type = ir_.wasm.types[instr.index];
  const bool by_reference = instr.opcode == wasm::Opcode::kCallRef;
  Value* const index = by_reference ? nullptr : table_index();
  Value* const reference = by_reference ? pop() : table_element(instr, index);
  const size_t first = stack_.size() - type.params.size();
  ControlFrame frame{.kind = ControlFrame::Kind::kFunction};
  frame.type.func_type = &type;
  frame.offset = instr.offset;
  frame.height = static_cast<uint32_t>(first);
  frame.args.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  frame.call_location = b_.getCurrentDebugLocation().get();
  make_label(frame, "call.done");
  double left = 1;
  for (const LikelyTarget& target : targets) {
    BasicBlock* const hit = make_block("likely");
    BasicBlock* const miss = make_block("unlikely");
    Value* const own = runtime_field(vmctx(), ir_.layout.func(target.function.value));
    left = std::max(0.0, left - target.share);
    b_.CreateCondBr(b_.CreateICmpEQ(reference, own), hit, miss,
                    ir_.branch_weights(target.share, std::max(left, kLeastCallShareLeft)));
    frame.others.push_back({target.function, hit});
    b_.SetInsertPoint(miss);
  }
  if (by_reference)
    trap_if(b_.CreateIsNull(reference), TrapCode::kNullFunctionReference);
  else
    check_reference(instr, reference);
  sample_call(instr, by_reference ? callee_index(reference) : index);
  call_reference(instr, reference);
  branch_to(frame);
  enter_next_target(std::move(frame));
  return true;
}

// The body of the frame's next target; its results join those of the others at the frame's label.
void FunctionGenerator::enter_next_target(ControlFrame frame) {
  const ControlFrame::OtherTarget target = frame.others.front();
  frame.others.erase(frame.others.begin());
  b_.SetInsertPoint(target.block);
  b_.SetCurrentDebugLocation(frame.call_location);
  stack_.resize(frame.height);
  reachable_ = true;
  begin_activation(target.function, frame.offset, /*tail=*/false, frame.args);
  control_.push_back(std::move(frame));
}

}  // namespace hindsight::jit::optimizing
