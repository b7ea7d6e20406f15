#include "jit/optimizing/vectors/order_keeper.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>

#include "jit/optimizing/ir/ir_unit.h"
#include "jit/optimizing/ir/loop_values.h"
#include "jit/optimizing/vectors/memory_reach.h"
#include "jit/optimizing/vectors/wall.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;

// Its iterations stay in their order.
void keep_scalar(llvm::Loop& loop) {
  llvm::addStringMetadataToLoop(&loop, "llvm.loop.vectorize.enable", 0);
}

}  // namespace

OrderKeeper::OrderKeeper(IrModule& ir, llvm::FunctionAnalysisManager& functions)
    : ir_(ir), functions_(functions) {}

void OrderKeeper::listen(llvm::PassInstrumentationCallbacks& callbacks) {
  if (ir_.request.options.bounds == BoundsChecks::kExplicit) return;
  callbacks.registerBeforeNonSkippedPassCallback(
      [this](llvm::StringRef pass, llvm::Any unit) { before(pass, unit); });
  callbacks.registerAfterPassCallback(
      [this](llvm::StringRef pass, const llvm::Any&, const llvm::PreservedAnalyses&) { after(pass); });
  callbacks.registerAfterPassInvalidatedCallback(
      [this](llvm::StringRef pass, const llvm::PreservedAnalyses&) { after(pass); });
}

// What LLVM's callbacks hand out is constant, and its pass managers' all the same.
void OrderKeeper::before(llvm::StringRef pass, const llvm::Any& unit) {
  if (const auto* const* const loop = llvm::any_cast<const llvm::Loop*>(&unit)) {
    auto& own = const_cast<llvm::Loop&>(**loop);
    if (pass == "LICMPass") keep_in_loop(own);
    if (pass == "SimpleLoopUnswitchPass") keep_whole(own);
    return;
  }
  const llvm::Function* const function = function_of(unit);
  if (function == nullptr) return;
  auto& own = const_cast<llvm::Function&>(*function);
  if (pass == "JumpThreadingPass") keep_in_blocks(own);
  if (pass == "LoopVectorizePass") ask_reaches(own);
}

void OrderKeeper::after(llvm::StringRef pass) {
  if (pass == "LICMPass" || pass == "JumpThreadingPass") {
    // Those that the pass has copied, too.
    for (llvm::User* user : llvm::make_early_inc_range(wall_of(ir_.context)->users()))
      llvm::cast<Instruction>(user)->eraseFromParent();
  }
  if (pass == "LoopVectorizePass") guard_vectors();
}

bool OrderKeeper::stores(const Instruction& instruction) const {
  return instruction.mayWriteToMemory() && !llvm::isa<llvm::AssumeInst>(instruction) &&
         !ir_.is_among(instruction, IrModule::World::kCells);
}

// Up to the size that a memory begins with none does.
bool OrderKeeper::may_trap(const LoadInst& load) const {
  if (ir_.is_among(load, IrModule::World::kCells) || ir_.is_among(load, IrModule::World::kRuntime))
    return false;
  if (is_inside_memory(load)) return false;
  const llvm::DataLayout& layout = ir_.module.getDataLayout();
  llvm::APInt end(64, 0);
  const llvm::Value* const base =
      load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout, end, /*AllowNonInbounds=*/true);
  end += layout.getTypeStoreSize(load.getType()).getFixedValue();
  return !ir_.is_always_there(base, end, load.getFunction()->getArg(0));
}

// A condition that an iteration computes by loads, perhaps after a store, is not computed before the loop.
void OrderKeeper::keep_whole(llvm::Loop& loop) {
  const bool stores_in_it = llvm::any_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::any_of(*block, [&](const Instruction& instruction) { return stores(instruction); });
  });
  if (stores_in_it) llvm::addStringMetadataToLoop(&loop, "llvm.loop.unswitch.partial.disable");
}

// Puts a wall before each load of an unchanging place that an iteration may come to after a store. Its address may still be computed in
// the loop. It does so where none of the loop's stores would keep the load in the loop anyway.
void OrderKeeper::keep_in_loop(llvm::Loop& loop) {
  std::vector<LoadInst*> loads;
  std::vector<Instruction*> stores;
  for (BasicBlock* block : loop.blocks()) {
    for (Instruction& instruction : *block) {
      if (this->stores(instruction)) stores.push_back(&instruction);
      auto* const load = llvm::dyn_cast<LoadInst>(&instruction);
      if (load != nullptr && may_trap(*load) && !varies_in(loop, *load->getPointerOperand()))
        loads.push_back(load);
    }
  }
  if (loads.empty() || stores.empty()) return;
  llvm::Function& function = *loop.getHeader()->getParent();
  const auto& dominators = functions_.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& aliases = functions_.getResult<llvm::AAManager>(function);
  for (LoadInst* load : loads) {
    const bool first =
        llvm::all_of(stores, [&](const Instruction* store) { return dominators.dominates(load, store); });
    if (first) continue;
    const llvm::MemoryLocation place = llvm::MemoryLocation::get(load);
    const bool stays = llvm::any_of(
        stores, [&](const Instruction* store) { return isModSet(aliases.getModRefInfo(store, place)); });
    if (!stays) add_wall(*load);
  }
}

