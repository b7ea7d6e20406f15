#include "jit/optimizing/widen_pass.h"

#include <llvm/Analysis/IVDescriptors.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include "jit/optimizing/affine_access.h"
#include "jit/optimizing/reroll.h"
#include "jit/optimizing/strips.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// A loop of fewer iterations is over before vectors pay for their checks.
constexpr uint64_t kLeastIterations = 16;
constexpr uint64_t kMostBackedges = uint64_t{1} << 31;
constexpr size_t kMostInstructions = 400;
// Comparing two groups costs about six instructions whenever the loop is entered.
constexpr size_t kMostComparisons = 24;

bool is_marked(const llvm::Loop& loop, llvm::StringRef name) {
  return llvm::findOptionMDForLoop(&loop, name) != nullptr;
}

// What the header's phis carry, and all else, can be in vectors.
bool could_be_vectors(llvm::Loop& loop, llvm::ScalarEvolution& evolution, llvm::DominatorTree& dominators) {
  BasicBlock& block = *loop.getHeader();
  bool worth_it = false;
  for (PHINode& phi : block.phis()) {
    if (induction_step(phi, loop, evolution)) continue;
    llvm::RecurrenceDescriptor reduction;
    if (llvm::RecurrenceDescriptor::isReductionPHI(&phi, &loop, reduction, nullptr, nullptr, &dominators,
                                                   &evolution)) {
      if (reduction.getExactFPMathInst() != nullptr) return false;
      worth_it = true;
    } else if (!llvm::RecurrenceDescriptor::isFixedOrderRecurrence(&phi, &loop, &dominators)) {
      return false;
    }
  }
  for (Instruction& instruction : block) {
    if (instruction.getType()->isVectorTy() || instruction.getType()->isPointerTy()) {
      if (!llvm::isa<llvm::GetElementPtrInst>(instruction)) return false;
    }
    if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
      const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call);
      if (!intrinsic || !llvm::isTriviallyVectorizable(intrinsic->getIntrinsicID())) return false;
    }
    worth_it |= llvm::isa<llvm::StoreInst>(instruction);
  }
  return worth_it;
}

// One loop to be copied: what was found out about it, and what has been computed before it.
struct Work {
  BasicBlock* before = nullptr;
  BasicBlock* block = nullptr;
  BasicBlock* after = nullptr;
  AffineAccesses accesses;
  Rerolling rerolling;
  std::vector<Value*> starts;  // by group: the leader's address in the first iteration
  std::vector<int64_t> induction_steps;
  std::vector<PHINode*> inductions;
  Value* backedges = nullptr;  // i64
  Value* guard = nullptr;      // i1
  bool apart = false;          // the guard includes that no group that is stored to overlaps another
  llvm::DebugLoc location;
  llvm::MDNode* identity = nullptr;
};

// Emits what must be known before the loop into its preheader. The function's blocks stay as they are.
class Preparation {
 public:
  Preparation(Work& work, llvm::ScalarEvolution& evolution)
      : work_(work),
        evolution_(evolution),
        place_(work.before->getTerminator()),
        expander_(evolution, place_->getModule()->getDataLayout(), "wide"),
        b_(place_) {
    b_.SetCurrentDebugLocation(work.location);
  }

  bool emit() {
    for (const AccessGroup& group : work_.accesses.groups)
      for (const llvm::SCEV* part : {group.base, group.outer, group.start})
        if (!expander_.isSafeToExpandAt(part, place_)) return false;
    const unsigned copies = work_.rerolling.copies;
    // count >= least and count < most, in one comparison.
    const uint64_t least = kLeastIterations / copies - (kLeastIterations / copies == 0 ? 0 : 1);
    work_.guard = b_.CreateICmpULT(b_.CreateSub(work_.backedges, b_.getInt64(least)),
                                   b_.getInt64(kMostBackedges - least));
    for (const AccessGroup& group : work_.accesses.groups) emit_start(group);
    const std::vector<std::pair<size_t, size_t>> pairs = pairs_to_compare();
    work_.apart = pairs.size() <= kMostComparisons;
    for (const auto& [one, other] : work_.apart ? pairs : work_.rerolling.apart) emit_apart(one, other);
    return true;
  }

 private:
  void require(Value* condition) { work_.guard = b_.CreateAnd(work_.guard, condition); }
  Value* expand(const llvm::SCEV* expression) {
    return expander_.expandCodeFor(expression, expression->getType(), place_);
  }

