// Structured control: blocks, loops, ifs, branches, and the peeled loops of on-stack replacement.
#include <algorithm>

#include "jit/abi/call_layout.h"
#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Value;
using wasm::Opcode;
using Kind = ControlFrame::Kind;

void FunctionGenerator::emit_control(const wasm::Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kUnreachable:
      trap(TrapCode::kUnreachable);
      reachable_ = false;
      break;
    case Opcode::kNop:
      break;
    case Opcode::kBlock:
      begin_block(instr);
      break;
    case Opcode::kLoop:
      begin_loop(instr);
      break;
    case Opcode::kIf:
      begin_if(instr);
      break;
    case Opcode::kElse:
      begin_else();
      break;
    case Opcode::kEnd:
      end_block();
      break;
    case Opcode::kBr:
      branch_to(frame_at(instr.index));
      reachable_ = false;
      break;
    case Opcode::kBrIf:
      emit_br_if(instr);
      break;
    case Opcode::kBrTable:
      emit_br_table(instr);
      break;
    case Opcode::kReturn:
      branch_to(control_[top().control_base]);
      reachable_ = false;
      break;
    case Opcode::kCall:
      emit_call(instr);
      break;
    case Opcode::kReturnCall:
      emit_return_call(instr);
      break;
    case Opcode::kReturnCallIndirect:
      emit_return_call_indirect(instr);
      break;
    case Opcode::kCallRef:
      emit_call_ref(instr);
      break;
    case Opcode::kReturnCallRef:
      emit_return_call_ref(instr);
      break;
    default:
      emit_call_indirect(instr);
      break;
  }
}

// Dead code has no operand stack that could be relied on: only the nesting is followed.
void FunctionGenerator::skip_dead(const wasm::Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kBlock:
    case Opcode::kLoop:
    case Opcode::kIf:
    case Opcode::kTry:
    case Opcode::kTryTable:
      ++dead_depth_;
      break;
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      if (dead_depth_ == 0) begin_catch(instr);
      break;
    case Opcode::kDelegate:
      if (dead_depth_ > 0) {
        --dead_depth_;
      } else {
        end_delegate(instr.index);
      }
      break;
    case Opcode::kElse:
      if (dead_depth_ == 0) begin_else();
      break;
    case Opcode::kEnd:
      if (dead_depth_ > 0) {
        --dead_depth_;
      } else {
        end_block();
      }
      break;
    default:
      break;
  }
}

void FunctionGenerator::make_label(ControlFrame& frame, const char* name) {
  frame.label = make_block(name);
  frame.phis.clear();
  const uint32_t arity = frame.label_arity();
  llvm::IRBuilder<> at_label(frame.label);
  at_label.SetCurrentDebugLocation(b_.getCurrentDebugLocation());
  for (uint32_t i = 0; i < arity; ++i) {
    const wasm::ValType type = frame.is_loop() ? frame.type.param(i) : frame.type.result(i);
    frame.phis.push_back(at_label.CreatePHI(ir_.type_of(type), 2));
  }
}

// The top of the operand stack becomes the label's values on the edge from the current block.
void FunctionGenerator::add_label_values(ControlFrame& frame) {
  const size_t first = stack_.size() - frame.phis.size();
  moved_values_ += frame.phis.size();
  for (size_t i = 0; i < frame.phis.size(); ++i)
    frame.phis[i]->addIncoming(stack_[first + i], b_.GetInsertBlock());
}

void FunctionGenerator::branch_to(ControlFrame& frame) {
  add_label_values(frame);
  b_.CreateBr(frame.label);
}

void FunctionGenerator::begin_block(const wasm::Instr& instr) {
  ControlFrame frame{.kind = Kind::kBlock, .type = instr.block, .offset = instr.offset};
  frame.height = static_cast<uint32_t>(stack_.size()) - instr.block.param_count();
  make_label(frame, "end");
  control_.push_back(std::move(frame));
}

void FunctionGenerator::begin_loop(const wasm::Instr& instr) {
  ++loops_;
  if (activations_.size() == 1) record_osr_point(instr);
  ControlFrame frame{.kind = Kind::kLoop, .type = instr.block, .offset = instr.offset};
  frame.height = static_cast<uint32_t>(stack_.size()) - instr.block.param_count();
  make_label(frame, "loop");
  frame.before = b_.GetInsertBlock();
  branch_to(frame);
  b_.SetInsertPoint(frame.label);
  stack_.resize(frame.height);
  for (llvm::PHINode* phi : frame.phis) push(phi);
  mark_exit(instr);
  control_.push_back(std::move(frame));
}

