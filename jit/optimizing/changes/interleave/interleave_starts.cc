#include <llvm/Analysis/ScalarEvolutionExpressions.h>

#include <algorithm>
#include <functional>

#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

const llvm::SCEVAddRecExpr* stride_of(llvm::ScalarEvolution& evolution, Value* value,
                                      const llvm::Loop& loop) {
  if (!evolution.isSCEVable(value->getType())) return nullptr;
  const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(value));
  return recurrence && recurrence->getLoop() == &loop && recurrence->isAffine() ? recurrence : nullptr;
}

class StartFinder {
 public:
  StartFinder(const IrModule& ir, const InterleaveShape& shape, llvm::DominatorTree& dominators,
              llvm::ScalarEvolution& evolution, const NearLoads& is_near)
      : ir_(ir), shape_(shape), dominators_(dominators), evolution_(evolution), is_near_(is_near) {}

  InterleaveStarts find() {
    each_load(shape_.steps, [&](llvm::LoadInst& load) {
      KnownLoad known{.load = &load, .operations = {}, .firsts = {}};
      bool varies = false;
      if (!is_near(load) && step_address(*load.getPointerOperand(), known, varies) && varies &&
          !fetched(load))
        starts_.steps.push_back(std::move(known));
    });
    // What runs ahead of the heads reads without their checks, and may fault before another head traps.
    const bool unchecked = !shape_.head_may_trap && ir_.request.options.bounds == BoundsChecks::kGuardPages &&
                           std::none_of(ir_.wasm.memories.begin(), ir_.wasm.memories.end(),
                                        [](const auto& memory) { return memory.is64; });
    if (!unchecked) return std::move(starts_);
    each_load(shape_.head, [&](llvm::LoadInst& load) {
      if (stride_of(evolution_, load.getPointerOperand(), *shape_.outer)) return;
      KnownLoad known{.load = &load, .operations = {}, .firsts = {}};
      bool varies = false;
      const auto inductions = starts_.inductions;
      if (head_address(*load.getPointerOperand(), known, varies) && varies)
        starts_.heads.push_back(std::move(known));
      else
        starts_.inductions = inductions;
    });
    return std::move(starts_);
  }