  void emit_start(const AccessGroup& group) {
    Value* start = expand(group.start);
    if (group.may_wrap()) {
      start = b_.CreateZExt(start, b_.getInt64Ty());
      // Below 2^32 + 2^20 + 2^16 * 2^31: signed comparisons of 64 bits are right where the count is in range.
      Value* const way = b_.CreateMul(work_.backedges, b_.getInt64(static_cast<uint64_t>(group.step)));
      Value* const last = b_.CreateAdd(start, way);
      Value* const highest = b_.CreateAdd(group.step >= 0 ? last : start, b_.getInt64(group.span));
      require(b_.CreateICmpSLT(highest, b_.getInt64(int64_t{1} << 32)));
      if (group.step < 0) require(b_.CreateICmpSGE(last, b_.getInt64(0)));
    }
    Value* const index = b_.CreateAdd(start, expand(group.outer));
    work_.starts.push_back(b_.CreateGEP(b_.getInt8Ty(), expand(group.base), index));
  }

  // Where they are compared here, LLVM need not: it would compare every two addresses, and refuse where more
  // than one of a group are loaded.
  std::vector<std::pair<size_t, size_t>> pairs_to_compare() const {
    std::vector<bool> stored(work_.accesses.groups.size());
    for (const AffineAccess& access : work_.accesses.all)
      if (access.is_store) stored[access.group] = true;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t one = 0; one < stored.size(); ++one)
      for (size_t other = one + 1; other < stored.size(); ++other)
        if (stored[one] || stored[other]) pairs.emplace_back(one, other);
    return pairs;
  }

  // [lowest, end) of all that a group's members touch.
  std::pair<Value*, Value*> extent(size_t index) {
    const AccessGroup& group = work_.accesses.groups[index];
    Value* const start = b_.CreatePtrToInt(work_.starts[index], b_.getInt64Ty());
    Value* const last =
        b_.CreateAdd(start, b_.CreateMul(work_.backedges, b_.getInt64(static_cast<uint64_t>(group.step))));
    return {b_.CreateAdd(group.step >= 0 ? start : last, b_.getInt64(static_cast<uint64_t>(group.low))),
            b_.CreateAdd(group.step >= 0 ? last : start, b_.getInt64(static_cast<uint64_t>(group.high)))};
  }
  void emit_apart(size_t one, size_t other) {
    const auto [low, end] = extent(one);
    const auto [other_low, other_end] = extent(other);
    require(b_.CreateOr(b_.CreateICmpULE(end, other_low), b_.CreateICmpULE(other_end, low)));
  }

  Work& work_;
  llvm::ScalarEvolution& evolution_;
  Instruction* const place_;
  llvm::SCEVExpander expander_;
  llvm::IRBuilder<> b_;
};

std::optional<Work> prepare(llvm::Loop& loop, llvm::DominatorTree& dominators,
                            llvm::ScalarEvolution& evolution) {
  if (loop.getNumBlocks() != 1 || !loop.isLoopSimplifyForm() || !loop.isLCSSAForm(dominators)) return {};
  BasicBlock* const block = loop.getHeader();
  if (block->size() > kMostInstructions || !loop.getUniqueExitBlock()) return {};
  if (is_marked(loop, "llvm.loop.vectorize.enable") || is_marked(loop, "llvm.loop.isvectorized")) return {};
  const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
  if (!branch || !branch->isConditional()) return {};
  if (!could_be_vectors(loop, evolution, dominators)) return {};
  std::optional<AffineAccesses> accesses = find_affine_accesses(loop, evolution);
  if (!accesses || accesses->all.empty()) return {};
  Work work;
  work.before = loop.getLoopPreheader();
  work.block = block;
  work.after = loop.getUniqueExitBlock();
  work.accesses = std::move(*accesses);
  work.location = branch->getDebugLoc();
  work.identity = loop.getLoopID();
  work.rerolling = find_copies(loop, work.accesses, evolution);
  const Backedges backedges = emit_backedges(loop, dominators, evolution, work.location);
  if (!backedges.count) return {};
  bool may_wrap = false;
  for (const AccessGroup& group : work.accesses.groups) may_wrap |= group.may_wrap();
  if (!may_wrap && backedges.known_to_llvm && work.rerolling.copies == 1) return {};
  work.backedges = backedges.count;
  for (PHINode& phi : block->phis()) {
    if (const std::optional<int64_t> step = induction_step(phi, loop, evolution)) {
      work.inductions.push_back(&phi);
      work.induction_steps.push_back(*step);
    }
  }
  if (!Preparation(work, evolution).emit()) return {};
  return work;
}

// Makes the copy. Analyses know nothing of it.
class Widening {
 public:
  explicit Widening(Work& work)
      : work_(work), context_(work.block->getContext()), function_(*work.block->getParent()) {}

