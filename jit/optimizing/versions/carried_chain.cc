#include "jit/optimizing/versions/carried_chain.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>

#include <algorithm>

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

constexpr double kUnreachable = -1;
constexpr size_t kMostValues = 400;
constexpr double kChoice = 1;  // a conditional move

// Latencies of current x86-64 cores, rounded.
double latency(const Instruction& instruction) {
  const bool floating = instruction.getType()->isFPOrFPVectorTy();
  switch (instruction.getOpcode()) {
    case Instruction::Load:
      return 5;
    case Instruction::Mul:
      return 3;
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
      return 12;
    case Instruction::FDiv:
    case Instruction::FRem:
      return 13;
    case Instruction::PHI:
    case Instruction::ZExt:
    case Instruction::Trunc:
    case Instruction::BitCast:
    case Instruction::Freeze:
      return 0;
    case Instruction::GetElementPtr:
      return 0.5;  // half of them are part of an address
    default:
      return floating ? 4 : 1;
  }
}

// How far after the phi each value of the loop stands, by the longest way.
class Distances {
 public:
  Distances(const llvm::Loop& loop, const PHINode& from) : loop_(loop), from_(from) {}

  // kUnreachable: the value does not depend on the phi.
  double of(const Value* value) {
    const auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == &from_) return 0;
    if (instruction == nullptr || !loop_.contains(instruction) || known_.size() > kMostValues)
      return kUnreachable;
    const auto [found, is_new] = known_.try_emplace(instruction, kUnreachable);
    if (!is_new) return found->second;  // under way: a phi of an inner loop, or another of this one's header
    if (instruction->getParent() == loop_.getHeader() && llvm::isa<PHINode>(instruction)) return kUnreachable;
    double longest = kUnreachable;
    for (const Value* operand : instruction->operands()) longest = std::max(longest, of(operand));
    if (longest != kUnreachable) longest += latency(*instruction);
    known_[instruction] = longest;
    return longest;
  }

 private:
  const llvm::Loop& loop_;
  const PHINode& from_;
  llvm::DenseMap<const Instruction*, double> known_;
};

// Whether the phi's next value is made of `value`.
bool leads_back(const llvm::Loop& loop, const Value* value, const PHINode& phi) {
  llvm::SmallPtrSet<const Value*, 32> seen{value};
  std::vector<const Value*> worklist{value};
  while (!worklist.empty() && seen.size() < kMostValues) {
    const Value* const at = worklist.back();
    worklist.pop_back();
    for (const llvm::User* user : at->users()) {
      const auto* const by = llvm::dyn_cast<Instruction>(user);
      if (by == &phi) return true;
      if (by == nullptr || !loop.contains(by) || by->getType()->isVoidTy()) continue;
      if (llvm::isa<PHINode>(by) && by->getParent() == loop.getHeader()) continue;
      if (seen.insert(by).second) worklist.push_back(by);
    }
  }
  return false;
}

}  // namespace

double cycles_waited(const llvm::Loop& loop, const Sides& sides, double likely) {
  double most = 0;
  for (const PHINode& phi : loop.getHeader()->phis()) {
    Distances distances(loop, phi);
    for (const Sides::Pair& pair : sides.pairs) {
      const double yes = distances.of(pair.yes), no = distances.of(pair.no);
      const double condition = sides.condition != nullptr          ? distances.of(sides.condition)
                               : std::max(yes, no) == kUnreachable ? kUnreachable
                                                                   : std::max(yes, no) + kChoice;
      const double longest = std::max({condition, yes, no});
      if (longest == kUnreachable || !leads_back(loop, pair.joined, phi)) continue;
      const double predicted = likely * std::max(yes, 0.0) + (1 - likely) * std::max(no, 0.0);
      most = std::max(most, longest + kChoice - predicted);
    }
  }
  return most;
}

}  // namespace hindsight::jit::optimizing
