#include "jit/optimizing/changes/prefetch/carried_words.h"

#include <llvm/IR/CFG.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

bool is_word(const IrModule& ir, const llvm::LoadInst& load) {
  return load.isSimple() && load.getType()->isIntegerTy() && !ir.is_of(load, IrModule::World::kRuntime) &&
         !ir.is_of(load, IrModule::World::kCells);
}

// A block that leads to this one within `loop`; to the header of a loop within, from outside of it. Null: there is none.
const BasicBlock* one_before(const BasicBlock& block, const llvm::Loop& loop, const llvm::LoopInfo& loops) {
  if (&block == loop.getHeader()) return nullptr;
  if (const llvm::Loop* inner = loops.getLoopFor(&block); inner != &loop && inner->getHeader() == &block)
    return inner->getLoopPredecessor();
  const auto before = llvm::predecessors(&block);
  return before.empty() ? nullptr : *before.begin();
}

// Before `before`: see stored_before().
const llvm::StoreInst* last_store(const llvm::LoadInst& load, const Instruction& before,
                                  const llvm::Loop& loop, const llvm::LoopInfo& loops,
                                  llvm::ScalarEvolution& evolution) {
  const llvm::SCEV* const at = guest_address(evolution, *load.getPointerOperand());
  if (!evolution.isLoopInvariant(at, &loop)) return nullptr;
  size_t looked_at = 0;
  const Instruction* from = before.getPrevNode();
  for (const BasicBlock* block = before.getParent(); block && loop.contains(block);) {
    for (const Instruction* i = from; i; i = i->getPrevNode()) {
      if (++looked_at > kMostLookedAtForWords) return nullptr;
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(i);
      if (store && store->isSimple() && store->getValueOperand()->getType() == load.getType() &&
          guest_address(evolution, *store->getPointerOperand()) == at)
        return store;
    }
    block = one_before(*block, loop, loops);
    from = block ? &block->back() : nullptr;
  }
  return nullptr;
}

// Copies what a word becomes in an iteration, computed from what it was.
class NextWord {
 public:
  NextWord(const llvm::LoadInst& load, llvm::PHINode& word, const llvm::Loop& loop,
           const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, Instruction* place)
      : load_(load), word_(word), loop_(loop), loops_(loops), evolution_(evolution), place_(place) {
    copies_[&load] = &word;
  }

  // Null: it is computed from something else too.
  Value* copy(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) return value;
    if (const auto known = copies_.find(instruction); known != copies_.end()) return known->second;
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
      // Of the same word, later in the iteration.
      if (load->getType() != load_.getType() ||
          guest_address(evolution_, *load->getPointerOperand()) !=
              guest_address(evolution_, *load_.getPointerOperand()) ||
          !open_.insert(load).second)
        return nullptr;
      const llvm::StoreInst* const store = last_store(*load, *load, loop_, loops_, evolution_);
      Value* const is = store ? copy(const_cast<Value*>(store->getValueOperand())) : &word_;
      return copies_[instruction] = is;
    }
    if (!llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::CmpInst, llvm::SelectInst, llvm::FreezeInst>(
            instruction) ||
        may_trap(*instruction) || instruction->getType()->isVectorTy() || copies_.size() > kMostCopiedOfAWord)
      return nullptr;
    std::vector<Value*> operands;
    for (Value* operand : instruction->operands()) {
      operands.push_back(copy(operand));
      if (!operands.back()) return nullptr;
    }
    Instruction* const made = instruction->clone();
    made->dropPoisonGeneratingFlags();
    made->setMetadata("hindsight.position", nullptr);
    for (unsigned i = 0; i < operands.size(); ++i) made->setOperand(i, operands[i]);
    made->insertBefore(place_);
    return copies_[instruction] = made;
  }

 private:
  static bool may_trap(const Instruction& instruction) {
    const auto* divisor =
        llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(instruction.getNumOperands() - 1));
    return instruction.isIntDivRem() && (!divisor || divisor->isZero() || divisor->isMinusOne());
  }

  const llvm::LoadInst& load_;
  llvm::PHINode& word_;
  const llvm::Loop& loop_;
  const llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  Instruction* const place_;
  std::map<const Instruction*, Value*> copies_;
  llvm::SmallPtrSet<const llvm::LoadInst*, 4> open_;
};