  void make() {
    clone();
    rewrite_addresses();
    reroll();
    count();
    connect();
    mark();
    remove_dead();
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, &function_, work_.block);
  }
  template <typename T>
  T* copy_of(T* value) {
    const auto found = map_.find(value);
    return found == map_.end() ? value : llvm::cast<T>(static_cast<Value*>(found->second));
  }

  void clone() {
    entry_ = new_block("wide.entry");
    wide_ = llvm::CloneBasicBlock(work_.block, map_, ".wide", &function_);
    map_[work_.block] = wide_;
    map_[work_.before] = entry_;
    llvm::remapInstructionsInBlocks({wide_}, map_);
    llvm::IRBuilder<> b(entry_);
    b.SetCurrentDebugLocation(work_.location);
    backedges_ = work_.backedges;
    // One less than the number of the copy's iterations.
    last_ = work_.rerolling.copies == 1
                ? backedges_
                : b.CreateAdd(b.CreateMul(backedges_, b.getInt64(work_.rerolling.copies), "", true, true),
                              b.getInt64(work_.rerolling.copies - 1), "", true, true);
    total_ = b.CreateAdd(last_, b.getInt64(1), "iterations", true, true);
    b.CreateBr(wide_);
    counter_ = PHINode::Create(b.getInt64Ty(), 2, "counter", wide_->begin());
  }

  // Equal addresses are one value: LLVM's checks compare values.
  void rewrite_addresses() {
    llvm::IRBuilder<> b(&*wide_->getFirstInsertionPt());
    b.SetCurrentDebugLocation(work_.location);
    std::map<std::pair<size_t, int64_t>, Value*> places;
    for (const AffineAccess& access : work_.accesses.all) {
      auto* const instruction = copy_of(access.instruction);
      Value*& place = places[{access.group, access.offset}];
      if (!place) place = address(b, access, places);
      instruction->setOperand(access.is_store ? 1 : 0, place);
    }
    if (work_.apart && work_.accesses.groups.size() > 1) separate_groups();
  }
  Value* address(llvm::IRBuilder<>& b, const AffineAccess& access,
                 std::map<std::pair<size_t, int64_t>, Value*>& places) {
    if (access.offset != 0) {
      Value*& leader = places[{access.group, 0}];
      if (!leader) leader = address(b, {.group = access.group}, places);
      return b.CreateInBoundsGEP(b.getInt8Ty(), leader, b.getInt64(static_cast<uint64_t>(access.offset)));
    }
    const int64_t step =
        work_.accesses.groups[access.group].step / static_cast<int64_t>(work_.rerolling.copies);
    return b.CreateInBoundsGEP(
        b.getInt8Ty(), work_.starts[access.group],
        b.CreateMul(counter_, b.getInt64(static_cast<uint64_t>(step)), "", false, true));
  }
  void separate_groups() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* const domain = metadata.createAnonymousAliasScopeDomain("loop");
    std::vector<llvm::Metadata*> scopes;
    for (size_t i = 0; i < work_.accesses.groups.size(); ++i)
      scopes.push_back(metadata.createAnonymousAliasScope(domain, "group"));
    for (const AffineAccess& access : work_.accesses.all) {
      std::vector<llvm::Metadata*> others = scopes;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(access.group));
      auto* const instruction = copy_of(access.instruction);
      add(*instruction, llvm::LLVMContext::MD_alias_scope,
          llvm::MDNode::get(context_, {scopes[access.group]}));
      add(*instruction, llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
    }
  }
  static void add(Instruction& instruction, unsigned kind, llvm::MDNode* more) {
    instruction.setMetadata(kind, llvm::MDNode::concatenate(instruction.getMetadata(kind), more));
  }

  void reroll() {
    const auto copies = static_cast<int64_t>(work_.rerolling.copies);
    if (copies == 1) return;
    // Flags were true of every copies-th value.
    for (Instruction& instruction : *wide_) {
      if (!llvm::isa<llvm::GetElementPtrInst>(instruction) && !llvm::isa<PHINode>(instruction))
        instruction.dropPoisonGeneratingAnnotations();
    }
    for (Instruction* store : work_.rerolling.stores) copy_of(store)->eraseFromParent();
    llvm::IRBuilder<> b(wide_->getTerminator());
    for (const Rerolling::Carried& carried : work_.rerolling.carried) {
      auto* const phi = copy_of(carried.phi);
      Value* value = carried.leaves.empty() ? copy_of(carried.value) : phi;
      for (Value* leaf : carried.leaves)
        value =
            b.CreateBinOp(llvm::cast<llvm::BinaryOperator>(carried.last)->getOpcode(), value, copy_of(leaf));
      phi->setIncomingValueForBlock(wide_, value);
      leaving_[carried.last] = value;
    }
    for (size_t i = 0; i < work_.inductions.size(); ++i) {
      PHINode* const original = work_.inductions[i];
      if (work_.induction_steps[i] % copies != 0) continue;  // nothing uses it but what is replaced
      auto* const phi = copy_of(original);
      Value* const next = b.CreateAdd(
          phi, llvm::ConstantInt::get(phi->getType(),
                                      static_cast<uint64_t>(work_.induction_steps[i] / copies), true));
      phi->setIncomingValueForBlock(wide_, next);
      leaving_[original->getIncomingValueForBlock(work_.block)] = next;
    }
  }

  void count() {
    auto* const branch = llvm::cast<llvm::BranchInst>(wide_->getTerminator());
    llvm::IRBuilder<> b(branch);
    Value* const next = b.CreateAdd(counter_, b.getInt64(1), "", true, true);
    counter_->addIncoming(b.getInt64(0), entry_);
    counter_->addIncoming(next, wide_);
    leave_ = new_block("wide.exit");
    branch->setCondition(b.CreateICmpEQ(next, total_));
    branch->setSuccessor(0, leave_);
    branch->setSuccessor(1, wide_);
    branch->setMetadata(llvm::LLVMContext::MD_prof, nullptr);
  }

  // Both loops get entries and exits of their own.
  void connect() {
    BasicBlock* const narrow_entry = new_block("narrow.entry");
    BasicBlock* const narrow_exit = new_block("narrow.exit");
    for (auto& [block, to] :
         {std::pair{narrow_entry, work_.block}, {narrow_exit, work_.after}, {leave_, work_.after}})
      llvm::BranchInst::Create(to, block)->setDebugLoc(work_.location);
    work_.block->replacePhiUsesWith(work_.before, narrow_entry);
    work_.block->getTerminator()->replaceSuccessorWith(work_.after, narrow_exit);
    for (PHINode& phi : work_.after->phis()) {
      Value* const value = phi.getIncomingValueForBlock(work_.block);
      const auto left = leaving_.find(value);
      Value* const wide = left != leaving_.end() ? left->second : copy_of(value);
      phi.removeIncomingValue(work_.block, /*DeletePHIIfEmpty=*/false);
      phi.addIncoming(closed(value, work_.block, narrow_exit), narrow_exit);
      phi.addIncoming(closed(wide, wide_, leave_), leave_);
    }
    Instruction* const old = work_.before->getTerminator();
    llvm::BranchInst::Create(entry_, narrow_entry, work_.guard, old)->setDebugLoc(work_.location);
    old->eraseFromParent();
  }
  // LCSSA.
  Value* closed(Value* value, BasicBlock* loop, BasicBlock* exit) {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || instruction->getParent() != loop) return value;
    PHINode* const phi = PHINode::Create(value->getType(), 1, "", exit->begin());
    phi->addIncoming(value, loop);
    return phi;
  }

  llvm::MDNode* identity(llvm::ArrayRef<llvm::Metadata*> more) {
    llvm::SmallVector<llvm::Metadata*, 8> operands{nullptr};
    if (work_.identity)
      for (unsigned i = 1; i < work_.identity->getNumOperands(); ++i)
        operands.push_back(work_.identity->getOperand(i).get());
    operands.append(more.begin(), more.end());
    llvm::MDNode* const made = llvm::MDNode::getDistinct(context_, operands);
    made->replaceOperandWith(0, made);
    return made;
  }
  void mark() {
    llvm::Metadata* const as_it_is[] = {
        llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.vectorize.enable"),
                                     llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(context_))}),
        llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.runtime.disable")})};
    work_.block->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, identity(as_it_is));
    wide_->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, identity({}));
  }

  // What only the old addresses, the old count and the copies but the first used; also round phis.
  void remove_dead() {
    for (bool more = true; more;) {
      more = false;
      for (Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(*wide_)))
        if (llvm::isInstructionTriviallyDead(&instruction)) {
          instruction.eraseFromParent();
          more = true;
        }
      for (PHINode& phi : llvm::make_early_inc_range(wide_->phis()))
        more |= llvm::RecursivelyDeleteDeadPHINode(&phi);
    }
  }

  Work& work_;
  llvm::LLVMContext& context_;
  llvm::Function& function_;
  llvm::ValueToValueMapTy map_;
  BasicBlock* entry_ = nullptr;
  BasicBlock* wide_ = nullptr;
  BasicBlock* leave_ = nullptr;
  PHINode* counter_ = nullptr;
  Value* backedges_ = nullptr;
  Value* last_ = nullptr;
  Value* total_ = nullptr;
  std::map<Value*, Value*> leaving_;  // value of the loop, used behind it -> what it is in the copy
};

}  // namespace

llvm::PreservedAnalyses WidenPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  if (function.isDeclaration()) return llvm::PreservedAnalyses::all();
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  std::vector<Work> work;
  for (llvm::Loop* loop : loops.getLoopsInPreorder())
    if (loop->isInnermost())
      if (std::optional<Work> found = prepare(*loop, dominators, evolution))
        work.push_back(std::move(*found));
  // Blocks change only when all is known.
  for (Work& of_loop : work) Widening(of_loop).make();
  return work.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace hindsight::jit::optimizing
