#include "jit/optimizing/versions/loop_exits.h"

#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <functional>
#include <map>

#include "jit/optimizing/ir/entry_names.h"
#include "jit/optimizing/ir/load_user.h"
#include "jit/optimizing/ir/names.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr const char* kMarker = "hindsight.loop_exit";
// The length of a strip whose end is polled, in iterations: some tens of microseconds.
constexpr uint32_t kStrip = 1 << 16;
// The same where an iteration calls something, which may take nanoseconds or milliseconds. With 3 us, as an insertion takes, 65,536
// of them are 0.2 s in which nothing that is new is entered.
constexpr uint32_t kStripOfCalls = 1 << 8;
// A poll is two instructions that nothing waits for: hardly half a percent of an iteration of so many. Inner
// loops may be shorter than they are taken for, and a loop around this one will do as well.
constexpr double kLongIteration = 256;
constexpr double kLongInnerIteration = 4096;
constexpr double kIterationsOfInnerLoops = 32;  // where nobody knows: as LLVM guesses
constexpr double kInstructionsOfACall = 50;

bool is_call(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && !llvm::isa<llvm::IntrinsicInst>(call) && !call->isInlineAsm();
}

uint32_t strip_of(const llvm::Loop& loop) {
  const bool calls = llvm::any_of(loop.blocks(), [](const BasicBlock* block) {
    return llvm::any_of(*block, [](const Instruction& it) { return is_call(it) && !is_exit_marker(it); });
  });
  return calls ? kStripOfCalls : kStrip;
}

std::vector<llvm::CallInst*> markers_of(llvm::Function& function) {
  std::vector<llvm::CallInst*> markers;
  if (!function.getParent()->getFunction(kMarker)) return markers;
  for (Instruction& instruction : llvm::instructions(function))
    if (is_exit_marker(instruction)) markers.push_back(llvm::cast<llvm::CallInst>(&instruction));
  return markers;
}

uint32_t number(const Value* value) {
  return static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(value)->getZExtValue());
}
LoopIndex loop_of(const llvm::CallInst& marker) {
  return LoopIndex(number(marker.getArgOperand(0)));
}
std::vector<ExitValue> values_of(const llvm::CallInst& marker) {
  std::vector<ExitValue> values;
  for (unsigned i = 1; i + 1 < marker.arg_size(); i += 2)
    values.push_back({number(marker.getArgOperand(i)), marker.getArgOperand(i + 1)});
  return values;
}

// First in its block as far as memory is concerned: what stands before it can be left out, or done again.
bool begins_header(const llvm::CallInst& marker, const llvm::Loop& loop) {
  if (marker.getParent() != loop.getHeader()) return false;
  for (const Instruction& instruction : *marker.getParent()) {
    if (&instruction == &marker) return true;
    if (instruction.mayReadOrWriteMemory()) return false;
  }
  return false;
}

bool is_nest(const llvm::Function& function) {
  return function.getName().starts_with(kNestPrefix);
}
bool is_for_running_loops(const llvm::Function& function) {
  return function.getName().starts_with(kRemainderPrefix) || is_nest(function);
}

// How often a block is executed in an iteration of a loop that it is in, but for what loops within repeat.
double share_of_iterations(const BasicBlock* block, const llvm::Loop& loop,
                           const llvm::BlockFrequencyInfo& frequencies) {
  const auto all = static_cast<double>(frequencies.getBlockFreq(loop.getHeader()).getFrequency());
  if (!block || all == 0) return 1;
  return std::min(1.0, static_cast<double>(frequencies.getBlockFreq(block).getFrequency()) / all);
}

// Instructions of an iteration, inner loops' included. Of an interpreter's loop it is what one operation takes, and not all.
double length_of_iteration(const llvm::Loop& loop, const llvm::LoopInfo& loops,
                           const llvm::BlockFrequencyInfo& frequencies, llvm::ScalarEvolution& evolution) {
  std::map<const llvm::Loop*, double> iterations;
  for (const llvm::Loop* inner : loop.getLoopsInPreorder()) {
    const unsigned known = evolution.getSmallConstantTripCount(inner);
    iterations[inner] = known != 0 ? known : kIterationsOfInnerLoops;
  }
  double all = 0;
  for (const BasicBlock* block : loop.blocks()) {
    double length = 0;
    for (const Instruction& instruction : *block) {
      if (llvm::isa<llvm::PHINode, llvm::DbgInfoIntrinsic>(instruction) || is_exit_marker(instruction))
        continue;
      length += is_call(instruction) ? kInstructionsOfACall : 1;
    }
    const llvm::Loop* around = loops.getLoopFor(block);
    length *= share_of_iterations(block, *around, frequencies);
    for (; around != &loop; around = around->getParentLoop())
      length *= iterations.at(around) *
                share_of_iterations(around->getLoopPreheader(), *around->getParentLoop(), frequencies);
    all += length;
  }
  return all;
}