// One back edge in the place of several. Of a loop with several, LLVM makes nested ones where one of them leaves a variable as it
// is (separateNestedLoop() in LoopSimplify.cpp): of a merge, one loop a side. Then to choose a side is to leave a loop.
void FunctionGenerator::join_back_edges(const ControlFrame& loop) {
  BasicBlock& header = *loop.label;
  std::set<BasicBlock*> ways(llvm::pred_begin(&header), llvm::pred_end(&header));
  ways.erase(loop.before);
  if (ways.size() < 2) return;
  BasicBlock* const latch = make_block("latch");
  llvm::IRBuilder<> b(latch);
  b.SetCurrentDebugLocation(b_.getCurrentDebugLocation());
  for (llvm::PHINode& phi : header.phis()) {
    llvm::PHINode* const next = b.CreatePHI(phi.getType(), static_cast<unsigned>(ways.size()));
    for (unsigned i = phi.getNumIncomingValues(); i-- > 0;) {
      if (phi.getIncomingBlock(i) == loop.before) continue;
      next->addIncoming(phi.getIncomingValue(i), phi.getIncomingBlock(i));
      phi.removeIncomingValue(i);
    }
    phi.addIncoming(next, latch);
  }
  b.CreateBr(&header);
  for (BasicBlock* way : ways) way->getTerminator()->replaceSuccessorWith(&header, latch);
}

void FunctionGenerator::begin_if(const wasm::Instr& instr) {
  ControlFrame frame{.kind = Kind::kIf, .type = instr.block, .offset = instr.offset};
  Value* const taken = condition(pop());
  frame.height = static_cast<uint32_t>(stack_.size()) - instr.block.param_count();
  frame.params.assign(stack_.begin() + frame.height, stack_.end());
  frame.else_block = make_block("else");
  make_label(frame, "end");
  BasicBlock* const then_block = make_block("then");
  b_.CreateCondBr(taken, then_block, frame.else_block, ir_.hinted_weights(instr.offset, in_loop()));
  b_.SetInsertPoint(then_block);
  control_.push_back(std::move(frame));
}

void FunctionGenerator::begin_else() {
  ControlFrame& frame = control_.back();
  if (reachable_) branch_to(frame);
  frame.kind = Kind::kElse;
  stack_.resize(frame.height);
  if (!frame.else_block) {
    // On-stack replacement began inside the then arm: nothing leads to the else arm.
    reachable_ = false;
    return;
  }
  for (Value* param : frame.params) push(param);
  b_.SetInsertPoint(frame.else_block);
  frame.else_block = nullptr;
  reachable_ = true;
}

void FunctionGenerator::end_block() {
  if (control_.back().kind == Kind::kIf && control_.back().else_block) begin_else();  // the implicit else
  ControlFrame frame = std::move(control_.back());
  control_.pop_back();
  if (frame.kind == Kind::kPeeledLoop) return end_peeled_loop(std::move(frame));

  if (frame.kind == Kind::kLoop) {
    join_back_edges(frame);
    // Falls through with its results on the stack; its label is its header.
    if (!frame.peeled_exit) return;
    BasicBlock* const own_exit = reachable_ ? b_.GetInsertBlock() : nullptr;
    if (!own_exit) {
      b_.SetInsertPoint(frame.peeled_exit);
      stack_.resize(frame.height);
      for (Value* result : frame.peeled_results) push(result);
      reachable_ = true;
      return;
    }
    BasicBlock* const join = make_block("join");
    b_.CreateBr(join);
    b_.SetInsertPoint(frame.peeled_exit);
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    const size_t first = stack_.size() - frame.peeled_results.size();
    for (size_t i = 0; i < frame.peeled_results.size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(stack_[first + i]->getType(), 2);
      phi->addIncoming(stack_[first + i], own_exit);
      phi->addIncoming(frame.peeled_results[i], frame.peeled_exit);
      stack_[first + i] = phi;
    }
    return;
  }

  if (reachable_) branch_to(frame);
  if (!frame.others.empty()) {  // another body that may run in place of the same call
    activations_.pop_back();
    return enter_next_target(std::move(frame));
  }
  finish_handler(frame);
  reachable_ = !frame.label->use_empty();
  stack_.resize(frame.height);
  if (reachable_) {
    b_.SetInsertPoint(frame.label);
    for (llvm::PHINode* phi : frame.phis) push(phi);
  } else {
    frame.label->eraseFromParent();
  }
  if (frame.kind == Kind::kFunction) leave_function(frame);
}

// The rest of the iteration in which on-stack replacement happened is over. Whoever branched to the header in
// it enters the loop proper now.
void FunctionGenerator::end_peeled_loop(ControlFrame frame) {
  if (frame.label->use_empty()) {
    frame.label->eraseFromParent();
    return;
  }
  BasicBlock* const peeled_exit = reachable_ ? b_.GetInsertBlock() : nullptr;
  std::vector<Value*> peeled_results(stack_.begin() + frame.height, stack_.end());
  stack_.resize(frame.height);
  for (llvm::PHINode* phi : frame.phis) push(phi);
  b_.SetInsertPoint(frame.label);
  reachable_ = true;
  top().reader.seek(frame.offset);
  wasm::Instr loop;
  top().reader.next(loop);
  set_position(loop.offset);
  begin_loop(loop);
  if (peeled_exit) {
    control_.back().peeled_exit = peeled_exit;
    control_.back().peeled_results = std::move(peeled_results);
  }
}