// Puts a wall before each load that follows a store of its own block, of a place that was known before the block.
void OrderKeeper::keep_in_blocks(llvm::Function& function) {
  for (BasicBlock& block : function) {
    if (!block.hasNPredecessorsOrMore(2)) continue;
    bool stored = false;
    for (Instruction& instruction : llvm::make_early_inc_range(block)) {
      stored |= stores(instruction);
      const auto* const load = llvm::dyn_cast<LoadInst>(&instruction);
      if (!stored || load == nullptr || !may_trap(*load)) continue;
      const auto* const pointer = llvm::dyn_cast<Instruction>(load->getPointerOperand());
      if (pointer != nullptr && pointer->getParent() == &block && !llvm::isa<llvm::PHINode>(pointer))
        continue;
      add_wall(instruction);
      break;  // whatever follows it is past the wall, too
    }
  }
}

void OrderKeeper::ask_reaches(llvm::Function& function) {
  entered_.clear();
  scalar_blocks_.clear();
  for (const BasicBlock& block : function) scalar_blocks_.insert(&block);
  const auto& loops = functions_.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = functions_.getResult<llvm::ScalarEvolutionAnalysis>(function);
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || is_inside_memory(*loop)) continue;
    // What is left open LLVM would give the form that it needs.
    if (!loop->isLoopSimplifyForm()) {
      keep_scalar(*loop);
      continue;
    }
    const MemoryReach reach = find_memory_reach(ir_, *loop, evolution);
    if (reach.kind == MemoryReach::Kind::kUnknown) keep_scalar(*loop);
    if (reach.kind == MemoryReach::Kind::kKnown) entered_.push_back({loop->getLoopPreheader(), reach.inside});
  }
}

// Loads and stores of the blocks that the vectorizer made, from there on.
static void mark_vectors(BasicBlock& begin, const llvm::SmallPtrSetImpl<const BasicBlock*>& scalar) {
  llvm::SmallPtrSet<const BasicBlock*, 16> seen;
  std::vector<BasicBlock*> worklist{&begin};
  while (!worklist.empty()) {
    BasicBlock* const block = worklist.back();
    worklist.pop_back();
    if (scalar.contains(block) || !seen.insert(block).second) continue;
    for (Instruction& instruction : *block)
      if (llvm::isa<LoadInst, llvm::StoreInst>(instruction)) mark_inside_memory(instruction);
    worklist.insert(worklist.end(), llvm::succ_begin(block), llvm::succ_end(block));
  }
}

// The vectorizer ends what was the loop's preheader with a branch to the scalar loop, for too few iterations, or to its vectors. On the way
// to these the reach is looked at. So a loop of few iterations, which is what most calls of a memcpy have, does not pay for it.
void OrderKeeper::guard_vectors() {
  for (const Entered& entered : entered_) {
    BasicBlock& before = *entered.before;
    auto* const branch = llvm::cast<llvm::BranchInst>(before.getTerminator());
    llvm::Value* const inside = entered.inside;
    if (!branch->isConditional()) {
      if (inside != nullptr) llvm::RecursivelyDeleteTriviallyDeadInstructions(inside);
      continue;
    }
    BasicBlock* const scalar = branch->getSuccessor(0);
    BasicBlock* const vectors = branch->getSuccessor(1);
    llvm::Function& function = *before.getParent();
    BasicBlock* const reach = BasicBlock::Create(function.getContext(), "reach", &function, vectors);
    llvm::IRBuilder<> b(reach);
    b.SetCurrentDebugLocation(branch->getDebugLoc());
    b.CreateCondBr(inside != nullptr ? inside : b.getFalse(), vectors, scalar);
    branch->setSuccessor(1, reach);
    vectors->replacePhiUsesWith(&before, reach);
    for (llvm::PHINode& phi : scalar->phis()) phi.addIncoming(phi.getIncomingValueForBlock(&before), reach);
    sink_into(*reach, before);
    // The vectorizer says that it has kept both.
    auto& loops = functions_.getResult<llvm::LoopAnalysis>(function);
    if (llvm::Loop* const around = loops.getLoopFor(&before)) around->addBasicBlockToLoop(reach, loops);
    auto& dominators = functions_.getResult<llvm::DominatorTreeAnalysis>(function);
    dominators.addNewBlock(reach, &before);
    if (dominators.getNode(vectors)->getIDom()->getBlock() == &before)
      dominators.changeImmediateDominator(vectors, reach);
    mark_vectors(*vectors, scalar_blocks_);
  }
  entered_.clear();
}

}  // namespace hindsight::jit::optimizing