// What a value of the loop's header is, said by what the header's phis are elsewhere: computations without
// memory are done again there.
class HeaderValues {
 public:
  HeaderValues(const llvm::Loop& loop, const std::map<llvm::PHINode*, Value*>& phis, Instruction* place)
      : loop_(loop), phis_(phis), place_(place) {}

  static bool can_compute(const llvm::Loop& loop, const Value* value, unsigned depth = 0) {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop.contains(instruction)) return true;
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction))
      return phi->getParent() == loop.getHeader();
    constexpr unsigned kDeepest = 6;
    return depth < kDeepest && !instruction->mayReadOrWriteMemory() && !instruction->isTerminator() &&
           llvm::isSafeToSpeculativelyExecute(instruction) &&
           std::all_of(instruction->op_begin(), instruction->op_end(),
                       [&](const llvm::Use& operand) { return can_compute(loop, operand.get(), depth + 1); });
  }
  // Precondition: can_compute.
  Value* compute(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) return value;
    if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction)) return phis_.at(phi);
    if (const auto known = done_.find(value); known != done_.end()) return known->second;
    std::vector<Value*> operands;
    for (llvm::Use& operand : instruction->operands()) operands.push_back(compute(operand.get()));
    Instruction* const copy = instruction->clone();
    for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
    copy->dropPoisonGeneratingFlags();
    copy->insertBefore(place_);
    return done_[value] = copy;
  }

 private:
  const llvm::Loop& loop_;
  const std::map<llvm::PHINode*, Value*>& phis_;
  Instruction* const place_;
  std::map<Value*, Value*> done_;
};

llvm::GlobalVariable* slot_of(IrModule& ir, LoopIndex loop) {
  const std::string name = exit_symbol(loop);
  if (llvm::GlobalVariable* known = ir.module.getNamedGlobal(name)) return known;
  auto* made =
      new llvm::GlobalVariable(ir.module, ir.ptr, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                               llvm::ConstantPointerNull::get(ir.ptr), name);
  made->setVisibility(llvm::GlobalValue::HiddenVisibility);
  made->setDSOLocal(true);
  made->setAlignment(llvm::Align(8));
  return made;
}

// A nest's NestWork, so much of it more.
void emit_work(IrModule& ir, llvm::IRBuilder<>& b, Value* more) {
  llvm::Constant* const work = ir.nest_work();
  llvm::LoadInst* const before =
      ir.mark(b.CreateAlignedLoad(ir.i64, work, llvm::Align(8)), IrModule::World::kCells);
  llvm::StoreInst* const after =
      ir.mark(b.CreateAlignedStore(b.CreateAdd(before, more), work, llvm::Align(8)), IrModule::World::kCells);
  // Another thread reads it while the loop runs.
  before->setVolatile(true);
  after->setVolatile(true);
}

// Before `rest`, whose block is split. `at_place`: the values there, computed in the block of the exit. A nest goes nowhere: it stores them
// to its caller's frame and returns the number that the slot's word says (nest_leave_word).
void emit_poll(IrModule& ir, Instruction* rest, LoopIndex loop, const llvm::DebugLoc& location,
               const std::function<std::vector<ExitValue>(Instruction* place)>& at_place) {
  llvm::Function& function = *rest->getFunction();
  llvm::IRBuilder<> b(rest);
  b.SetCurrentDebugLocation(location);
  llvm::LoadInst* const code =
      ir.mark(b.CreateAlignedLoad(ir.ptr, slot_of(ir, loop), llvm::Align(8)), IrModule::World::kCells);
  // Another thread stores to it while the loop runs.
  code->setVolatile(true);
  Instruction* const unreachable =
      llvm::SplitBlockAndInsertIfThen(b.CreateIsNotNull(code), rest, /*Unreachable=*/true, ir.unlikely);
  unreachable->setDebugLoc(location);
  const std::vector<ExitValue> values = at_place(unreachable);
  b.SetInsertPoint(unreachable);
  b.SetCurrentDebugLocation(location);
  const auto runtime = [&](Value* base, int64_t offset) {
    return b.CreateConstInBoundsGEP1_64(ir.i8, base, static_cast<uint64_t>(offset));
  };
  const int64_t slot_bytes = ir.wasm.body(ir.request.function).uses_v128 ? 16 : 8;
  const auto store_to = [&](Value* frame) {
    for (const ExitValue& value : values) {
      if (value.slot == ExitValue::kNoSlot) {
        add_user(b, *value.value);
        continue;
      }
      ir.mark(b.CreateAlignedStore(value.value, runtime(frame, slot_bytes * value.slot), llvm::Align(4)),
              IrModule::World::kRuntime);
    }
  };
  if (is_nest(function)) {
    store_to(function.getArg(1));
    b.CreateRet(b.CreateSub(b.CreatePtrToInt(code, ir.i32), llvm::ConstantInt::get(ir.i32, 1)));
    unreachable->eraseFromParent();
    return;
  }
  Value* const vmctx = function.getArg(0);
  llvm::LoadInst* const thread = ir.mark(
      b.CreateAlignedLoad(ir.ptr, runtime(vmctx, kVmThread), llvm::Align(8)), IrModule::World::kRuntime);
  thread->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir.context, {}));
  Value* const frame = runtime(thread, kThreadArguments);
  store_to(frame);
  llvm::FunctionType* const type = llvm::FunctionType::get(function.getReturnType(), {ir.ptr, ir.ptr}, false);
  llvm::CallInst* const call = b.CreateCall(type, code, {vmctx, frame});
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::NoMerge);
  call->addFnAttr(llvm::Attribute::Cold);
  if (location)
    call->setDebugLoc(llvm::DILocation::get(ir.context, location.getLine(), IrModule::kLoopGoesOnColumn,
                                            location.getScope(), location.getInlinedAt()));
  if (is_for_running_loops(function)) call->setTailCallKind(llvm::CallInst::TCK_MustTail);
  if (call->getType()->isVoidTy())
    b.CreateRetVoid();
  else
    b.CreateRet(call);
  unreachable->eraseFromParent();
}