 private:
  template <typename Visit>
  void each_load(const std::vector<llvm::BasicBlock*>& blocks, Visit visit) {
    size_t seen = 0;
    for (llvm::BasicBlock* block : blocks)
      for (Instruction& instruction : *block)
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
            load && !ir_.is_of(*load, IrModule::World::kRuntime) && seen < kMostStartLoads) {
          const size_t before = starts_.heads.size() + starts_.steps.size();
          visit(*load);
          seen += starts_.heads.size() + starts_.steps.size() - before;
        }
  }

  static bool add(KnownLoad& known, Instruction& operation) {
    if (known.operations.size() >= kMostStartOperations) return false;
    known.operations.push_back(&operation);
    return true;
  }
  static bool has(const KnownLoad& known, const Instruction& operation) {
    return std::find(known.operations.begin(), known.operations.end(), &operation) != known.operations.end();
  }

  // Recursion is bounded by the operations' number.
  bool step_address(Value& value, KnownLoad& known, bool& varies) {
    auto* const instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !shape_.chase->contains(instruction) || has(known, *instruction)) return true;
    if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) {
      if (Value* const first = first_value(*phi)) {
        known.firsts[phi] = first;
        return step_address(*first, known, varies);
      }
      if (instruction->getParent() != shape_.chase->getHeader() || shape_.reduction_of(instruction))
        return false;
      varies |= stride_of(evolution_, instruction, *shape_.chase) == nullptr;
      return true;
    }
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction);
    if (load ? !is_near(*load) : !only_computes(*instruction)) return false;
    for (Value* operand : instruction->operands())
      if (!step_address(*operand, known, varies)) return false;
    return add(known, *instruction);
  }
  bool is_near(const llvm::LoadInst& load) const { return is_near_ && is_near_(load); }

  // What the phi of a loop within the search begins with.
  Value* first_value(const PHINode& phi) const {
    for (const llvm::Loop* loop : shape_.chase->getLoopsInPreorder())
      if (loop != shape_.chase && loop->getHeader() == phi.getParent() && loop->getLoopPreheader())
        return phi.getIncomingValueForBlock(loop->getLoopPreheader());
    return nullptr;
  }

  bool head_address(Value& value, KnownLoad& known, bool& varies) {
    auto* const instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !shape_.outer->contains(instruction) || has(known, *instruction)) return true;
    if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) {
      return phi->getParent() == shape_.outer->getHeader() && take_induction(*phi);
    }
    // In every iteration, or it might trap where the program does not come to.
    if (!dominators_.dominates(instruction->getParent(), shape_.outer->getLoopLatch())) return false;
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
      if (ir_.is_of(*load, IrModule::World::kRuntime)) return false;
      if (!stride_of(evolution_, load->getPointerOperand(), *shape_.outer)) return false;
      varies = true;
    } else if (!only_computes(*instruction)) {
      return false;
    }
    for (Value* operand : instruction->operands())
      if (!head_address(*operand, known, varies)) return false;
    return add(known, *instruction);
  }

  bool take_induction(PHINode& phi) {
    const llvm::SCEVAddRecExpr* const recurrence = stride_of(evolution_, &phi, *shape_.outer);
    if (!recurrence) return false;
    const llvm::SCEV* const step = recurrence->getStepRecurrence(evolution_);
    Value* amount = nullptr;
    if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step)) amount = constant->getValue();
    if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(step)) amount = unknown->getValue();
    if (!amount || !shape_.outer->isLoopInvariant(amount)) return false;
    const std::pair<PHINode*, Value*> induction(&phi, amount);
    auto& all = starts_.inductions;
    if (std::find(all.begin(), all.end(), induction) == all.end()) all.push_back(induction);
    return true;
  }

  bool fetched(llvm::LoadInst& load) {
    const llvm::DataLayout& layout = load.getDataLayout();
    const auto place = [&](const llvm::LoadInst& of) {
      llvm::APInt offset(64, 0);
      const Value* const base = of.getPointerOperand()->stripAndAccumulateConstantOffsets(
          layout, offset, /*AllowNonInbounds=*/true);
      return std::pair(base, offset.getSExtValue());
    };
    const auto [base, offset] = place(load);
    return std::any_of(starts_.steps.begin(), starts_.steps.end(), [&](const KnownLoad& other) {
      const auto [its_base, its_offset] = place(*other.load);
      return its_base == base && std::abs(its_offset - offset) < kLineBytes;
    });
  }

  const IrModule& ir_;
  const InterleaveShape& shape_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const NearLoads& is_near_;
  InterleaveStarts starts_;
};

}  // namespace

std::vector<KnownLoad> find_turn_starts(llvm::Loop& within, llvm::ScalarEvolution& evolution) {
  std::vector<KnownLoad> starts;
  for (llvm::BasicBlock* block : within.blocks()) {
    for (Instruction& instruction : *block) {
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (!load || starts.size() >= kMostStartLoads) continue;
      KnownLoad known{.load = load, .operations = {}, .firsts = {}};
      bool varies = false;
      // Recursion is bounded by the operations' number.
      const std::function<bool(Value&)> is_known = [&](Value& value) {
        auto* const made = llvm::dyn_cast<Instruction>(&value);
        if (!made || !within.contains(made) ||
            std::ranges::find(known.operations, made) != known.operations.end())
          return true;
        if (llvm::isa<PHINode>(made)) {
          varies |= stride_of(evolution, made, within) == nullptr;
          return made->getParent() == within.getHeader();
        }
        if (!only_computes(*made) || known.operations.size() >= kMostStartOperations) return false;
        for (Value* operand : made->operands())
          if (!is_known(*operand)) return false;
        known.operations.push_back(made);
        return true;
      };
      if (is_known(*load->getPointerOperand()) && varies) starts.push_back(std::move(known));
    }
  }
  return starts;
}

InterleaveStarts find_interleave_starts(const IrModule& ir, const InterleaveShape& shape,
                                        llvm::DominatorTree& dominators, llvm::ScalarEvolution& evolution,
                                        const NearLoads& is_near) {
  return StartFinder(ir, shape, dominators, evolution, is_near).find();
}

}  // namespace hindsight::jit::optimizing
