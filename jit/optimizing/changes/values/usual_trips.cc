#include "jit/optimizing/changes/values/usual_trips.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <map>

#include "jit/optimizing/changes/values/value_parameters.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_groups.h"
#include "jit/optimizing/versions/loop_parts.h"
#include "jit/optimizing/versions/loop_versions.h"
#include "jit/optimizing/versions/strips.h"
#include "jit/wasm/instruction_kinds.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::SCEV;
using llvm::Value;

// One loop that is asked about, and what is compared for it.
struct Trip {
  Slot* slot = nullptr;
  Loop* loop = nullptr;
  uint64_t turns = 0;
  const SCEV* backedges = nullptr;
  // The one value that the number comes from, if it stays the same in the loop around, and what that is then.
  Value* operand = nullptr;
  llvm::ConstantInt* number = nullptr;
  // Else: the backedges, computed before the loop around (`certain`) or before the loop.
  Value* computed = nullptr;
  bool certain = false;
};

using TripsGroup = LoopGroup<Trip>;

// But for traps.
bool is_left_at_latch_alone(const Loop& loop) {
  BasicBlock* const latch = loop.getLoopLatch();
  const auto* const branch =
      latch == nullptr ? nullptr : llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator());
  if (branch == nullptr || !branch->isConditional() || !loop.isLoopExiting(latch)) return false;
  for (const BasicBlock* block : loop.blocks())
    for (const BasicBlock* next : llvm::successors(block))
      if (block != latch && !loop.contains(next) && !only_traps(*next)) return false;
  return true;
}

// The one value that an expression is made of; null: none, or several.
class OnlyUnknown {
 public:
  static Value* of(const SCEV* expression) {
    OnlyUnknown found;
    llvm::visitAll(expression, found);
    return found.others_ ? nullptr : found.value_;
  }
  bool follow(const SCEV* part) {
    if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part)) {
      if (value_ != nullptr && value_ != unknown->getValue()) others_ = true;
      value_ = unknown->getValue();
      if (!value_->getType()->isIntegerTy()) others_ = true;
    }
    if (llvm::isa<llvm::SCEVAddRecExpr>(part)) others_ = true;
    return !others_;
  }
  bool isDone() const { return others_; }

 private:
  Value* value_ = nullptr;
  bool others_ = false;
};

// What values become where one of them is a constant.
class KnownValues {
 public:
  KnownValues(Value* operand, llvm::Constant* number, const llvm::DataLayout& layout) : layout_(layout) {
    known_[operand] = number;
  }
  // Null: no constant.
  llvm::Constant* find(Value* value, unsigned depth = 0) {
    if (auto* const constant = llvm::dyn_cast<llvm::Constant>(value)) return constant;
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == nullptr || depth >= kDeepestTripCount ||
        llvm::isa<PHINode, llvm::CallBase>(instruction) || instruction->mayReadOrWriteMemory() ||
        instruction->isTerminator())
      return nullptr;
    std::vector<llvm::Constant*> operands;
    for (Value* operand : instruction->operands()) {
      operands.push_back(find(operand, depth + 1));
      if (operands.back() == nullptr) return known_[value] = nullptr;
    }
    return known_[value] = llvm::ConstantFoldInstOperands(instruction, operands, layout_);
  }

 private:
  const llvm::DataLayout& layout_;
  std::map<Value*, llvm::Constant*> known_;
};

// In front of the loop: if (usual) the loop, else a copy of it.
// Returns where the loop is entered now.
BasicBlock* make_versions_at_entry(Loop& loop, Value* usual, llvm::MDNode* weights,
                                   const llvm::DebugLoc& location) {
  BasicBlock* const before = loop.getLoopPreheader();
  BasicBlock* const header = loop.getHeader();
  llvm::SmallVector<BasicBlock*, 4> exits;
  loop.getUniqueExitBlocks(exits);
  const auto new_block = [&](const char* name) {
    return BasicBlock::Create(header->getContext(), name, header->getParent(), header);
  };
  BasicBlock* const entry = new_block("usual");
  BasicBlock* const other_entry = new_block("unusual");
  llvm::ValueToValueMapTy map;
  const std::vector<BasicBlock*> copies = copy_blocks(loop.getBlocks(), ".unusual", map);
  map[before] = other_entry;
  llvm::remapInstructionsInBlocks(copies, map);
  for (PHINode& phi : header->phis()) phi.replaceIncomingBlockWith(before, entry);
  llvm::BranchInst::Create(header, entry)->setDebugLoc(location);
  llvm::BranchInst::Create(llvm::cast<BasicBlock>(map[header]), other_entry)->setDebugLoc(location);
  for (BasicBlock* exit : exits) {
    for (PHINode& phi : exit->phis()) {
      for (unsigned i = 0, n = phi.getNumIncomingValues(); i < n; ++i) {
        BasicBlock* const from = phi.getIncomingBlock(i);
        if (!loop.contains(from)) continue;
        Value* const value = phi.getIncomingValue(i);
        const auto copied = map.find(value);
        phi.addIncoming(copied == map.end() ? value : static_cast<Value*>(copied->second),
                        llvm::cast<BasicBlock>(map[from]));
      }
    }
  }
  before->getTerminator()->eraseFromParent();
  llvm::IRBuilder<> b(before);
  b.SetCurrentDebugLocation(location);
  b.CreateCondBr(usual, entry, other_entry, weights);
  return entry;
}