// The final `end` of a body: results are on the stack if the end can be reached.
void FunctionGenerator::leave_function(ControlFrame& frame) {
  const bool outermost = activations_.size() == 1;
  if (outermost && reachable_) emit_return_values();
  const bool returns_caller = top().returns_caller;
  activations_.pop_back();
  if (returns_caller && reachable_) return_from_activation();
}

void FunctionGenerator::emit_return_values() {
  const wasm::FuncType& type = ir_.wasm.type_of(index_);
  if (type.results.size() == 1) {
    b_.CreateRet(stack_.back());
    return;
  }
  const size_t first = stack_.size() - type.results.size();
  int64_t at = kThreadResults;
  for (size_t i = 0; i < type.results.size(); ++i) {
    store_runtime(stack_[first + i], thread_, at);
    at += 8 * words_of(type.results[i]);
  }
  b_.CreateRetVoid();
}

void FunctionGenerator::emit_br_if(const wasm::Instr& instr) {
  Value* const taken = condition(pop());
  ControlFrame& frame = frame_at(instr.index);
  BasicBlock* const next = make_block("");
  add_label_values(frame);
  // LLVM takes a loop's length from how often it iterates, and unrolls and vectorizes for the mean of lengths
  // that may differ. Measured, that loses more than it gains.
  const bool goes_round = frame.kind == Kind::kLoop;
  llvm::BranchInst* const branch = b_.CreateCondBr(
      taken, frame.label, next, goes_round ? nullptr : ir_.hinted_weights(instr.offset, in_loop()));
  // Passes of ours are told whether it is a few times or many (expected_turns).
  const auto innermost = std::find_if(control_.rbegin(), control_.rend(),
                                      [](const ControlFrame& around) { return around.is_loop(); });
  const auto target = control_.rbegin() + instr.index;
  if (innermost != control_.rend() && target >= innermost)
    branch->setMetadata(kExitCounts, ir_.exit_counts(instr.offset, /*taken_leaves=*/target != innermost));
  b_.SetInsertPoint(next);
}

// br_on_null keeps the reference where it falls through, br_on_non_null takes it along.
void FunctionGenerator::emit_br_on_null(const wasm::Instr& instr) {
  const bool on_null = instr.opcode == Opcode::kBrOnNull;
  Value* const reference = stack_.back();
  if (on_null) pop();
  Value* const null = b_.CreateIsNull(reference);
  ControlFrame& frame = frame_at(instr.index);
  BasicBlock* const next = make_block("");
  add_label_values(frame);
  b_.CreateCondBr(on_null ? null : b_.CreateNot(null), frame.label, next,
                  ir_.hinted_weights(instr.offset, in_loop()));
  b_.SetInsertPoint(next);
  if (on_null)
    push(reference);
  else
    pop();
}

// One edge block for each distinct target keeps one phi entry an edge, however long the table is.
void FunctionGenerator::emit_br_table(const wasm::Instr& instr) {
  Value* const selector = pop();
  const std::vector<uint32_t> targets = top().reader.br_table();
  BasicBlock* const from = b_.GetInsertBlock();
  std::map<uint32_t, BasicBlock*> edges;
  const auto edge_to = [&](uint32_t depth) {
    BasicBlock*& edge = edges[depth];
    if (!edge) {
      edge = make_block("edge");
      b_.SetInsertPoint(edge);
      branch_to(frame_at(depth));
    }
    return edge;
  };
  BasicBlock* const default_edge = edge_to(targets.back());
  b_.SetInsertPoint(from);
  llvm::SwitchInst* const branch =
      b_.CreateSwitch(selector, default_edge, static_cast<unsigned>(targets.size() - 1));
  for (uint32_t i = 0; i + 1 < targets.size(); ++i) {
    BasicBlock* const edge = edge_to(targets[i]);
    if (edge != default_edge) branch->addCase(llvm::ConstantInt::get(ir_.i32, i), edge);
  }
  reachable_ = false;
}

void FunctionGenerator::record_osr_point(const wasm::Instr& instr) {
  const std::vector<wasm::LoopInfo>& loops = ir_.wasm.body(index_).loops;
  const auto found =
      std::lower_bound(loops.begin(), loops.end(), instr.offset,
                       [](const wasm::LoopInfo& loop, WasmOffset offset) { return loop.offset < offset; });
  if (found == loops.end() || found->offset != instr.offset) return;
  const LoopIndex loop(static_cast<uint32_t>(found - loops.begin()));
  const auto& wanted = ir_.request.osr_loops;
  if (std::find(wanted.begin(), wanted.end(), loop) == wanted.end()) return;
  OsrPoint point{.loop = loop, .offset = instr.offset, .frames = {}, .stack = {}};
  for (const ControlFrame& frame : control_) {
    ControlFrame copy{.kind = frame.kind, .type = frame.type, .offset = frame.offset, .height = frame.height};
    copy.catches = frame.catches;
    // An OSR point is recorded only by the whole function's generation, which knows no peeled loops.
    point.frames.push_back(std::move(copy));
  }
  for (Value* value : stack_) point.stack.push_back(value->getType());
  osr_points_.push_back(std::move(point));
}

}  // namespace hindsight::jit::optimizing
