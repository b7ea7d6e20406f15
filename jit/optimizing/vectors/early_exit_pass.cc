#include "jit/optimizing/vectors/early_exit_pass.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/LoopPeel.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <map>

#include "jit/optimizing/ir/load_user.h"
#include "jit/optimizing/vectors/affine_access.h"
#include "jit/optimizing/vectors/reroll.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;
using llvm::PHINode;
using llvm::SCEV;
using llvm::Value;

// No host has smaller pages.
constexpr uint64_t kPageBytes = 4096;
constexpr unsigned kLanes = 16;
// Taken one by one before the loop, and one more in it. A comparison that ends in one of them costs as much as without vectors.
constexpr unsigned kIterationsBefore = 2;
constexpr unsigned kLeastIterations = 8;  // of which something would be left
constexpr unsigned kMostBlocks = 8;
constexpr unsigned kMostOperations = 24;
constexpr int64_t kMostStreamOffset = int64_t{1} << 32;

// A loop whose iterations can be passed over.
struct EarlyExitLoop {
  llvm::Loop* loop = nullptr;
  // In the order of execution. Each is left for the next one, the last one for the header, or for what is after the loop.
  std::vector<BasicBlock*> blocks;
  // What the header's phis carry.
  llvm::MapVector<PHINode*, int64_t> steps;  // of those that count
  std::vector<PHINode*> values;              // what the iteration before has computed of what it loaded
  std::vector<PHINode*> pins;                // what only says that a load is needed (pin_loops.h)
  // What a load loads in the iteration of a lane, or in the one before that.
  struct Stream {
    LoadInst* load;
    bool before;
  };
  struct Exit {
    Value* value;
    bool where_it_holds = true;            // of a condition
    std::vector<llvm::Constant*> cases{};  // of a switch: the loop is left where the value is one of them
    std::vector<Stream> streams{};         // those which only it and what follows needs
  };
  std::vector<Exit> exits;          // by what was loaded
  const SCEV* backedges = nullptr;  // at most, by what is counted; null: no limit
};

class EarlyExitSearch {
 public:
  EarlyExitSearch(const IrModule& ir, llvm::Loop& loop, llvm::ScalarEvolution& evolution)
      : ir_(ir), loop_(loop), evolution_(evolution) {
    found_.loop = &loop;
  }