// The latch counts to that number instead of asking its old condition.
void count_to(Loop& loop, uint64_t turns, BasicBlock* entry) {
  BasicBlock* const header = loop.getHeader();
  BasicBlock* const latch = loop.getLoopLatch();
  auto* const branch = llvm::cast<llvm::BranchInst>(latch->getTerminator());
  llvm::Type* const type = llvm::Type::getInt32Ty(header->getContext());
  PHINode* const done = PHINode::Create(type, 2, "", header->begin());
  done->setDebugLoc(branch->getDebugLoc());
  llvm::IRBuilder<> b(branch);
  Value* const next = b.CreateAdd(done, llvm::ConstantInt::get(type, 1), "", /*NUW=*/true);
  done->addIncoming(llvm::ConstantInt::get(type, 0), entry);
  done->addIncoming(next, latch);
  Value* const end = llvm::ConstantInt::get(type, turns);
  branch->setCondition(branch->getSuccessor(0) == header ? b.CreateICmpNE(next, end)
                                                         : b.CreateICmpEQ(next, end));
}

class TripMaker {
 public:
  TripMaker(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)) {}

  bool run() {
    for (Loop* loop : loops_.getLoopsInPreorder())
      if (loop->isInnermost()) judge(*loop);
    merge_groups();
    // Everything that is computed before a loop while the analyses are true.
    std::erase_if(groups_, [&](TripsGroup& group) { return !prepare(group); });
    for (TripsGroup& group : groups_) change(group);
    return !groups_.empty();
  }

 private:
  // The wasm loops that it belongs to, innermost first.
  std::vector<WasmOffset> wasm_loops_of(const Loop& loop) const {
    for (const BasicBlock* block : loop.blocks())
      for (const Instruction& instruction : *block)
        if (const llvm::DILocation* const position = ir_.position_of(instruction))
          if (auto around = wasm_loops_around(ir_.wasm, position); !around.empty()) return around;
    return {};
  }

  void judge(Loop& loop) {
    const std::vector<WasmOffset> around = wasm_loops_of(loop);
    if (around.empty()) return;
    const std::span<Slot> values = changes_.of(ChangeKind::kValue);
    const auto asked = std::ranges::find(values, around.front(), &Slot::at);
    if (asked == values.end() || !wasm::is_loop(ir_.wasm, asked->at())) return;
    Slot& slot = *asked;
    const uint64_t turns = what_of<UsualValue>(slot.request).value;
    if (turns == 0 || turns > kMostUsualTurns)
      return slot.refuse("so large a trip count gains nothing from being known");
    if (!loop.isLoopSimplifyForm() || !is_left_at_latch_alone(loop))
      return slot.refuse("the loop has more exits than the one at its end");
    const SCEV* const backedges = evolution_.getExitCount(&loop, loop.getLoopLatch());
    if (llvm::isa<llvm::SCEVCouldNotCompute>(backedges) ||
        evolution_.getTypeSizeInBits(backedges->getType()) > 64)
      return slot.refuse("the trip count is not known when the loop is entered");
    if (llvm::isa<llvm::SCEVConstant>(backedges)) return slot.refuse("the trip count is constant");
    // LLVM counts in as few bits as the loop needs.
    if (!llvm::isUIntN(static_cast<unsigned>(evolution_.getTypeSizeInBits(backedges->getType())), turns - 1))
      return slot.refuse("the loop never has so many iterations");
    Trip trip{.slot = &slot, .loop = &loop, .turns = turns, .backedges = backedges};
    trip.operand = OnlyUnknown::of(backedges);
    if (trip.operand != nullptr) {
      const std::vector<llvm::ConstantInt*> numbers = numbers_for(trip);
      if (numbers.empty())
        trip.operand = nullptr;
      else
        trip.number = numbers.front();
    }
    Loop* const home = loop_to_try(trip);
    if (home == nullptr) return slot.refuse("it is in no loop that could be on trial");
    const size_t levels_up = loop.getLoopDepth() - home->getLoopDepth();
    const auto claim = changes_.claim(
        slot,
        {.loop = around[std::min(levels_up, around.size() - 1)], .around = around, .loads = loads_in(*home)});
    if (!claim) return slot.wait(claim.error());
    if (slot.is_elsewhere(*claim)) return;
    if (trip.operand != nullptr && !is_the_same_in(trip.operand, *home)) trip.operand = nullptr;
    trip.certain = trip.operand != nullptr || evolution_.isLoopInvariant(backedges, home);
    group_of(groups_, *home, *claim).parts.push_back(trip);
  }

  bool is_the_same_in(Value* value, const Loop& loop) const {
    const auto* const instruction = llvm::dyn_cast<Instruction>(value);
    return instruction == nullptr ||
           dominators_.dominates(instruction, loop.getLoopPreheader()->getTerminator());
  }

  // Backedges if the operand is that number; null: not known.
  const llvm::APInt* backedges_for(const SCEV* backedges, Value* operand, llvm::ConstantInt* number) {
    llvm::ValueToSCEVMapTy map;
    map[operand] = evolution_.getConstant(number);
    const auto* const known =
        llvm::dyn_cast<llvm::SCEVConstant>(llvm::SCEVParameterRewriter::rewrite(backedges, evolution_, map));
    return known == nullptr ? nullptr : &known->getAPInt();
  }

  bool goes_round(const Trip& trip, llvm::ConstantInt* number) {
    const llvm::APInt* const backedges = backedges_for(trip.backedges, trip.operand, number);
    return backedges != nullptr && *backedges == trip.turns - 1;
  }

  // Which numbers of its operand make the loop iterate that often. They are n, n + 1, or n pieces of a power
  // of two and a rest, which another loop takes. The likely ones first.
  std::vector<llvm::ConstantInt*> numbers_for(const Trip& trip) {
    auto* const type = llvm::cast<llvm::IntegerType>(trip.operand->getType());
    std::vector<llvm::ConstantInt*> numbers;
    const auto consider = [&](uint64_t value) {
      auto* const number = llvm::ConstantInt::get(type, value);
      if (std::ranges::find(numbers, number) == numbers.end() && goes_round(trip, number))
        numbers.push_back(number);
    };
    if (type->getBitWidth() > 64) return numbers;
    for (const uint64_t piece : {1, 2, 4, 8, 16, 32}) consider(trip.turns * piece);
    for (const uint64_t other : {trip.turns - 1, trip.turns + 1}) consider(other);
    for (const uint64_t piece : {2, 4, 8, 16})
      for (uint64_t rest = 1; rest < piece; ++rest) consider(trip.turns * piece + rest);
    return numbers;
  }

  // What several loops say of one operand: the number that gives most of them their usual trip count.
  void agree_on_numbers(TripsGroup& group) {
    std::map<Value*, llvm::ConstantInt*> agreed;
    for (const Trip& one : group.parts) {
      if (one.operand == nullptr || agreed.contains(one.operand)) continue;
      ptrdiff_t most = 0;
      for (const Trip& trip : group.parts) {
        if (trip.operand != one.operand) continue;
        for (llvm::ConstantInt* number : numbers_for(trip)) {
          const ptrdiff_t agree = std::ranges::count_if(group.parts, [&](const Trip& other) {
            return other.operand == one.operand && goes_round(other, number);
          });
          if (agree <= most) continue;
          most = agree;
          agreed[one.operand] = number;
        }
      }
    }
    std::erase_if(group.parts, [&](Trip& trip) {
      if (trip.operand == nullptr) return false;
      trip.number = agreed.at(trip.operand);
      if (goes_round(trip, trip.number)) return false;
      trip.slot->refuse(
          "another loop specializes the value that the trip count depends on for another number");
      return true;
    });
  }

  // How often a loop iterates, as far as anybody knows; 0: nobody does.
  double turns_of(const Loop& loop, const Trip& trip) {
    if (loop.getLoopLatch() == nullptr) return 0;
    if (const unsigned known = evolution_.getSmallConstantTripCount(&loop); known != 0) return known;
    if (loop.isLoopExiting(loop.getLoopLatch()) && trip.operand != nullptr) {
      const SCEV* const backedges = evolution_.getExitCount(&loop, loop.getLoopLatch());
      if (!llvm::isa<llvm::SCEVCouldNotCompute>(backedges))
        if (const llvm::APInt* known = backedges_for(backedges, trip.operand, trip.number))
          return 1 + known->roundToDouble();
    }
    return expected_turns(loop);
  }

  // The loop around, with what is left soon.
  Loop* loop_to_try(const Trip& trip) {
    Loop* const around = trip.loop->getParentLoop();
    if (around == nullptr || !why_not_twice(*around, dominators_).empty()) return nullptr;
    return &with_short_loops(*around, dominators_, [&](const Loop& loop) { return turns_of(loop, trip); });
  }

  std::set<WasmOffset> loads_in(const Loop& loop) const {
    std::set<WasmOffset> loads;
    for (const BasicBlock* block : loop.blocks())
      for (const Instruction& instruction : *block)
        if (const llvm::DILocation* const position =
                llvm::isa<llvm::LoadInst>(instruction) ? ir_.position_of(instruction) : nullptr)
          loads.emplace(position->getLine());
    return loads;
  }

  void merge_groups() {
    groups_ = merged<Trip>(std::move(groups_), [&](TripsGroup& around, Trip trip) {
      if (trip.slot->is_elsewhere(around.claim)) return;
      if (trip.operand != nullptr && !is_the_same_in(trip.operand, *around.loop)) trip.operand = nullptr;
      trip.certain = trip.operand != nullptr || evolution_.isLoopInvariant(trip.backedges, around.loop);
      around.parts.push_back(trip);
    });
  }

  bool prepare(TripsGroup& group) {
    agree_on_numbers(group);
    std::vector<Trip> kept;
    for (Trip& trip : group.parts) {
      if (trip.operand != nullptr) {
        kept.push_back(trip);
        continue;
      }
      Instruction* place = (trip.certain ? group.loop : trip.loop)->getLoopPreheader()->getTerminator();
      llvm::SCEVExpander expander(evolution_, place->getModule()->getDataLayout(), "turns");
      if (trip.certain && !expander.isSafeToExpandAt(trip.backedges, place)) {
        trip.certain = false;
        place = trip.loop->getLoopPreheader()->getTerminator();
      }
      if (!expander.isSafeToExpandAt(trip.backedges, place)) {
        trip.slot->refuse("the trip count cannot be computed before the loop");
        continue;
      }
      trip.computed = expander.expandCodeFor(trip.backedges, trip.backedges->getType(), place);
      kept.push_back(trip);
    }
    group.parts = std::move(kept);
    if (group.parts.empty()) return false;
    if (is_left_at_latch_alone(*group.loop))
      backedges_[group.loop] = emit_latch_backedges(*group.loop, evolution_, location_of(group));
    return true;
  }

  llvm::DebugLoc location_of(const TripsGroup& group) const {
    return loop_location(ir_, function_, group.claim.loop());
  }

  // Whether all that does not change in the loop around is what it usually is.
  Value* usual_throughout(const TripsGroup& group, llvm::IRBuilder<>& b) const {
    Value* all = b.getTrue();
    for (const Trip& trip : group.parts) {
      if (!trip.certain) continue;
      Value* const one =
          trip.operand != nullptr
              ? b.CreateICmpEQ(b.CreateFreeze(trip.operand), trip.number)
              : b.CreateICmpEQ(b.CreateFreeze(trip.computed),
                               llvm::ConstantInt::get(trip.computed->getType(), trip.turns - 1));
      all = b.CreateAnd(all, one);
    }
    return all;
  }

  void change(TripsGroup& group) {
    uint32_t cell = 0;  // the same for all
    for (const Trip& trip : group.parts) cell = changes_.cell_of(group.claim, *trip.slot);
    const CellCode code(ir_, function_, cell);
    const llvm::DebugLoc location = location_of(group);
    // Once, in front.
    llvm::IRBuilder<> before(group.loop->getLoopPreheader()->getTerminator());
    before.SetCurrentDebugLocation(location);
    Value* const usual = usual_throughout(group, before);
    llvm::MDNode* const old_identity = group.loop->getLoopID();
    if (const auto known = backedges_.find(group.loop);
        known != backedges_.end() && known->second.count != nullptr) {
      BasicBlock* const latch = group.loop->getLoopLatch();
      const Strips strips =
          make_strips(*group.loop, known->second, location,
                      [&](llvm::IRBuilder<>& b, const CarriedValues&) -> StripChoice {
                        b.SetCurrentDebugLocation(location);
                        Value* const most = b.CreateBinaryIntrinsic(
                            llvm::Intrinsic::smax, code.load(b, kCellCountdown),
                            llvm::ConstantInt::getSigned(ir_.i32, kShortestTripStrip - 1));
                        return {.most_backedges = b.CreateZExt(most, ir_.i64),
                                .with = b.CreateAnd(b.CreateIsNotNull(code.load(b, kCellEnabled)), usual)};
                      });
      // As free as the copy to become vectors.
      latch->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, old_identity);
      llvm::IRBuilder<> b(strips.tail->getTerminator());
      b.SetCurrentDebugLocation(location);
      code.emit_countdown(b.CreateTrunc(strips.count, ir_.i32), strips.tail->getTerminator(), location);
    } else {
      make_versions(
          *group.loop, location,
          [&](llvm::IRBuilder<>& b) -> VersionChoice {
            VersionChoice choice = choice_of(code, b);
            choice.with = b.CreateAnd(choice.with, usual);
            return choice;
          },
          [&](Instruction* rest, Value* iterations) { code.emit_countdown(iterations, rest, location); });
    }
    for (const Trip& trip : group.parts) know_turns(group, trip, location);
  }

  void know_turns(const TripsGroup& group, const Trip& trip, const llvm::DebugLoc& location) {
    std::string words = "specialized for trip count " + std::to_string(trip.turns);
    if (trip.operand != nullptr) {
      KnownValues known(trip.operand, trip.number, function_.getParent()->getDataLayout());
      for (BasicBlock* block : group.loop->blocks()) {
        for (Instruction& instruction : *block) {
          for (llvm::Use& use : instruction.operands()) {
            const auto* const from = llvm::dyn_cast<Instruction>(use.get());
            if (llvm::isa<llvm::Constant, BasicBlock, llvm::MetadataAsValue>(use.get()) ||
                (from != nullptr && group.loop->contains(from)))
              continue;
            if (llvm::Constant* const constant = known.find(use.get())) use.set(constant);
          }
        }
      }
    } else if (trip.certain) {
      count_to(*trip.loop, trip.turns, trip.loop->getLoopPreheader());  // within the loop around: as it was
    } else {
      llvm::IRBuilder<> b(trip.loop->getLoopPreheader()->getTerminator());
      b.SetCurrentDebugLocation(location);
      const double share = what_of<UsualValue>(trip.slot->request).share;
      Value* const usual = b.CreateICmpEQ(b.CreateFreeze(trip.computed),
                                          llvm::ConstantInt::get(trip.computed->getType(), trip.turns - 1));
      llvm::MDNode* const weights = ir_.branch_weights(share, std::max(1 - share, kLeastTripsShareLeft));
      count_to(*trip.loop, trip.turns, make_versions_at_entry(*trip.loop, usual, weights, location));
    }
    if (trip.operand != nullptr) {
      llvm::SmallString<20> number;
      trip.number->getValue().toStringSigned(number);
      words += ", when the value it depends on is " + std::string(number.str());
    }
    if (trip.certain) words += ", compared once a strip";
    trip.slot->apply(group.claim, words);
  }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  std::vector<TripsGroup> groups_;
  std::map<const Loop*, Backedges> backedges_;  // of those loops that are counted
};

}  // namespace

llvm::PreservedAnalyses UsualTripsPass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
  if (!TripMaker(*changes_, function, analyses).run()) return llvm::PreservedAnalyses::all();
  analyses.invalidate(function, llvm::PreservedAnalyses::none());
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SCCPPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  llvm::LoopPassManager of_loops;
  of_loops.addPass(llvm::LoopFullUnrollPass(/*OptLevel=*/3));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(of_loops)));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.run(function, analyses);
  return llvm::PreservedAnalyses::none();
}

bool asks_for_trips(const ChangeSet& changes) {
  return std::ranges::any_of(changes.of(ChangeKind::kValue),
                             [&](const Slot& slot) { return wasm::is_loop(changes.ir.wasm, slot.at()); });
}

void add_usual_trips(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(UsualTripsPass(changes));
}

}  // namespace hindsight::jit::optimizing
