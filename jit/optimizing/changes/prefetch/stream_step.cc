#include "jit/optimizing/changes/prefetch/stream_step.h"

#include <llvm/IR/Operator.h>

#include <algorithm>
#include <optional>

#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// Keeps all sums and products below 2^63.
std::optional<int64_t> bounded(std::optional<int64_t> step) {
  if (step && std::abs(*step) > kLongestStreamStep) return std::nullopt;
  return step;
}

std::optional<int64_t> constant_of(const Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (!constant || constant->getValue().getSignificantBits() > 32) return std::nullopt;
  return constant->getSExtValue();
}

// Recursion ends with the slice's operations, of which no chain is longer than kMaxSliceOperations.
class StreamSteps {
 public:
  explicit StreamSteps(const PrefetchSlice& slice) : slice_(slice) {}

  std::optional<int64_t> of(const Value* value) {
    const auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !slice_.loop->contains(instruction)) return 0;
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
      const auto step = slice_.steps.find(const_cast<llvm::PHINode*>(phi));
      return step == slice_.steps.end() ? std::nullopt : bounded(constant_of(step->second));
    }
    if (++visited_ > kMaxSliceOperations) return std::nullopt;
    return bounded(of_operation(*instruction));
  }

 private:
  std::optional<int64_t> of_operation(const Instruction& instruction) {
    const auto operand = [&](unsigned i) { return of(instruction.getOperand(i)); };
    const auto scaled = [&](unsigned i, std::optional<int64_t> factor) -> std::optional<int64_t> {
      const std::optional<int64_t> step = operand(i);
      if (!step || !factor || std::abs(*factor) > kLongestStreamStep) return std::nullopt;
      return *step * *factor;
    };
    switch (instruction.getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub: {
        const auto left = operand(0), right = operand(1);
        if (!left || !right) return std::nullopt;
        return instruction.getOpcode() == Instruction::Add ? *left + *right : *left - *right;
      }
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr:
      case Instruction::Freeze:
        return operand(0);
      case Instruction::Or:
      case Instruction::And:
        return llvm::isa<llvm::ConstantInt>(instruction.getOperand(1)) ? operand(0) : std::nullopt;
      case Instruction::Mul:
        return scaled(0, constant_of(instruction.getOperand(1)));
      case Instruction::Shl: {
        const auto bits = constant_of(instruction.getOperand(1));
        return bits && *bits >= 0 && *bits < 20 ? scaled(0, int64_t{1} << *bits) : std::nullopt;
      }
      case Instruction::GetElementPtr: {
        if (!is_of_bytes(llvm::cast<llvm::GEPOperator>(instruction))) return std::nullopt;
        const auto from = operand(0), by = operand(1);
        if (!from || !by) return std::nullopt;
        return *from + *by;
      }
      default:
        return std::nullopt;
    }
  }

  const PrefetchSlice& slice_;
  uint32_t visited_ = 0;
};

}  // namespace

int64_t stream_step(const PrefetchSlice& slice, const llvm::LoadInst& load) {
  // Where a way is guessed, nothing is even.
  return slice.ways.empty() ? StreamSteps(slice).of(load.getPointerOperand()).value_or(0) : 0;
}

}  // namespace hindsight::jit::optimizing
