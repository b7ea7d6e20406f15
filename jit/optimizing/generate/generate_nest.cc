// A nest: one loop of a function as a function of its own (jit/abi/nest_exits.h).
//
// Problem: code inside the loop branches to frames around it, and its function may be a thousand times as large.
//
// Idea: the validator noted these frames. Each that some branch of the loop goes to stands on the stack of frames with its label, as
// around any code. At the label the nest ends: it stores the branch's values and the locals that are read there, and returns the label's
// number. Nothing around the loop becomes code.
//
// Invariants: operands below the loop's parameters can be neither read nor changed in the loop (validation). They stay in their slots, and
// are placeholders here, for the heights' sake. Locals that the loop does not write keep their slots, which are right. All positions
// are those of the loop.
#include <algorithm>
#include <map>

#include "jit/abi/nest_exits.h"
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::Value;
using Kind = ControlFrame::Kind;

void FunctionGenerator::generate_nest(LoopIndex root) {
  const wasm::FunctionBody& body = ir_.wasm.body(index_);
  const wasm::LoopInfo& loop = body.loops[root.value];
  const NestShape shape = shape_of_nest(ir_.wasm, body, root);
  begin_ = loop.offset;
  entered_running_ = true;
  begin_entry(&shape);
  Activation& activation = top();
  for (const uint32_t local : shape.used)
    b_.CreateStore(load_runtime(ir_.type_of(body.locals[local]), slot_of_frame(local), 0, /*invariant=*/false),
                   activation.locals[local]);

  // By level, from the innermost on. Nothing goes to what is further out.
  std::vector<const wasm::LoopFrame*> around;
  for (uint32_t at = body.loop_frames[loop.frame].parent; at != ~0u && around.size() < kMostNestLevels;
       at = body.loop_frames[at].parent)
    around.push_back(&body.loop_frames[at]);
  const size_t levels = around.size();
  for (size_t level = levels; level > 0; --level) {
    control_.push_back(outside_frame(*around[level - 1]));
    if ((loop.targets >> level & 1) != 0) make_label(control_.back(), "leave");
  }
  activation.reader.seek(loop.offset);
  wasm::Instr opener;
  activation.reader.next(opener);
  activation.reader.seek(loop.offset);
  stack_.assign(loop.stack_height, llvm::PoisonValue::get(ir_.i32));
  const auto locals = static_cast<uint32_t>(body.locals.size());
  for (uint32_t i = 0; i < opener.block.param_count(); ++i)
    push(load_runtime(ir_.type_of(opener.block.param(i)), slot_of_frame(locals + loop.stack_height + i), 0,
                      /*invariant=*/false));

  do {
    step();
  } while (control_.size() > levels && !moves_too_much());
  if (moves_too_much()) return finish_entry();  // of no use, and said to be too large

  set_position(loop.end);
  if (reachable_) {
    const std::vector<Value*> results(stack_.begin() + loop.stack_height, stack_.end());
    leave_nest(kNestEnded, loop.stack_height, results, shape.live[0]);
  }
  for (uint32_t level = 1; level <= levels; ++level) {
    const ControlFrame& frame = control_[levels - level];
    if (!frame.label) continue;
    if (frame.label->use_empty()) {  // only dead code goes there
      frame.label->eraseFromParent();
      continue;
    }
    b_.SetInsertPoint(frame.label);
    leave_nest(nest_label(loop.targets, level), frame.height, {frame.phis.begin(), frame.phis.end()},
               shape.live[level]);
  }
  finish_entry();
}

// A frame around the nest as one that can be branched to; without its label.
ControlFrame FunctionGenerator::outside_frame(const wasm::LoopFrame& noted) {
  ControlFrame frame{.kind = Kind::kOutside, .offset = noted.offset, .height = noted.height};
  if (noted.kind == wasm::LoopFrame::Kind::kFunction) {
    frame.type.func_type = &ir_.wasm.type_of(index_);
    return frame;
  }
  if (noted.kind == wasm::LoopFrame::Kind::kLoop) frame.kind = Kind::kOutsideLoop;
  wasm::Instr opener;
  top().reader.seek(noted.offset);
  top().reader.next(opener);
  frame.type = opener.block;
  return frame;
}

// The address of a slot of the caller's frame (OsrEntry).
Value* FunctionGenerator::slot_of_frame(uint32_t slot) {
  const int64_t bytes = ir_.wasm.body(index_).uses_v128 ? 16 : 8;
  return runtime_field(function_->getArg(1), bytes * slot);
}

void FunctionGenerator::leave_nest(uint32_t number, uint32_t height, const std::vector<Value*>& values,
                                   const std::vector<uint32_t>& locals) {
  for (const uint32_t local : locals) {
    llvm::AllocaInst* const slot = top().locals[local];
    store_runtime(b_.CreateLoad(slot->getAllocatedType(), slot), slot_of_frame(local), 0);
  }
  auto slot = static_cast<uint32_t>(top().locals.size()) + height;
  for (Value* value : values) store_runtime(value, slot_of_frame(slot++), 0);
  moved_values_ += locals.size() + values.size();
  b_.CreateRet(int32(number));
}

}  // namespace hindsight::jit::optimizing