struct Exit {
  llvm::CallInst* marker;
  llvm::Loop* loop;
  Backedges backedges;  // with a count: between strips
};

}  // namespace

bool is_exit_marker(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == kMarker;
}

void add_exit_need(llvm::CallInst& marker, Value& value) {
  std::vector<Value*> operands(marker.arg_begin(), marker.arg_end());
  operands.push_back(llvm::ConstantInt::get(llvm::Type::getInt32Ty(marker.getContext()), ExitValue::kNoSlot));
  operands.push_back(&value);
  llvm::CallInst* const made =
      llvm::CallInst::Create(marker.getFunctionType(), marker.getCalledOperand(), operands, "", &marker);
  made->setAttributes(marker.getAttributes());
  made->setDebugLoc(marker.getDebugLoc());
  marker.eraseFromParent();
}

bool can_leave_loops(const wasm::Module& module, FuncIndex function) {
  const wasm::FunctionBody& body = module.body(function);
  const size_t words = (body.locals.size() + body.max_stack) * (body.uses_v128 ? 2 : 1);
  return !body.has_handlers && !body.has_tail_calls && !body.loops.empty() &&
         words <= 2 * size_t{kMaxArguments};
}

void emit_exit_marker(IrModule& ir, llvm::IRBuilder<>& b, LoopIndex loop,
                      const std::vector<ExitValue>& values) {
  llvm::Function* marker = ir.module.getFunction(kMarker);
  if (!marker) {
    marker = llvm::Function::Create(llvm::FunctionType::get(ir.void_type, {ir.i32}, /*isVarArg=*/true),
                                    llvm::GlobalValue::ExternalLinkage, kMarker, ir.module);
    marker->setDoesNotThrow();
    marker->addFnAttr(llvm::Attribute::WillReturn);
    // Reads everything: what was stored before must be there. Writes only what nobody sees: it stays.
    marker->setMemoryEffects(llvm::MemoryEffects::readOnly() |
                             llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::ModRef));
  }
  std::vector<Value*> operands{llvm::ConstantInt::get(ir.i32, loop.value)};
  for (const ExitValue& value : values) {
    operands.push_back(llvm::ConstantInt::get(ir.i32, value.slot));
    operands.push_back(value.value);
  }
  b.CreateCall(marker, operands)->addFnAttr(llvm::Attribute::NoMerge);
}