  // `least`: iterations, of a loop that is known to have few. `pinned`: its loads have users still that may go.
  std::optional<EarlyExitLoop> find(unsigned least, bool pinned = false) {
    const unsigned most = evolution_.getSmallConstantMaxTripCount(&loop_);
    if (most != 0 && most < least) return {};
    if (loop_.getNumBlocks() > kMostBlocks || !loop_.isLoopSimplifyForm() || !order_blocks()) return {};
    for (PHINode& phi : loop_.getHeader()->phis())
      if (!take(phi)) return {};
    for (BasicBlock* block : found_.blocks) {
      const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
      if (branch ? branch->isConditional() &&
                       !take_exit(branch->getCondition(), !loop_.contains(branch->getSuccessor(0)))
                 : !take_switch(llvm::cast<llvm::SwitchInst>(*block->getTerminator())))
        return {};
    }
    if (found_.exits.empty()) return {};
    llvm::SmallPtrSet<const LoadInst*, 8> loaded;
    for (const EarlyExitLoop::Exit& exit : found_.exits)
      for (const EarlyExitLoop::Stream& stream : exit.streams) loaded.insert(stream.load);
    EarlyExitLoop::Exit carried{nullptr};
    for (PHINode* phi : found_.values)
      if (!take_value(phi, /*before=*/false, carried)) return {};
    size_t loads = 0;
    for (BasicBlock* block : found_.blocks) {
      for (Instruction& instruction : *block) {
        if (llvm::isa<LoadInst>(instruction)) {
          ++loads;
        } else if (pinned && is_pin(instruction)) {
          continue;
        } else if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects() ||
                   (llvm::isa<PHINode>(instruction) && block != loop_.getHeader())) {
          return {};
        }
      }
    }
    // A load that no exit goes by would not be made in the iterations that are passed over, and so would not trap.
    if (loads != loaded.size()) return {};
    return std::move(found_);
  }

 private:
  bool order_blocks() {
    BasicBlock* at = loop_.getHeader();
    do {
      found_.blocks.push_back(at);
      BasicBlock* next = nullptr;
      if (!llvm::isa<llvm::BranchInst, llvm::SwitchInst>(at->getTerminator())) return false;
      for (BasicBlock* successor : llvm::successors(at)) {
        if (!loop_.contains(successor)) continue;
        if (next) return false;
        next = successor;
      }
      if (!next) return false;
      at = next;
    } while (at != loop_.getHeader() && found_.blocks.size() < loop_.getNumBlocks());
    return at == loop_.getHeader() && found_.blocks.size() == loop_.getNumBlocks();
  }

  bool take(PHINode& phi) {
    if (!phi.getType()->isIntegerTy()) return false;
    if (const std::optional<int64_t> step = induction_step(phi, loop_, evolution_)) {
      found_.steps.insert({&phi, *step});
    } else if (only_pins(phi)) {
      found_.pins.push_back(&phi);
    } else {
      found_.values.push_back(&phi);  // judged when all is known that is loaded
    }
    return true;
  }

  // A sum by `or` of which nothing is made but that it is needed.
  bool only_pins(PHINode& phi) {
    llvm::SmallPtrSet<const Value*, 8> seen;
    std::vector<Instruction*> worklist{&phi};
    bool pins = false;
    while (!worklist.empty()) {
      Instruction* const at = worklist.back();
      worklist.pop_back();
      if (!seen.insert(at).second) continue;
      if (is_pin(*at)) {
        pins = true;
        continue;
      }
      const bool passes_on = llvm::isa<PHINode>(at) ? at == &phi || !loop_.contains(at)
                             : loop_.contains(at)   ? at->getOpcode() == Instruction::Or
                                                    : llvm::isa<llvm::CastInst>(at);
      if (!passes_on) return false;
      for (llvm::User* user : at->users()) worklist.push_back(llvm::cast<Instruction>(user));
    }
    return pins;
  }

  // `condition`: of a branch that leaves the loop where it is `where_it_holds`. Any of several may be what it takes.
  bool take_exit(Value* condition, bool where_it_holds) {
    using namespace llvm::PatternMatch;
    Value* one = nullptr;
    Value* other = nullptr;
    const bool either = where_it_holds ? match(condition, m_LogicalOr(m_Value(one), m_Value(other)))
                                       : match(condition, m_LogicalAnd(m_Value(one), m_Value(other)));
    if (either) return take_exit(one, where_it_holds) && take_exit(other, where_it_holds);
    const SCEV* const count =
        evolution_.computeExitLimitFromCond(&loop_, condition, where_it_holds, /*ControlsOnlyExit=*/false)
            .ExactNotTaken;
    if (!llvm::isa<llvm::SCEVCouldNotCompute>(count)) {
      if (count->getType()->getIntegerBitWidth() > 64) return false;
      const SCEV* const wide = evolution_.getNoopOrZeroExtend(count, ir_.i64);
      found_.backedges = found_.backedges ? evolution_.getUMinExpr(found_.backedges, wide) : wide;
      return true;
    }
    EarlyExitLoop::Exit exit{condition, where_it_holds};
    if (!take_value(condition, /*before=*/false, exit)) return false;
    found_.exits.push_back(std::move(exit));
    return true;
  }

  // Blocks are in order, so one way of it stays in the loop.
  bool take_switch(llvm::SwitchInst& choice) {
    if (!loop_.contains(choice.getDefaultDest())) return false;
    EarlyExitLoop::Exit exit{choice.getCondition()};
    for (const auto& way : choice.cases()) exit.cases.push_back(way.getCaseValue());
    if (!take_value(exit.value, /*before=*/false, exit)) return false;
    found_.exits.push_back(std::move(exit));
    return true;
  }

  // Whether lanes can compute it. `before`: as it was in the iteration before theirs.
  bool take_value(Value* value, bool before, EarlyExitLoop::Exit& exit) {
    if (loop_.isLoopInvariant(value)) return value->getType()->isIntegerTy();
    auto* const instruction = llvm::cast<Instruction>(value);
    if (std::ranges::find(taken_, std::pair{instruction, before}) != taken_.end()) return true;
    if (!value->getType()->isIntegerTy() || taken_.size() == kMostOperations) return false;
    taken_.emplace_back(instruction, before);
    if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) {
      if (before || std::ranges::find(found_.values, phi) == found_.values.end()) return false;
      return take_value(phi->getIncomingValueForBlock(loop_.getLoopLatch()), /*before=*/true, exit);
    }
    if (auto* const load = llvm::dyn_cast<LoadInst>(instruction)) {
      if (!is_stream(*load)) return false;
      exit.streams.push_back({load, before});
      return true;
    }
    switch (instruction->getOpcode()) {
      case Instruction::ICmp:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr:
      case Instruction::Trunc:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Select:
        return std::ranges::all_of(instruction->operands(),
                                   [&](llvm::Use& operand) { return take_value(operand, before, exit); });
      case Instruction::Freeze:  // of a memory that threads share: what is loaded again may have changed
        return found_.values.empty() && take_value(instruction->getOperand(0), before, exit);
      default:
        return false;
    }
  }

  // One byte of memory after the other.
  bool is_stream(LoadInst& load) {
    if (!load.isSimple() || !load.getType()->isIntegerTy(8) || !ir_.is_among(load, IrModule::World::kMemory))
      return false;
    const std::optional<AffinePlace> place = affine_place(load.getPointerOperand(), loop_, evolution_);
    if (!place || place->step != 1 || !llvm::isa<llvm::SCEVUnknown>(place->base)) return false;
    // An index of 32 bits, and a constant: where one of the lanes wraps, a page begins (or all are outside of memory).
    return !place->start->getType()->isIntegerTy(32) ||
           (place->outer->isZero() && place->constant >= 0 && place->constant < kMostStreamOffset);
  }

  const IrModule& ir_;
  llvm::Loop& loop_;
  llvm::ScalarEvolution& evolution_;
  EarlyExitLoop found_;
  std::vector<std::pair<Instruction*, bool>> taken_;
};

