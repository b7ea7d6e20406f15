#include "jit/optimizing/changes/prefetch/prefetch_code.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/merge_equal.h"
#include "jit/optimizing/changes/prefetch/prefetch_call.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/changes/prefetch/stream_step.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/fetch_line.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_parts.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

uint32_t turns_at_once(const llvm::Loop& inner, const llvm::Loop& around) {
  double turns = 1;
  for (const llvm::Loop* loop = &inner; loop != &around; loop = loop->getParentLoop()) {
    const double expected = expected_turns(*loop);
    turns *= expected == 0 ? kMostTurnsAtOnce : expected;
  }
  return static_cast<uint32_t>(std::clamp(turns, 1.0, kMostTurnsAtOnce));
}

// Emits the instrumentation of one loop.
class PrefetchEmitter {
 public:
  PrefetchEmitter(ChangeSet& changes, llvm::Function& function, LoopWork& work, uint32_t cell)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        work_(work),
        b_(ir_.context),
        cell_(ir_, function, cell) {
    location_ = loop_location(ir_, function, work.claim.loop());
    for (const PrefetchSlice& slice : work.slices)
      for (const Instruction* operation : slice.operations)
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(operation);
            load && !ir_.is_of(*load, IrModule::World::kRuntime))
          lengths_.emplace(memory_of(*load), nullptr);
    for (const PrefetchSlice& slice : work.slices)
      for (const auto& [access, level] : slice.levels) lengths_.emplace(memory_of(*access), nullptr);
    if (lengths_.empty()) lengths_.emplace(0, nullptr);
    for (const PrefetchSlice& slice : work.slices) {
      if (slice.recurrences.next.empty()) continue;
      stages_ = std::max(stages_, slice.target_level);
      const Recurrences& its = slice.recurrences;
      recurrences_.next.insert(its.next.begin(), its.next.end());
      recurrences_.operations.insert(its.operations.begin(), its.operations.end());
      recurrences_.choices.insert(its.choices.begin(), its.choices.end());
    }
  }

  // Once an iteration: a look at the cell, and the end of a strip.
  void emit_in_loop() {
    llvm::BasicBlock* const header = work_.loop->getHeader();
    llvm::BasicBlock* const before = work_.loop->getLoopPreheader();
    carry_recurrences();
    Instruction* const rest = &*header->getFirstInsertionPt();
    at(before ? before->getTerminator() : rest);
    load_lengths();
    at(rest);
    Value* const enabled = b_.CreateIsNotNull(cell_load(kCellEnabled));
    // Clamped loads read address 0, which must exist.
    Value* const go = has_a_page() ? enabled : b_.CreateAnd(enabled, nothing_is_empty());
    Instruction* const slice_end = llvm::SplitBlockAndInsertIfThen(go, rest, false, ir_.likely);
    slice_end->setDebugLoc(location_);
    at(slice_end);
    distance_ = cell_load(kCellDistance);
    llvm::BasicBlock* const past = rest->getParent();
    llvm::BasicBlock* const paused = past->getSinglePredecessor() ? nullptr : other_way(past, *slice_end);
    catch_up(*slice_end);
    emit_slices();
    step_where_enabled(*past, *slice_end, paused);
    at(rest);
    emit_countdown(llvm::ConstantInt::get(ir_.i32, 1), rest, nullptr);
  }

  // In the version that prefetches, at whose entry the distance is read.
  void emit_in_version(const LoopVersions& versions, uint32_t scale) {
    at(versions.with_entry->getTerminator());
    load_lengths();
    distance_ = cell_load(kCellDistance);
    if (scale != 1) distance_ = b_.CreateMul(distance_, int32(scale));
    run_ahead_from(versions.first);
    entry_ = b_.GetInsertBlock();
    carry_recurrences();
    at(&*work_.loop->getHeader()->getFirstInsertionPt());
    step_in_strips();
    emit_slices();
    emit_nodes();
  }
  // Before `end`, where a strip of the loop's versions has ended.
  void emit_upcoming_after(const LoopVersions& versions, Instruction* end) {
    at(end);
    load_lengths();
    next_ = &versions.next;
    emit_upcoming(nullptr);
  }
  // Before `end`, where the loop was left: there are no places to look at.
  void emit_nothing_upcoming(Instruction* end) {
    at(end);
    for (const Slot* slot : work_.slots)
      if (slot->answer.timed)
        ir_.mark(b_.CreateAlignedStore(llvm::ConstantInt::get(ir_.i64, 0), upcoming(*slot->answer.timed),
                                       llvm::Align(8)),
                 IrModule::World::kCells);
  }
  // In the head: clamped loads read address 0, which must exist. Null: it does.
  Value* may_prefetch(llvm::IRBuilder<>& head) {
    if (has_a_page()) return nullptr;
    b_.SetInsertPoint(head.GetInsertBlock());
    b_.SetCurrentDebugLocation(location_);
    load_lengths();
    return nothing_is_empty();
  }

  // Once a strip.
  void emit_in_strips(Backedges backedges) {
    may_be_vectors_ = may_be_vectors(backedges);
    if (may_be_vectors_) find_streams();
    llvm::MDNode* const identity = work_.loop->getLoopID();
    const Strips strips = make_strips(
        *work_.loop, backedges, location_,
        [&](llvm::IRBuilder<>& head, const CarriedValues& first) -> StripChoice {
          b_.SetInsertPoint(head.GetInsertBlock());
          b_.SetCurrentDebugLocation(location_);
          // Negative if another thread of this cell has just ended its strip.
          Value* const countdown = cell_load(kCellCountdown);
          Value* const most =
              b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, countdown, int32(kShortestStrip - 1));
          Value* const enabled = b_.CreateIsNotNull(cell_load(kCellEnabled));
          StripChoice choice{.most_backedges = b_.CreateZExt(most, ir_.i64), .with = enabled};
          if (may_be_vectors_) begin_streams(first, choice);
          return choice;
        },
        work_.has_rows ? kShortestRow : 0);
    at(strips.with_entry->getTerminator());
    if (may_be_vectors_) {
      work_.loop->getLoopLatch()->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, identity);
    } else {
      load_lengths();
    }
    if (!has_a_page()) {
      // Clamped loads read address 0, which must exist.
      Instruction* const rest = strips.with_entry->getTerminator();
      llvm::BasicBlock* const check = strips.with_entry;
      llvm::BasicBlock* const entry = check->splitBasicBlock(rest, "with.entry");
      check->getTerminator()->eraseFromParent();
      b_.SetInsertPoint(check);
      b_.SetCurrentDebugLocation(location_);
      b_.CreateCondBr(nothing_is_empty(), entry, strips.without_entry);
      for (llvm::PHINode& phi : strips.without_entry->phis())
        phi.addIncoming(phi.getIncomingValueForBlock(strips.head), check);
      at(rest);
    }
    if (!may_be_vectors_) distance_ = cell_load(kCellDistance);
    run_ahead_from(strips.first);
    carry_recurrences();
    Instruction* const rest = &*work_.loop->getHeader()->getFirstInsertionPt();
    at(rest);
    step_in_strips();
    go_through_streams(*strips.with_entry, rest);
    emit_slices();
    emit_nodes();
    // After the strip, so that what the countdown says has happened when its time is taken.
    Instruction* const end = strips.tail->getTerminator();
    at(end);
    emit_countdown(b_.CreateTrunc(strips.count, ir_.i32), end, &strips);
  }

 private:
  void at(Instruction* before) {
    b_.SetInsertPoint(before);
    b_.SetCurrentDebugLocation(location_);
  }
  Value* upcoming(uint32_t slot) {
    return cell_.field(b_, kCellUpcoming + static_cast<int32_t>(sizeof(uint64_t) * slot));
  }
  Value* cell_load(int32_t offset) { return cell_.load(b_, offset); }
  Value* runtime_load(llvm::Type* type, Value* base, int64_t offset, bool invariant) {
    return cell_.runtime_load(b_, type, base, offset, invariant);
  }

  // Memory only grows: a length stays good.
  void load_lengths() {
    for (auto& [memory, length] : lengths_) {
      Value* const record =
          runtime_load(ir_.ptr, function_.getArg(0), ir_.layout.memory_record(memory), true);
      length = runtime_load(ir_.i64, record, offsetof(MemoryRecord, byte_length), false);
    }
  }
  // Asks about the memories that clamped loads read.
  bool has_a_page() const {
    return std::all_of(lengths_.begin(), lengths_.end(), [&](const auto& entry) {
      return entry.first < ir_.wasm.memories.size() && ir_.wasm.memories[entry.first].limits.min > 0;
    });
  }
  Value* nothing_is_empty() {
    Value* all = nullptr;
    for (const auto& [memory, length] : lengths_) {
      Value* const one = b_.CreateIsNotNull(length);
      all = all ? b_.CreateAnd(all, one) : one;
    }
    return all;
  }
  uint32_t memory_of(const Instruction& access) const {
    const Value* base = llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&access), 0);
    return ir_.memory_of(base, function_.getArg(0)).value_or(0);
  }

  // Where the hinted loads will look, into the cell. In the block that ends strips; `strips`: those of a
  // counted loop, else the place is the loop's header.
  void emit_upcoming(const Strips* strips) {
    if (!has_a_page()) return;  // clamped loads need one, and a check costs more than it is worth
    Value* go = nullptr;
    if (strips) {
      load_lengths();
      next_ = &strips->next;
      go = b_.CreateICmpUGE(strips->left, llvm::ConstantInt::get(ir_.i64, kLeastTimedAhead));
      Value* const last = b_.CreateSub(strips->left, llvm::ConstantInt::get(ir_.i64, 1));
      distance_ = b_.CreateTrunc(
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, llvm::ConstantInt::get(ir_.i64, kTimedAhead)),
          ir_.i32);
    } else {
      distance_ = int32(kTimedAheadBlindly);
    }
    const std::vector<Values> running = ahead_;
    if (!recurrences_.next.empty()) {
      Values now;
      for (const auto& [phi, next] : recurrences_.next) now[phi] = carried(*phi);
      ahead_ = {run(now, distance_)};
    }
    for (size_t i = 0; i < work_.slices.size(); ++i) {
      const PrefetchSlice& slice = work_.slices[i];
      if (slice.forks || slice.node) continue;  // of several places none is the next
      const std::optional<uint32_t> slot = changes_.timed_slot(*work_.slots[i]);
      if (!slot) continue;
      Clones clones;
      Value* const at_target =
          clone(llvm::getLoadStorePointerOperand(slice.target), slice, {.multiplier = 1}, clones);
      Value* place = b_.CreatePtrToInt(at_target, ir_.i64);
      if (go) place = b_.CreateSelect(go, place, llvm::ConstantInt::get(ir_.i64, 0));
      ir_.mark(b_.CreateAlignedStore(place, upcoming(*slot), llvm::Align(8)), IrModule::World::kCells);
    }
    ahead_ = running;
    next_ = nullptr;
  }

  // Before `rest`.
  void emit_countdown(Value* iterations, Instruction* rest, const Strips* strips) {
    cell_.emit_countdown(iterations, rest, location_, [&](Instruction* before) {
      at(before);
      emit_upcoming(strips);
    });
  }

  void emit_slices() {
    Instruction* const before = b_.GetInsertPoint()->getPrevNode();
    for (const PrefetchSlice& slice : work_.slices) emit_slice(slice);
    // Nothing is stored in between: slices load and prefetch.
    merge_equal(before, *b_.GetInsertPoint());
  }
  // In code that runs with the change alone: each where the next node was loaded.
  void emit_nodes() {
    for (const PrefetchSlice& slice : work_.slices) {
      if (!slice.node) continue;
      const NodeFetch& node = *slice.node;
      for (llvm::LoadInst* link : node.links) {
        at(link->getNextNode());
        Value* const base = llvm::getUnderlyingObject(link->getPointerOperand(), 0);
        Value* const at_node = b_.CreateGEP(ir_.i8, base, b_.CreateZExt(link, ir_.i64));
        for (const int64_t bytes : node.places) emit_prefetch(slice, *link, further_by(b_, at_node, bytes));
      }
    }
  }
  // Emits one copy of the slice's computation for each level of missing loads. The last copy runs one
  // distance ahead, and finds what the copies before it, further ahead, had fetched in earlier iterations.
  void emit_slice(const PrefetchSlice& slice) {
    if (slice.node) return;  // emit_nodes()
    if (slice.forks) return emit_forks(slice);
    for (uint32_t level = slice.target_level; level >= 1; --level) {
      const uint32_t multiplier = slice.target_level - level + 1;
      for (const auto& [access, its_level] : slice.levels) {
        if (its_level != level || !done_.insert({access, multiplier}).second) continue;
        const Value* const original = llvm::getLoadStorePointerOperand(access);
        for (const uint32_t element : elements_of(slice, *access)) {
          Clones clones;
          emit_prefetches(slice, *access,
                          clone(original, slice, {.multiplier = multiplier, .element = element}, clones),
                          /*of_targets=*/multiplier == 1);
        }
      }
    }
  }
  // For which elements of a row that begins in a later iteration the access is fetched. What lies side by side is in a line or two.
  static std::vector<uint32_t> elements_of(const PrefetchSlice& slice, const Instruction& access) {
    if (!slice.row || slice.is_rest_of_row()) return {0};
    const auto of_row = slice.row->accesses.find(&access);
    if (of_row == slice.row->accesses.end()) return {0};
    const uint32_t count = elements_at_once(*slice.row);
    if (!of_row->second) return {0, count - 1};
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  // Of the record's ends, where the access has one (record_span.h). The other targets of the record are fetched with the first one,
  // as far ahead as that.
  void emit_prefetches(const PrefetchSlice& slice, const Instruction& access, Value* place, bool of_targets) {
    const auto ends = work_.places.find(&access);
    if (ends == work_.places.end() || (ends->second.empty() && !of_targets))
      return emit_prefetch(slice, access, place);
    for (const int64_t bytes : ends->second)
      emit_prefetch(slice, access, bytes == 0 ? place : further_by(b_, place, bytes));
  }
  void emit_prefetch(const PrefetchSlice& slice, const Instruction& access, Value* place) {
    if (!stays_near(*place)) {
      auto* const base =
          const_cast<Value*>(llvm::getUnderlyingObject(llvm::getLoadStorePointerOperand(&access), 0));
      // A base that changes in the loop is none to measure from.
      if (const auto* made = llvm::dyn_cast<Instruction>(base); made && slice.loop->contains(made)) return;
      place = clamp(place, base, lengths_.at(memory_of(access)));
    }
    llvm::CallInst* const fetch = may_be_vectors_
                                      ? add_prefetch_call(ir_, b_, b_.CreatePtrToInt(place, ir_.i64))
                                      : fetch_line(b_, place);
    tell_origin(ir_, *fetch, slice.node ? *slice.target : access);
  }

  // Of a value, so far back or ahead.
  using Clones = std::map<std::pair<const Value*, uint32_t>, Value*>;

  // A condition, so many iterations ahead.
  using Question = std::pair<uint32_t, uint32_t>;
  using Answers = std::map<Question, bool>;

  // Where the target may be some iterations ahead, whichever ways are gone until then. They are fetched in each iteration for one
  // that much later, so that those between are on their way.
  void emit_forks(const PrefetchSlice& slice) {
    if (done_.insert({slice.target, 1}).second) emit_ways(slice, {});
  }
  void emit_ways(const PrefetchSlice& slice, Answers answers) {
    const uint32_t ahead = slice.forks->count == 1 ? kMostForksAhead : 1;
    std::vector<Question> open;
    Clones clones;
    Value* const place =
        fork(llvm::getLoadStorePointerOperand(slice.target), slice, ahead, answers, open, clones);
    emit_prefetch(slice, *slice.target, place);
    // The others: the first open question has the other answer, or the second has, and so on.
    for (const Question& question : open) {
      answers[question] = true;
      emit_ways(slice, answers);
      answers[question] = false;
    }
  }
  // Recursion is bounded by the slice's length and how far ahead it is.
  Value* fork(const Value* original, const PrefetchSlice& slice, uint32_t ahead, const Answers& answers,
              std::vector<Question>& open, Clones& clones) {
    auto* const value = const_cast<Value*>(original);
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    // Blocks may have been split by now: what belongs to the slice says what is of the loop.
    if (!instruction || !is_varying(instruction, slice)) return value;
    const std::pair<const Value*, uint32_t> key(value, ahead);
    if (const auto found = clones.find(key); found != clones.end()) return found->second;
    const Forks& forks = *slice.forks;
    const auto of = [&](const Value* other) { return fork(other, slice, ahead, answers, open, clones); };
    const auto is_true = [&](uint32_t condition) {
      const Question question(condition, ahead);
      if (const auto answer = answers.find(question); answer != answers.end()) return answer->second;
      if (!llvm::is_contained(open, question)) open.push_back(question);
      return false;
    };
    Value* made = nullptr;
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction);
    if (const auto condition = forks.conditions.find(value); condition != forks.conditions.end()) {
      made = b_.getInt1(is_true(condition->second));
    } else if (!phi) {
      made = copy_of(*instruction, of);
    } else if (const auto next = forks.next.find(phi); next != forks.next.end()) {
      made = ahead == 0 ? phi : fork(next->second, slice, ahead - 1, answers, open, clones);
    } else if (const auto join = forks.joins.find(phi); join != forks.joins.end()) {
      made = of(is_true(join->second.condition) ? join->second.then : join->second.otherwise);
    } else if (const auto choice = slice.choices.find(phi); choice != slice.choices.end()) {
      made = choose(choice->second, of);
    } else {
      made = of(slice.starts.at(phi));
    }
    clones[key] = made;
    return made;
  }

  // How far ahead a value is computed: so many distances, less some iterations. Of a row that begins there, which element.
  struct Ahead {
    uint32_t multiplier = 1;
    uint32_t back = 0;
    uint32_t element = 0;
  };
  Value* clone(const Value* original, const PrefetchSlice& slice, Ahead ahead, Clones& clones) {
    auto* const value = const_cast<Value*>(original);
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !is_varying(instruction, slice)) return value;
    const std::pair<const Value*, uint32_t> key(value, ahead.back);
    if (const auto found = clones.find(key); found != clones.end()) return found->second;
    const auto of = [&](const Value* other) { return clone(other, slice, ahead, clones); };
    Value* made = nullptr;
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction);
    if (const auto way = slice.ways.find(instruction); way != slice.ways.end()) {
      made = of(way->second);
    } else if (Value* const place = place_in_stream(*instruction, ahead)) {
      made = copy_at(llvm::cast<llvm::LoadInst>(*instruction), place);
    } else if (!phi) {
      // Depth is bounded by the slice's length.
      made = copy_of(*instruction, of);
    } else if (const auto start = slice.starts.find(phi); start != slice.starts.end()) {
      made = of(start->second);
      if (ahead.element != 0)
        made = in_row(slice, *phi, made, ahead.element, {.multiplier = ahead.multiplier});
    } else if (const auto choice = slice.choices.find(phi); choice != slice.choices.end()) {
      made = choose(choice->second, of);
    } else if (const auto earlier = slice.delayed.find(phi); earlier != slice.delayed.end()) {
      Ahead before = ahead;
      ++before.back;
      made = clone(earlier->second, slice, before, clones);
    } else if (slice.is_rest_of_row() && slice.steps.contains(phi)) {
      const uint32_t elements = ahead.multiplier * elements_at_once(*slice.row);
      made = in_row(slice, *phi, carried(*phi), elements - std::min(elements, ahead.back), {.multiplier = 0});
    } else if (const auto step = slice.steps.find(phi); step != slice.steps.end()) {
      made = run_ahead(*phi, step->second, ahead);
    } else if (slice.staying.contains(phi)) {
      made = carried(*phi);
    } else {
      // Not less by the iterations back: what was is not known any more. It is a guess by so much.
      made = ahead_[std::min<size_t>(ahead.multiplier, ahead_.size()) - 1].at(phi);
    }
    clones[key] = made;
    return made;
  }

  // A copy of an operation, for wherever `of` says its operands are.
  template <typename Of>
  Value* copy_of(Instruction& original, const Of& of) {
    std::vector<Value*> operands;
    for (Value* operand : original.operands()) operands.push_back(of(operand));
    Instruction* const copy = original.clone();
    // What held for the original need not hold further ahead.
    copy->dropPoisonGeneratingFlags();
    copy->setMetadata("hindsight.position", nullptr);  // it is not the load that it copies
    if (llvm::isa<llvm::LoadInst>(original)) tell_origin(ir_, *copy, original);
    copy->setDebugLoc(location_);
    for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
    if (copy->isIntDivRem()) copy->setOperand(1, harmless_divisor(b_, *copy));
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(copy);
    if (load && !ir_.is_of(*load, IrModule::World::kRuntime)) {
      load->setOperand(0, clamp(load->getPointerOperand(), llvm::cast<llvm::LoadInst>(original)));
      forget_values(*load);
    }
    b_.Insert(copy);
    copy->setDebugLoc(location_);
    return copy;
  }
  // Of a load, elsewhere.
  Value* copy_at(const llvm::LoadInst& original, Value* place) {
    auto* const copy = llvm::cast<llvm::LoadInst>(original.clone());
    copy->setMetadata("hindsight.position", nullptr);
    tell_origin(ir_, *copy, original);
    copy->setOperand(0, place);
    forget_values(*copy);
    b_.Insert(copy);
    copy->setDebugLoc(location_);
    return copy;
  }
  static void forget_values(llvm::LoadInst& load) {
    load.setMetadata(llvm::LLVMContext::MD_range, nullptr);
    load.setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
    load.setMetadata(llvm::LLVMContext::MD_noundef, nullptr);
  }
  template <typename Of>
  Value* choose(const Choice& choice, const Of& of) {
    Value* const condition = of(choice.condition);
    Value* const then = of(choice.then);
    return b_.CreateSelect(condition, then, of(choice.otherwise));
  }

  bool is_varying(Instruction* instruction, const PrefetchSlice& slice) const {
    if (slice.ways.contains(instruction)) return true;
    if (slice.forks && slice.forks->has(*instruction)) return true;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction))
      return slice.steps.contains(phi) || slice.starts.contains(phi) || slice.choices.contains(phi) ||
             slice.delayed.contains(phi) || slice.staying.contains(phi) ||
             slice.recurrences.next.contains(phi);
    return std::find(slice.operations.begin(), slice.operations.end(), instruction) != slice.operations.end();
  }

  // A phi of the header, in the iteration that slices go on from.
  Value* carried(llvm::PHINode& phi) const { return next_ ? next_->at(&phi) : &phi; }

  Value* run_ahead(llvm::PHINode& phi, Value* step, Ahead ahead) {
    llvm::Type* const type = step->getType();
    Value* amount = b_.CreateZExtOrTrunc(distance_, type);
    if (ahead.multiplier != 1) amount = b_.CreateMul(amount, llvm::ConstantInt::get(type, ahead.multiplier));
    if (ahead.back != 0) amount = b_.CreateSub(amount, llvm::ConstantInt::get(type, ahead.back));
    amount = b_.CreateMul(amount, step);
    Value* const from = carried(phi);
    return phi.getType()->isPointerTy() ? b_.CreateGEP(ir_.i8, from, amount) : b_.CreateAdd(from, amount);
  }

  // What a variable of the row's loop is so many elements after `from`, if the row has them; else what it is there. `from` is its
  // value at some element, which is at `place`.
  Value* in_row(const PrefetchSlice& slice, llvm::PHINode& phi, Value* from, uint32_t elements, Ahead place) {
    const Row& row = *slice.row;
    const auto step = row.steps.find(&phi);
    if (step == row.steps.end() || elements == 0) return from;
    const int64_t amount = step->second->getSExtValue() * elements;
    Value* const there = phi.getType()->isPointerTy()
                             ? further_by(b_, from, amount)
                             : b_.CreateAdd(from, llvm::ConstantInt::getSigned(phi.getType(), amount));
    return b_.CreateSelect(goes_on(slice, elements, place), there, from);
  }
  // By a difference, which also says it of a row that ends where its variable is just as large, and is less than zero in a row
  // without elements.
  Value* goes_on(const PrefetchSlice& slice, uint32_t elements, Ahead place) {
    const Row& row = *slice.row;
    const int64_t step = row.steps.at(row.ends.counter)->getSExtValue();
    Clones clones;
    Value* const counter =
        place.multiplier == 0 ? carried(*row.ends.counter) : clone(row.ends.counter, slice, place, clones);
    Value* const end = clone(row.ends.end, slice, place, clones);
    Value* const at = b_.CreateSExtOrTrunc(counter, end->getType());
    Value* const rest = step > 0 ? b_.CreateSub(end, at) : b_.CreateSub(at, end);
    return b_.CreateICmpSGT(rest, llvm::ConstantInt::getSigned(at->getType(), std::abs(step) * elements));
  }

  // What recurrences are in some iteration.
  using Values = std::map<llvm::PHINode*, Value*>;

  // In the iteration after the one with these values.
  Values stepped(const Values& values) {
    std::map<const Value*, Value*> made(values.begin(), values.end());
    const std::function<Value*(Value*)> of = [&](Value* value) -> Value* {
      auto* const instruction = llvm::dyn_cast<Instruction>(value);
      if (!instruction) return value;
      if (const auto found = made.find(value); found != made.end()) return found->second;
      Value* copy = value;
      if (recurrences_.operations.contains(instruction))
        copy = copy_of(*instruction, of);
      else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction); recurrences_.choices.contains(phi))
        copy = choose(recurrences_.choices.at(phi), of);
      made[value] = copy;
      return copy;
    };
    Values after;
    for (const auto& [phi, next] : recurrences_.next) after[phi] = of(next);
    return after;
  }

  // Emits a loop: what these values are `amount` iterations later, at least one. The builder's place stays where it is.
  Values run(const Values& from, Value* amount) {
    Instruction* const rest = &*b_.GetInsertPoint();
    llvm::BasicBlock* const before = rest->getParent();
    llvm::BasicBlock* const after = llvm::SplitBlock(before, rest);
    auto* const steps = llvm::BasicBlock::Create(ir_.context, "recurrences", &function_, after);
    before->getTerminator()->setSuccessor(0, steps);
    b_.SetInsertPoint(steps);
    b_.SetCurrentDebugLocation(location_);
    llvm::PHINode* const done = b_.CreatePHI(ir_.i32, 2);
    done->addIncoming(int32(0), before);
    Values here;
    for (const auto& [phi, first] : from) {
      llvm::PHINode* const carried = b_.CreatePHI(phi->getType(), 2);
      carried->addIncoming(first, before);
      here[phi] = carried;
    }
    const Values next = stepped(here);
    for (const auto& [phi, carried] : here)
      llvm::cast<llvm::PHINode>(carried)->addIncoming(next.at(phi), steps);
    Value* const count = b_.CreateAdd(done, int32(1));
    done->addIncoming(count, steps);
    b_.CreateCondBr(b_.CreateICmpULT(count, amount), steps, after)
        ->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
    at(rest);
    return next;
  }

  // In one stage after the other: the first is one distance ahead of `from`.
  void run_ahead_from(const Values& from) {
    if (recurrences_.next.empty()) return;
    ahead_.clear();
    Values last;
    for (const auto& [phi, next] : recurrences_.next) last[phi] = from.at(phi);
    for (uint32_t stage = 0; stage < stages_; ++stage) ahead_.push_back(last = run(last, distance_));
  }

  // Gives the loop a copy of its recurrences for each stage: in strips they begin as ahead_ says. Otherwise they are
  // taken for being no iterations ahead until they were run ahead.
  void carry_recurrences() {
    if (recurrences_.next.empty()) return;
    llvm::BasicBlock* const header = work_.loop->getHeader();
    const std::vector<Values> first = ahead_;
    const auto carry = [&](llvm::Type* type, Value* start) {
      llvm::PHINode* const carried = llvm::PHINode::Create(type, 2, "", header->begin());
      carried->setDebugLoc(location_);
      for (llvm::BasicBlock* from : llvm::predecessors(header)) {
        const bool is_entry = entry_ ? from == entry_ : !work_.loop->contains(from);
        carried->addIncoming(is_entry ? start : llvm::PoisonValue::get(type), from);
      }
      return carried;
    };
    ahead_.assign(stages_, {});
    for (uint32_t stage = 0; stage < stages_; ++stage)
      for (const auto& [phi, next] : recurrences_.next)
        ahead_[stage][phi] =
            carry(phi->getType(),
                  first.empty() ? llvm::Constant::getNullValue(phi->getType()) : first[stage].at(phi));
    if (first.empty()) iterations_ahead_ = carry(ir_.i32, int32(0));
    carried_ = ahead_;
  }
  void come_round_with(Value* carried, Value* value) {
    auto* const phi = llvm::cast<llvm::PHINode>(carried);
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
      if (llvm::isa<llvm::PoisonValue>(phi->getIncomingValue(i))) phi->setIncomingValue(i, value);
  }
  void step_in_strips() {
    for (const Values& stage : carried_) {
      const Values next = stepped(stage);
      for (const auto& [phi, value] : next) come_round_with(stage.at(phi), value);
    }
  }

  // Before `slice_end`, in a loop that looks at its cell in each iteration: where the copies are not as far ahead as the
  // distance says, they are run there from here.
  void catch_up(Instruction& slice_end) {
    if (recurrences_.next.empty()) return;
    llvm::BasicBlock* const behind = slice_end.getParent();
    Value* const is_behind = b_.CreateICmpNE(iterations_ahead_, distance_);
    Instruction* const running = llvm::SplitBlockAndInsertIfThen(is_behind, &slice_end, false, ir_.unlikely);
    running->setDebugLoc(location_);
    at(running);
    Values now;
    for (const auto& [phi, next] : recurrences_.next) now[phi] = phi;
    run_ahead_from(now);
    b_.SetInsertPoint(slice_end.getParent(), slice_end.getParent()->begin());
    b_.SetCurrentDebugLocation(location_);
    for (uint32_t stage = 0; stage < stages_; ++stage) {
      for (auto& [phi, value] : ahead_[stage]) {
        llvm::PHINode* const joined = b_.CreatePHI(phi->getType(), 2);
        joined->addIncoming(carried_[stage].at(phi), behind);
        joined->addIncoming(value, running->getParent());
        value = joined;
      }
    }
    at(&slice_end);
  }

  // At `past`, where the way that executes the slices meets `paused`.
  void step_where_enabled(llvm::BasicBlock& past, Instruction& slice_end, llvm::BasicBlock* paused) {
    if (recurrences_.next.empty()) return;
    const auto join = [&](Value* stepped, Value* kept) {
      llvm::PHINode* const joined = llvm::PHINode::Create(stepped->getType(), 2, "", past.begin());
      joined->setDebugLoc(location_);
      joined->addIncoming(stepped, slice_end.getParent());
      joined->addIncoming(kept, paused);
      return joined;
    };
    for (uint32_t stage = 0; stage < stages_; ++stage) {
      const Values next = stepped(ahead_[stage]);
      for (const auto& [phi, value] : next) {
        Value* const carried = carried_[stage].at(phi);
        come_round_with(carried, join(value, carried));
      }
    }
    come_round_with(iterations_ahead_, join(distance_, int32(0)));
  }
  static llvm::BasicBlock* other_way(llvm::BasicBlock* to, const Instruction& way) {
    for (llvm::BasicBlock* from : llvm::predecessors(to))
      if (from != way.getParent()) return from;
    return nullptr;
  }

  // Invariant: the result is readable for the load's bytes, whatever `place` is, because memory has at least
  // a page here. An unsigned comparison refuses places below the base as well. What LLVM made of the original
  // (a shift whose amount it knew to be small) may be poison further ahead. A load's address must not be
  // poison.
  Value* clamp(Value* place, llvm::LoadInst& original) {
    place = b_.CreateFreeze(place);
    Value* const base = llvm::getUnderlyingObject(original.getPointerOperand(), 0);
    const uint64_t bytes = function_.getParent()->getDataLayout().getTypeStoreSize(original.getType());
    Value* const offset = b_.CreateSub(b_.CreatePtrToInt(place, ir_.i64), b_.CreatePtrToInt(base, ir_.i64));
    Value* const length = lengths_.at(memory_of(original));
    Value* const last = b_.CreateSub(length, llvm::ConstantInt::get(ir_.i64, bytes));
    return b_.CreateSelect(b_.CreateICmpULE(offset, last), place, base);
  }

  // A prefetch faults nowhere, but outside the guest's memory it would fetch what is the host's. So it stays
  // in the memory too, or near it, where 32 bits of index lead.
  Value* clamp(Value* place, Value* base, Value* length) {
    Value* const offset = b_.CreateSub(b_.CreatePtrToInt(place, ir_.i64), b_.CreatePtrToInt(base, ir_.i64));
    return b_.CreateSelect(b_.CreateICmpULT(offset, length), place, base);
  }
  // A memory's base, an index of up to 32 bits, and offsets of as many: inside the reservation.
  bool stays_near(const Value& place) const {
    const Value* at = &place;
    bool has_index = false;
    while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(at)) {
      if (!is_of_bytes(*step)) return false;
      const Value* const index = step->getOperand(1);
      const llvm::KnownBits known = llvm::computeKnownBits(index, ir_.module.getDataLayout());
      if (known.countMaxActiveBits() > 32) return false;
      if (!llvm::isa<llvm::ConstantInt>(index) && std::exchange(has_index, true)) return false;
      at = step->getPointerOperand();
    }
    const std::optional<uint32_t> memory = ir_.memory_of(at, function_.getArg(0));
    // With 64-bit addresses a memory may have a smaller reservation.
    return memory && !ir_.wasm.memories[*memory].is64;
  }

  // Strips whose copy with prefetches may become vectors, as the one without may. Its prefetches are calls that vectors can
  // have, and what the slices load in even steps is not clamped: whether it stays in memory the strip's head asks. So an
  // iteration is as free of choices as one without. Short rows end before vectors pay, and recurrences have none.
  bool may_be_vectors(Backedges backedges) const {
    return ir_.request.tuning.vectorize && backedges.known_to_llvm && !work_.has_rows && stages_ == 0 &&
           has_a_page();
  }

  // A load of a slice, and where it is so many distances ahead in the strip's first iteration.
  struct Stream {
    const PrefetchSlice* slice = nullptr;
    int64_t step = 0;
    uint32_t stages = 0;
    std::vector<Value*> first;   // a stage each
    std::vector<Value*> places;  // now
  };
  void find_streams() {
    for (const PrefetchSlice& slice : work_.slices) {
      for (const Instruction* operation : slice.operations) {
        const auto* load = llvm::dyn_cast<llvm::LoadInst>(operation);
        if (!load || ir_.is_of(*load, IrModule::World::kRuntime)) continue;
        const int64_t step = stream_step(slice, *load);
        if (step == 0) continue;
        Stream& stream = streams_[load];
        if (stream.slice == nullptr)
          stream = {.slice = &slice, .step = step, .stages = 0, .first = {}, .places = {}};
        stream.stages = std::max(stream.stages, slice.target_level);
      }
    }
  }

  // At the end of the head: a strip with prefetches ends before one of the streams leaves memory.
  //
  // Invariant: in each of its iterations what a stream reads is in memory. The first place is, because it is looked at;
  // the last one is not further than the rest of memory is long, in steps, and steps lead the same way.
  void begin_streams(const CarriedValues& first, StripChoice& choice) {
    load_lengths();
    // Read once: the cell is shared with others, and what was looked at has to be what is used.
    Value* const distance = cell_load(kCellDistance);
    Value* const ahead = b_.CreateZExt(distance, ir_.i64);
    Value* most = choice.most_backedges;
    next_ = &first;
    distance_ = int32(0);
    for (auto& [load, stream] : streams_) {
      Clones clones;
      Value* const here =
          b_.CreateFreeze(clone(load->getPointerOperand(), *stream.slice, {.multiplier = 1}, clones));
      auto* const base = const_cast<Value*>(llvm::getUnderlyingObject(load->getPointerOperand(), 0));
      const uint64_t bytes = function_.getParent()->getDataLayout().getTypeStoreSize(load->getType());
      Value* const last = b_.CreateSub(lengths_.at(memory_of(*load)), llvm::ConstantInt::get(ir_.i64, bytes));
      Value* const offset = b_.CreateSub(b_.CreatePtrToInt(here, ir_.i64), b_.CreatePtrToInt(base, ir_.i64));
      for (uint32_t stage = 1; stage <= stream.stages; ++stage) {
        llvm::Constant* const step = llvm::ConstantInt::getSigned(ir_.i64, stage * stream.step);
        Value* const begin = b_.CreateAdd(offset, b_.CreateMul(ahead, step));
        choice.with = b_.CreateAnd(choice.with, b_.CreateICmpULE(begin, last));
        Value* const rest = stream.step > 0 ? b_.CreateSub(last, begin) : begin;
        most = b_.CreateBinaryIntrinsic(
            llvm::Intrinsic::umin, most,
            b_.CreateUDiv(rest, llvm::ConstantInt::getSigned(ir_.i64, std::abs(stream.step))));
        stream.first.push_back(b_.CreateGEP(ir_.i8, base, begin));
      }
    }
    choice.most_backedges = b_.CreateSelect(choice.with, most, choice.most_backedges);
    next_ = nullptr;
    distance_ = distance;
  }

  // In the copy with: one counter for all streams of a step.
  void go_through_streams(llvm::BasicBlock& entry, Instruction* rest) {
    llvm::BasicBlock* const header = work_.loop->getHeader();
    Instruction* const end = work_.loop->getLoopLatch()->getTerminator();
    std::map<int64_t, llvm::PHINode*> offsets;
    for (auto& [load, stream] : streams_) {
      llvm::PHINode*& offset = offsets[stream.step];
      if (offset == nullptr) {
        offset = llvm::PHINode::Create(ir_.i64, 2, "", header->begin());
        offset->setDebugLoc(location_);
        at(end);
        offset->addIncoming(llvm::ConstantInt::get(ir_.i64, 0), &entry);
        offset->addIncoming(b_.CreateNSWAdd(offset, llvm::ConstantInt::getSigned(ir_.i64, stream.step)),
                            end->getParent());
      }
      at(rest);
      for (Value* first : stream.first) stream.places.push_back(b_.CreateGEP(ir_.i8, first, offset));
    }
  }

  // Null: it is in none, or where it is is asked for elsewhere than in the strip.
  Value* place_in_stream(const Instruction& instruction, Ahead ahead) const {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load == nullptr || next_ != nullptr || ahead.back != 0) return nullptr;
    const auto stream = streams_.find(load);
    if (stream == streams_.end() || ahead.multiplier > stream->second.places.size()) return nullptr;
    return stream->second.places[ahead.multiplier - 1];
  }

  llvm::ConstantInt* int32(uint32_t value) { return llvm::ConstantInt::get(ir_.i32, value); }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  LoopWork& work_;
  llvm::IRBuilder<> b_;
  CellCode cell_;
  llvm::DebugLoc location_;
  std::map<uint32_t, Value*> lengths_;  // of the memories that clamped loads read
  Recurrences recurrences_;             // of all slices
  uint32_t stages_ = 0;                 // of the slices with recurrences
  std::vector<Values> ahead_;           // what they are so many distances ahead, where slices are emitted
  std::vector<Values> carried_;         // phis of the loop
  Value* iterations_ahead_ = nullptr;   // of the first stage; in a loop without strips
  llvm::BasicBlock* entry_ =
      nullptr;  // of the version that prefetches, if the loop's set of blocks does not say
  Value* distance_ = nullptr;
  bool may_be_vectors_ = false;
  std::map<const llvm::LoadInst*, Stream> streams_;
  const std::map<llvm::PHINode*, Value*>* next_ = nullptr;  // in place of the header's phis
  std::set<std::pair<const Instruction*, uint32_t>> done_;
};

}  // namespace

