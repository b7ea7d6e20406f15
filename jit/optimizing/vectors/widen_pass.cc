#include "jit/optimizing/vectors/widen_pass.h"

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
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <map>

#include "jit/optimizing/vectors/guarded_loop.h"
#include "jit/optimizing/vectors/memory_reach.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// A loop of fewer iterations is over before vectors pay for their checks.
constexpr uint64_t kLeastIterationsToWiden = 16;

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
    for (const Value* operand : instruction.operands())
      if (operand->getType()->isVectorTy()) return false;
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

std::optional<GuardedLoop> prepare(const IrModule& ir, llvm::Loop& loop, llvm::DominatorTree& dominators,
                                   llvm::ScalarEvolution& evolution) {
  if (loop.getNumBlocks() != 1 || !could_be_vectors(loop, evolution, dominators)) return {};
  std::optional<GuardedLoop> found = find_guarded_loop(loop, dominators, evolution);
  if (!found) return {};
  if (!found->may_wrap() && found->backedges_known_to_llvm && found->rerolling.copies == 1) return {};
  // One copy for several makes each iteration's accesses in an order of its own; the vectorizer sees to the rest (order_keeper.h).
  const bool reorders = found->rerolling.copies != 1;
  if (!emit_guard(ir, *found, evolution, kLeastIterationsToWiden, reorders)) return {};
  return found;
}

// Makes the copy. Analyses know nothing of it.
class Widening {
 public:
  explicit Widening(GuardedLoop& work)
      : work_(work), context_(work.block->getContext()), function_(*work.block->getParent()) {}

  void make() {
    clone();
    rewrite_addresses();
    reroll();
    count();
    connect();
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
    total_ = b.CreateMul(b.CreateAdd(work_.backedges, b.getInt64(1), "", true, true),
                         b.getInt64(work_.rerolling.copies), "iterations", true, true);
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
    for (size_t i = 0; i < work_.rerolling.advancing.size(); ++i) advance(i);
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
    for (const auto& [original, step] : work_.inductions) {
      if (step % copies != 0) continue;  // nothing uses it but what is replaced
      auto* const phi = copy_of(original);
      Value* const next = b.CreateAdd(
          phi, llvm::ConstantInt::get(phi->getType(), static_cast<uint64_t>(step / copies), true));
      phi->setIncomingValueForBlock(wide_, next);
      leaving_[original->getIncomingValueForBlock(work_.block)] = next;
    }
  }

  // Every value between two that there were is right only if it is computed from start and step.
  void advance(size_t index) {
    const Rerolling::Advancing& advancing = work_.rerolling.advancing[index];
    Instruction* const old = copy_of(advancing.value);
    PHINode* const phi = PHINode::Create(old->getType(), 2, "advancing", wide_->begin());
    llvm::IRBuilder<> b(wide_->getTerminator());
    b.SetCurrentDebugLocation(work_.location);
    phi->addIncoming(work_.advancing_starts[index], entry_);
    phi->addIncoming(
        b.CreateAdd(phi, llvm::ConstantInt::get(phi->getType(), static_cast<uint64_t>(advancing.step), true)),
        wide_);
    old->replaceAllUsesWith(phi);
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
      phi.addIncoming(closed_value(value, work_.block, narrow_exit), narrow_exit);
      phi.addIncoming(closed_value(wide, wide_, leave_), leave_);
    }
    branch_on_guard(work_, entry_, narrow_entry);
    llvm::SmallVector<llvm::Metadata*, 1> known;
    if (work_.inside) known.push_back(inside_memory(context_));
    wide_->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop,
                                        loop_identity(context_, work_.identity, known));
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

  GuardedLoop& work_;
  llvm::LLVMContext& context_;
  llvm::Function& function_;
  llvm::ValueToValueMapTy map_;
  BasicBlock* entry_ = nullptr;
  BasicBlock* wide_ = nullptr;
  BasicBlock* leave_ = nullptr;
  PHINode* counter_ = nullptr;
  Value* total_ = nullptr;            // iterations of the copy
  std::map<Value*, Value*> leaving_;  // value of the loop, used after it -> what it is in the copy
};

}  // namespace

llvm::PreservedAnalyses WidenPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  if (function.isDeclaration()) return llvm::PreservedAnalyses::all();
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  std::vector<GuardedLoop> work;
  for (llvm::Loop* loop : latest_first(loops)) {
    std::optional<GuardedLoop> found = prepare(ir, *loop, dominators, evolution);
    if (!found) continue;
    found->remember_shape();
    work.push_back(std::move(*found));
  }
  // Blocks change only when all is known.
  for (GuardedLoop& of_loop : work)
    if (of_loop.has_kept_its_shape()) Widening(of_loop).make();
  return work.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace hindsight::jit::optimizing