llvm::PreservedAnalyses ParkExitsPass::run(llvm::Function& function,
                                           llvm::FunctionAnalysisManager& analyses) {
  parked_->markers.clear();
  const std::vector<llvm::CallInst*> markers = markers_of(function);
  if (markers.empty()) return llvm::PreservedAnalyses::all();
  const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  for (llvm::CallInst* marker : markers) {
    const llvm::Loop* const loop = loops.getLoopFor(marker->getParent());
    // Two levels at most: a loop of searches.
    if (!loop || loop->getHeader() != marker->getParent() ||
        std::any_of(loop->begin(), loop->end(),
                    [](const llvm::Loop* inner) { return !inner->isInnermost(); }))
      continue;
    ParkedExits::Marker parked{marker->getNextNode(), loop_of(*marker), {}, marker->getDebugLoc()};
    for (const ExitValue& value : values_of(*marker)) parked.values.emplace_back(value.slot, value.value);
    parked_->markers.push_back(std::move(parked));
    marker->eraseFromParent();
  }
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

llvm::PreservedAnalyses UnparkExitsPass::run(llvm::Function& function,
                                             llvm::FunctionAnalysisManager& analyses) {
  if (parked_->markers.empty()) return llvm::PreservedAnalyses::all();
  if (is_for_nothing_()) {
    parked_->markers.clear();
    return llvm::PreservedAnalyses::all();
  }
  const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  llvm::IRBuilder<> b(ir_->context);
  for (ParkedExits::Marker& parked : parked_->markers) {
    // At the very place: a rotated loop's header may store before it, which is not to be done twice. The header may be
    // two blocks by now.
    auto* const next = llvm::dyn_cast_or_null<Instruction>(static_cast<Value*>(parked.next));
    if (!next || !loops.getLoopFor(next->getParent())) continue;
    std::vector<ExitValue> values;
    for (auto& [slot, value] : parked.values)
      if (value) values.push_back({slot, value});
    if (values.size() != parked.values.size()) continue;
    b.SetInsertPoint(next);
    b.SetCurrentDebugLocation(parked.location);
    emit_exit_marker(*ir_, b, parked.loop, values);
  }
  parked_->markers.clear();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

llvm::PreservedAnalyses LoopExitPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  const std::vector<llvm::CallInst*> markers = markers_of(function);
  if (markers.empty()) return llvm::PreservedAnalyses::all();
  const bool nest = is_nest(function);
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  const auto& frequencies = analyses.getResult<llvm::BlockFrequencyAnalysis>(function);
  const bool running = is_for_running_loops(function);

  // Trip counts first, while the analyses are true.
  std::vector<Exit> exits;
  std::vector<llvm::CallInst*> none;
  for (llvm::CallInst* marker : markers) {
    llvm::Loop* const loop = loops.getLoopFor(marker->getParent());
    Exit exit{marker, loop, {}};
    bool affordable = loop && length_of_iteration(*loop, loops, frequencies, evolution) >=
                                  (loop->getParentLoop() ? kLongInnerIteration : kLongIteration);
    if (loop && !affordable && running && !loop->getParentLoop()) {
      // A poll of two or three instructions is a sixth of what an interpreter's dispatch takes.
      const bool may_poll = ir_->request.short_loop_exits;
      const std::vector<ExitValue> values = values_of(*marker);
      const bool by_strips = loop->isInnermost() && begins_header(*marker, *loop) &&
                             std::all_of(values.begin(), values.end(), [&](const ExitValue& value) {
                               return HeaderValues::can_compute(*loop, value.value);
                             });
      if (by_strips) exit.backedges = emit_backedges(*loop, dominators, evolution, marker->getDebugLoc());
      affordable = exit.backedges.count || may_poll;
      if (!exit.backedges.count && may_poll && nest) ir_->polls_short_iterations = true;
    }
    if (affordable)
      exits.push_back(exit);
    else
      none.push_back(marker);
  }
  for (llvm::CallInst* marker : none) marker->eraseFromParent();
  llvm::IRBuilder<> b(ir_->context);
  for (Exit& exit : exits) {
    const LoopIndex loop = loop_of(*exit.marker);
    const llvm::DebugLoc location = exit.marker->getDebugLoc();
    const std::vector<ExitValue> values = values_of(*exit.marker);
    if (!exit.backedges.count) {
      Instruction* const rest = exit.marker->getNextNode();
      exit.marker->eraseFromParent();
      if (nest && !ir_->polls_short_iterations) {
        b.SetInsertPoint(rest);
        b.SetCurrentDebugLocation(location);
        emit_work(*ir_, b, b.getInt64(1));
      }
      emit_poll(*ir_, rest, loop, location, [&](Instruction*) { return values; });
      continue;
    }
    const Strips strips = make_strips(*exit.loop, exit.backedges, location, strip_of(*exit.loop));
    exit.marker->eraseFromParent();
    if (nest) {
      b.SetInsertPoint(strips.tail->getTerminator());
      b.SetCurrentDebugLocation(location);
      emit_work(*ir_, b, strips.count);
    }
    emit_poll(*ir_, &*strips.head->getFirstInsertionPt(), loop, location, [&](Instruction* place) {
      HeaderValues header(*exit.loop, strips.first, place);
      std::vector<ExitValue> there;
      for (const ExitValue& value : values) there.push_back({value.slot, header.compute(value.value)});
      return there;
    });
    // What was there for the marker alone.
    llvm::DeleteDeadPHIs(exit.loop->getHeader());
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace hindsight::jit::optimizing