void emit_prefetches(ChangeSet& changes, llvm::Function& function, LoopWork& work, uint32_t cell,
                     Backedges backedges) {
  PrefetchEmitter emitter(changes, function, work, cell);
  if (backedges.count) {
    emitter.emit_in_strips(backedges);
  } else {
    emitter.emit_in_loop();
  }
}

void emit_prefetches_in_versions(ChangeSet& changes, llvm::Function& function, VersionedWorks& group,
                                 uint32_t cell) {
  const CellCode code(changes.ir, function, cell);
  const llvm::DebugLoc location = loop_location(changes.ir, function, group.claim.loop());
  std::vector<uint32_t> scales;  // of the loops as they were
  std::vector<std::unique_ptr<PrefetchEmitter>> emitters;
  for (LoopWork& work : group.works) {
    scales.push_back(turns_at_once(*work.loop, *group.loop));
    emitters.push_back(std::make_unique<PrefetchEmitter>(changes, function, work, cell));
  }
  std::vector<Instruction*> strip_ends;  // in the tail, which comes first, and where the loop is left
  const LoopVersions versions = make_versions(
      *group.loop, location,
      [&](llvm::IRBuilder<>& head) {
        VersionChoice choice = choice_of(code, head);
        for (const auto& emitter : emitters)
          if (Value* const may = emitter->may_prefetch(head)) choice.with = head.CreateAnd(choice.with, may);
        return choice;
      },
      [&](Instruction* before, Value* iterations) {
        code.emit_countdown(iterations, before, location,
                            [&](Instruction* end) { strip_ends.push_back(end); });
      });
  for (size_t i = 0; i < emitters.size(); ++i) emitters[i]->emit_in_version(versions, scales[i]);
  for (size_t i = 0; i < emitters.size(); ++i) {
    if (group.works[i].loop != group.loop) continue;
    // Before the runtime is called there.
    const auto begin_of = [](Instruction* end) { return &*end->getParent()->getFirstInsertionPt(); };
    emitters[i]->emit_upcoming_after(versions, begin_of(strip_ends.front()));
    for (size_t exit = 1; exit < strip_ends.size(); ++exit)
      emitters[i]->emit_nothing_upcoming(begin_of(strip_ends[exit]));
  }
}

}  // namespace hindsight::jit::optimizing