// Makes the blocks that pass over iterations. Analyses know nothing of them.
class LookingAhead {
 public:
  // `backedges`: before the loop (i64), or null.
  LookingAhead(EarlyExitLoop& work, Value* backedges)
      : work_(work),
        backedges_(backedges),
        header_(work.loop->getHeader()),
        latch_(work.loop->getLoopLatch()),
        context_(header_->getContext()) {
    location_ = latch_->getTerminator()->getDebugLoc();
  }

  void make() {
    BasicBlock* const entry = new_block("ahead.entry");
    chunk_ = new_block("ahead");
    done_ = new_block("ahead.done");
    PHINode* const left = backedges_ ? add_counter(entry) : nullptr;
    llvm::IRBuilder<> b(entry);
    b.SetCurrentDebugLocation(location_);
    if (left)
      b.CreateCondBr(b.CreateICmpEQ(left, b.getInt64(0)), done_, chunk_);
    else
      b.CreateBr(chunk_);
    latch_->getTerminator()->replaceSuccessorWith(header_, entry);

    b.SetInsertPoint(chunk_);
    passed_ = b.CreatePHI(b.getInt64Ty(), 2, "passed");
    passed_->addIncoming(b.getInt64(0), entry);
    b.SetInsertPoint(done_);
    ahead_ = b.CreatePHI(b.getInt64Ty(), 4, "ahead");
    if (left) ahead_->addIncoming(b.getInt64(0), entry);

    look(left);
    connect(left);
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, header_->getParent(), header_->getNextNode());
  }

  // How often the backedge may be taken from the next iteration on.
  PHINode* add_counter(BasicBlock* entry) {
    llvm::IRBuilder<> b(&header_->front());
    b.SetCurrentDebugLocation(location_);
    left_ = b.CreatePHI(b.getInt64Ty(), 2, "left");
    left_->addIncoming(backedges_, work_.loop->getLoopPreheader());
    b.SetInsertPoint(entry);
    PHINode* const here = b.CreatePHI(b.getInt64Ty(), 1, "left.next");
    b.SetInsertPoint(latch_->getTerminator());
    b.SetCurrentDebugLocation(location_);
    here->addIncoming(b.CreateSub(left_, b.getInt64(1), "", true, true), latch_);
    return here;
  }

  // Lanes from the iteration on that is `passed_` behind the next one.
  void look(Value* left) {
    llvm::IRBuilder<> b(chunk_);
    b.SetCurrentDebugLocation(location_);
    Value* ends = nullptr;  // i1 a lane
    for (EarlyExitLoop::Exit& exit : work_.exits) {
      if (ends && !exit.streams.empty()) {
        BasicBlock* const more = new_block("ahead.more");
        Value* const here = b.CreateExtractElement(ends, b.getInt64(0));
        ahead_->addIncoming(passed_, b.GetInsertBlock());
        b.CreateCondBr(here, done_, more);
        b.SetInsertPoint(more);
      }
      load(b, exit.streams);
      Value* const value = in_lanes(b, exit.value, /*before=*/false);
      const auto add = [&](Value* at) { ends = ends ? b.CreateOr(ends, at) : at; };
      for (llvm::Constant* one : exit.cases) add(b.CreateICmpEQ(value, b.CreateVectorSplat(kLanes, one)));
      if (exit.cases.empty()) add(exit.where_it_holds ? value : b.CreateNot(value));
    }
    // Frozen: lanes that are read in vain, or while another thread writes them, have no value to rely on, but one.
    Value* const bits =
        b.CreateZExt(b.CreateFreeze(b.CreateBitCast(ends, b.getIntNTy(kLanes))), b.getInt32Ty());
    // On to the next lanes by their number, which is known before they are looked at: nothing waits for what was found.
    Value* go_on = b.CreateICmpEQ(bits, b.getInt32(0));
    Value* rest = nullptr;
    if (left) {
      rest = b.CreateSub(left, passed_, "rest", true, true);
      go_on = b.CreateAnd(go_on, b.CreateICmpUGT(rest, b.getInt64(kLanes)));
    }
    passed_->addIncoming(b.CreateAdd(passed_, b.getInt64(kLanes), "", true, true), b.GetInsertBlock());
    BasicBlock* const found = new_block("ahead.found");
    b.CreateCondBr(go_on, chunk_, found)
        ->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(context_, nullptr));
    b.SetInsertPoint(found);
    Value* by = b.CreateZExt(b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz,
                                                     b.CreateOr(bits, b.getInt32(1U << kLanes)), b.getTrue()),
                             b.getInt64Ty());
    if (left) by = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, by, rest);
    ahead_->addIncoming(b.CreateAdd(passed_, by, "", true, true), found);
    b.CreateBr(done_);
  }

  void load(llvm::IRBuilder<>& b, const std::vector<EarlyExitLoop::Stream>& streams) {
    std::vector<Value*> places;
    Value* leaves = nullptr;
    for (const auto& [load, before] : streams) {
      Value* const place = scalar(b, load->getPointerOperand(), iteration(b, passed_, before));
      places.push_back(place);
      Value* const in_page = b.CreateAnd(b.CreatePtrToInt(place, b.getInt64Ty()), b.getInt64(kPageBytes - 1));
      Value* const leaving = b.CreateICmpUGT(in_page, b.getInt64(kPageBytes - kLanes));
      leaves = leaves ? b.CreateOr(leaves, leaving) : leaving;
    }
    if (!leaves) return;
    BasicBlock* const inside = new_block("ahead.load");
    ahead_->addIncoming(passed_, b.GetInsertBlock());
    b.CreateCondBr(leaves, done_, inside, llvm::MDBuilder(context_).createBranchWeights(1, 200));
    b.SetInsertPoint(inside);
    for (size_t i = 0; i < streams.size(); ++i) {
      const auto& [load, before] = streams[i];
      LoadInst* const wide =
          b.CreateAlignedLoad(llvm::FixedVectorType::get(load->getType(), kLanes), places[i], llvm::Align(1));
      wide->copyMetadata(*load);
      wide->setMetadata(llvm::LLVMContext::MD_range, nullptr);
      wide->setDebugLoc(load->getDebugLoc());
      lanes_[{load, before}] = wide;
    }
  }

  // How far behind the next one an iteration is.
  Value* iteration(llvm::IRBuilder<>& b, Value* by, bool before) {
    if (!before) return by;
    Value*& known = before_[by];
    if (!known) known = b.CreateSub(by, b.getInt64(1));
    return known;
  }

  // What it is in the iteration that is `by` behind the next one.
  Value* scalar(llvm::IRBuilder<>& b, Value* value, Value* by) {
    if (work_.loop->isLoopInvariant(value)) return value;
    Value*& known = scalars_[{value, by}];
    if (known) return known;
    if (auto* const phi = llvm::dyn_cast<PHINode>(value)) return known = moved(b, *phi, by);
    Instruction* const copy = llvm::cast<Instruction>(value)->clone();
    copy->dropPoisonGeneratingFlags();
    for (llvm::Use& operand : copy->operands()) operand.set(scalar(b, operand, by));
    if (!llvm::isa<LoadInst>(copy)) copy->setDebugLoc(location_);
    b.Insert(copy);
    return scalars_[{value, by}] = copy;
  }
  // What a phi that counts would carry there.
  Value* moved(llvm::IRBuilder<>& b, PHINode& phi, Value* by) {
    Value* const next = phi.getIncomingValueForBlock(latch_);
    Value* const step = llvm::ConstantInt::getSigned(phi.getType(), work_.steps.lookup(&phi));
    return b.CreateAdd(next, b.CreateMul(b.CreateZExtOrTrunc(by, phi.getType()), step));
  }

  Value* in_lanes(llvm::IRBuilder<>& b, Value* value, bool before) {
    if (work_.loop->isLoopInvariant(value)) return b.CreateVectorSplat(kLanes, value);
    if (auto* const phi = llvm::dyn_cast<PHINode>(value))
      return in_lanes(b, phi->getIncomingValueForBlock(latch_), /*before=*/true);
    Value*& known = lanes_[{value, before}];
    if (known) return known;
    Instruction* const copy = llvm::cast<Instruction>(value)->clone();
    copy->dropPoisonGeneratingFlags();
    for (llvm::Use& operand : copy->operands()) operand.set(in_lanes(b, operand, before));
    copy->mutateType(llvm::FixedVectorType::get(value->getType(), kLanes));
    copy->setMetadata(llvm::LLVMContext::MD_prof, nullptr);
    copy->setDebugLoc(location_);
    b.Insert(copy);
    return lanes_[{value, before}] = copy;
  }

  void connect(Value* left) {
    llvm::IRBuilder<> b(done_);
    b.SetCurrentDebugLocation(location_);
    std::vector<std::pair<PHINode*, Value*>> into;
    for (const auto& [phi, step] : work_.steps) into.emplace_back(phi, moved(b, *phi, ahead_));
    for (PHINode* phi : work_.values)
      into.emplace_back(
          phi, scalar(b, phi->getIncomingValueForBlock(latch_), iteration(b, ahead_, /*before=*/true)));
    for (PHINode* phi : work_.pins) into.emplace_back(phi, phi->getIncomingValueForBlock(latch_));
    for (const auto& [phi, value] : into) {
      phi->removeIncomingValue(latch_);
      phi->addIncoming(value, done_);
    }
    if (left) left_->addIncoming(b.CreateSub(left, ahead_, "", true, true), done_);
    llvm::BranchInst* const back = b.CreateBr(header_);
    Instruction* const old = latch_->getTerminator();
    back->setMetadata(llvm::LLVMContext::MD_loop, old->getMetadata(llvm::LLVMContext::MD_loop));
    old->setMetadata(llvm::LLVMContext::MD_loop, nullptr);
  }

  EarlyExitLoop& work_;
  Value* backedges_;
  BasicBlock* header_;
  BasicBlock* latch_;
  llvm::LLVMContext& context_;
  llvm::DebugLoc location_;
  BasicBlock* chunk_ = nullptr;
  BasicBlock* done_ = nullptr;
  PHINode* left_ = nullptr;
  PHINode* passed_ = nullptr;  // iterations that are passed over, at the beginning of a chunk
  PHINode* ahead_ = nullptr;   // the same, in the end
  std::map<Value*, Value*> before_;
  std::map<std::pair<Value*, Value*>, Value*> scalars_;  // by value and iteration
  std::map<std::pair<Value*, bool>, Value*> lanes_;      // by value, and whether of the iteration before
};

}  // namespace