// Null: it is none.
llvm::PHINode* carry(IrModule& ir, llvm::Function& function, const llvm::LoadInst& load, llvm::Loop& loop,
                     const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution) {
  Instruction* const end = loop.getLoopLatch()->getTerminator();
  BasicBlock* const before = loop.getLoopPreheader();
  auto* const pointer = const_cast<Value*>(load.getPointerOperand());
  const auto memory = Speculation::memory_of(ir, pointer, function);
  const llvm::SCEV* const place = evolution.getSCEV(pointer);
  llvm::SCEVExpander expander(evolution, ir.module.getDataLayout(), "word");
  if (!memory || ir.wasm.memories[*memory].limits.min == 0 || !evolution.isLoopInvariant(place, &loop) ||
      !expander.isSafeToExpandAt(place, before->getTerminator()))
    return nullptr;
  if (last_store(load, load, loop, loops, evolution)) return nullptr;  // it is not the first of the iteration
  const llvm::StoreInst* const store = last_store(load, *end, loop, loops, evolution);
  if (!store) return nullptr;
  llvm::PHINode* const word = llvm::PHINode::Create(load.getType(), 2, "", loop.getHeader()->begin());
  word->setDebugLoc(load.getDebugLoc());
  Value* const next =
      NextWord(load, *word, loop, loops, evolution, end).copy(const_cast<Value*>(store->getValueOperand()));
  const auto* made = next ? llvm::dyn_cast<Instruction>(next) : nullptr;
  if (!made || !loop.contains(made) || made == word) {
    word->replaceAllUsesWith(llvm::PoisonValue::get(word->getType()));  // of copies, which are dead
    word->eraseFromParent();
    return nullptr;
  }
  Value* const there = expander.expandCodeFor(place, pointer->getType(), before->getTerminator());
  llvm::IRBuilder<> b(before->getTerminator());
  b.SetCurrentDebugLocation(load.getDebugLoc());
  Speculation speculation(ir, function, load.getDebugLoc());
  speculation.use_memory(b, *memory);
  const uint64_t bytes = ir.module.getDataLayout().getTypeStoreSize(load.getType());
  auto* const first = ir.mark(
      b.CreateAlignedLoad(load.getType(), speculation.clamp(b, there, *memory, bytes), llvm::Align(1)),
      IrModule::World::kMemory);
  word->addIncoming(b.CreateFreeze(first), before);
  word->addIncoming(next, loop.getLoopLatch());
  return word;
}

}  // namespace

const llvm::StoreInst* stored_before(const llvm::LoadInst& load, const llvm::Loop& loop,
                                     const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
                                     const CarriedWords& words) {
  const auto [known, is_new] = words.stores.try_emplace({&load, &loop}, nullptr);
  if (is_new) known->second = last_store(load, load, loop, loops, evolution);
  return known->second;
}

void add_carried_words(IrModule& ir, llvm::Function& function, llvm::Loop& loop, const llvm::LoopInfo& loops,
                       llvm::ScalarEvolution& evolution, CarriedWords& words) {
  if (!loop.isLoopSimplifyForm()) return;
  std::vector<const llvm::LoadInst*> loads;
  llvm::SmallPtrSet<const llvm::SCEV*, 16> stored;  // where
  size_t looked_at = 0;
  for (BasicBlock* block : loop.blocks()) {
    for (Instruction& instruction : *block) {
      if (++looked_at > kMostLookedAtForWords) return;
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
        stored.insert(guest_address(evolution, *store->getPointerOperand()));
      if (loops.getLoopFor(block) != &loop) continue;
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
          load && is_word(ir, *load) &&
          evolution.isLoopInvariant(evolution.getSCEV(instruction.getOperand(0)), &loop))
        loads.push_back(load);
    }
  }
  size_t found = 0;
  for (const llvm::LoadInst* load : loads) {
    if (found == kMostCarriedWords) return;
    if (words.phis.contains(load) || !stored.contains(guest_address(evolution, *load->getPointerOperand())))
      continue;
    llvm::PHINode* const word = carry(ir, function, *load, loop, loops, evolution);
    if (!word) continue;
    words.phis[load] = word;
    ++found;
  }
}

}  // namespace hindsight::jit::optimizing