llvm::PreservedAnalyses KeepEarlyExitsPass::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                                llvm::LoopStandardAnalysisResults& known,
                                                llvm::LPMUpdater& /*updater*/) {
  if (loop.isInnermost() && known.SE.getSmallConstantMaxTripCount(&loop) != 0 &&
      EarlyExitSearch(ir, loop, known.SE).find(kLeastIterations, /*pinned=*/true))
    llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.disable", 1);
  return llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses EarlyExitPass::run(llvm::Function& function,
                                           llvm::FunctionAnalysisManager& analyses) {
  if (function.isDeclaration()) return llvm::PreservedAnalyses::all();
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  llvm::SCEVExpander expander(evolution, function.getParent()->getDataLayout(), "early");
  bool changed = false;
  std::vector<std::pair<EarlyExitLoop, Value*>> work;
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || !EarlyExitSearch(ir, *loop, evolution).find(kLeastIterations) ||
        !llvm::canPeel(loop))
      continue;
    llvm::ValueToValueMapTy copies;
    changed |= llvm::peelLoop(loop, kIterationsBefore, &loops, &evolution, dominators, &assumptions,
                              /*PreserveLCSSA=*/true, copies);
    changed |= llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr,
                                  /*PreserveLCSSA=*/true);
    std::optional<EarlyExitLoop> found =
        EarlyExitSearch(ir, *loop, evolution).find(kLeastIterations - kIterationsBefore);
    if (!found) continue;
    Value* backedges = nullptr;
    if (found->backedges) {
      Instruction* const before = loop->getLoopPreheader()->getTerminator();
      if (!expander.isSafeToExpandAt(found->backedges, before) ||
          expander.isHighCostExpansion(found->backedges, loop, llvm::SCEVCheapExpansionBudget, &target,
                                       before))
        continue;
      backedges = expander.expandCodeFor(found->backedges, ir.i64, before);
    }
    work.emplace_back(std::move(*found), backedges);
  }
  // Blocks that analyses know nothing of are made when all is known.
  for (auto& [found, backedges] : work) LookingAhead(found, backedges).make();
  return changed || !work.empty() ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace hindsight::jit::optimizing
