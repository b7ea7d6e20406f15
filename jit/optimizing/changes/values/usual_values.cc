#include "jit/optimizing/changes/values/usual_values.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "jit/abi/vm_context.h"
#include "jit/optimizing/changes/values/value_parameters.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// Arguments of the builtins, after the VmContext (jit/abi/builtins.h).
enum Argument : unsigned {
  kCopyMemories = 1,
  kCopyTo = 2,
  kCopyFrom = 3,
  kCopyBytes = 4,
  kFillMemory = 1,
  kFillTo = 2,
  kFillValue = 3,
  kFillBytes = 4
};

bool is_division(const Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
      return instruction.getType()->isIntegerTy();
    default:
      return false;
  }
}

const llvm::CallInst* bulk_call(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call != nullptr && call->getMetadata(kBulk) != nullptr ? call : nullptr;
}

// A copy has the bytes of both its ends' addresses in 64 bits, a fill its byte in 32.
bool copies(const llvm::CallInst& call) {
  return call.getArgOperand(kCopyFrom)->getType()->isIntegerTy(64);
}

uint64_t constant_or_zero(const Value* value) {
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(value);
  return known == nullptr ? 0 : known->getZExtValue();
}

struct Piece {
  uint64_t at = 0;
  uint32_t bytes = 0;  // a power of two
};

// Which pieces cover so many bytes. The last one may begin within the one before it, as all is read before
// anything is written.
std::vector<Piece> pieces_of(uint64_t bytes, uint32_t widest) {
  std::vector<Piece> pieces;
  uint64_t at = 0;
  for (; bytes - at >= widest; at += widest) pieces.push_back({at, widest});
  const uint64_t rest = bytes - at;
  if (rest == 0) return pieces;
  if (const auto up = static_cast<uint32_t>(std::bit_ceil(rest)); up <= bytes) {
    pieces.push_back({bytes - up, up});
    return pieces;
  }
  // Fewer bytes in all than a piece that holds them.
  const auto half = static_cast<uint32_t>(std::bit_floor(rest));
  pieces.push_back({at, half});
  if (half != rest) pieces.push_back({bytes - half, half});
  return pieces;
}

class BulkCode {
 public:
  BulkCode(IrModule& ir, llvm::CallInst& call, uint64_t bytes,
           const std::function<MemoryPlace(uint32_t)>& place)
      : ir_(ir), call_(call), bytes_(bytes), place_(place), copies_(copies(call)) {
    const auto memories = memories_of(call);
    to_ = memories.front();
    from_ = memories.back();
  }

  // Whether all that is read and written lies within the memories.
  Value* in_bounds(llvm::IRBuilder<>& b) const {
    Value* const to = call_.getArgOperand(copies_ ? kCopyTo : kFillTo);
    if (!copies_) return ends_within(b, to, to_);
    Value* const from = call_.getArgOperand(kCopyFrom);
    if (to_ == from_) return ends_within(b, b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, to, from), to_);
    return b.CreateAnd(ends_within(b, to, to_), ends_within(b, from, from_));
  }

  void emit(llvm::IRBuilder<>& b) const {
    const uint32_t widest = ir_.host.vector_bits >= 256 ? 32 : 16;
    const std::vector<Piece> pieces = pieces_of(bytes_, widest);
    std::vector<Value*> values;
    if (copies_) {
      Value* const from = b.CreateInBoundsGEP(ir_.i8, place_(from_).base, call_.getArgOperand(kCopyFrom));
      for (const Piece& piece : pieces)
        values.push_back(ir_.mark(b.CreateAlignedLoad(type_of(piece), at(b, from, piece), llvm::Align(1)),
                                  IrModule::World::kMemory));
    } else {
      Value* const byte = b.CreateTrunc(call_.getArgOperand(kFillValue), ir_.i8);
      for (const Piece& piece : pieces)
        values.push_back(b.CreateBitCast(b.CreateVectorSplat(piece.bytes, byte), type_of(piece)));
    }
    Value* const to =
        b.CreateInBoundsGEP(ir_.i8, place_(to_).base, call_.getArgOperand(copies_ ? kCopyTo : kFillTo));
    for (size_t i = 0; i < pieces.size(); ++i)
      ir_.mark(b.CreateAlignedStore(values[i], at(b, to, pieces[i]), llvm::Align(1)),
               IrModule::World::kMemory);
  }

 private:
  Value* at(llvm::IRBuilder<>& b, Value* place, const Piece& piece) const {
    return piece.at == 0 ? place : b.CreateConstInBoundsGEP1_64(ir_.i8, place, piece.at);
  }
  llvm::Type* type_of(const Piece& piece) const {
    if (piece.bytes >= 16) return llvm::FixedVectorType::get(ir_.i8, piece.bytes);
    return llvm::IntegerType::get(ir_.context, 8 * piece.bytes);
  }
  // Invariant: kMostUsualBytes is less than a page, so that a memory with any length has room for them.
  Value* ends_within(llvm::IRBuilder<>& b, Value* address, uint32_t memory) const {
    llvm::LoadInst* const length = b.CreateAlignedLoad(
        ir_.i64,
        b.CreateConstInBoundsGEP1_64(ir_.i8, place_(memory).record, offsetof(MemoryRecord, byte_length)),
        llvm::Align(8));
    if (ir_.wasm.memories[memory].shared) length->setAtomic(llvm::AtomicOrdering::Unordered);
    ir_.mark(length, IrModule::World::kRuntime);
    Value* const size = llvm::ConstantInt::get(ir_.i64, bytes_);
    // An address of 32 bits and a few bytes more do not wrap; one of 64 bits may.
    if (!ir_.wasm.memories[memory].is64) return b.CreateICmpULE(b.CreateAdd(address, size), length);
    Value* const room = b.CreateICmpUGE(length, size);
    return b.CreateAnd(room, b.CreateICmpULE(address, b.CreateSub(length, size)));
  }

  IrModule& ir_;
  llvm::CallInst& call_;
  const uint64_t bytes_;
  const std::function<MemoryPlace(uint32_t)>& place_;
  const bool copies_;
  uint32_t to_ = 0, from_ = 0;
};

}  // namespace

Value* usual_operand(const Instruction& instruction) {
  Value* operand = nullptr;
  if (is_division(instruction)) operand = instruction.getOperand(1);
  if (const llvm::CallInst* const call = bulk_call(instruction))
    operand = call->getArgOperand(copies(*call) ? kCopyBytes : kFillBytes);
  return operand == nullptr || llvm::isa<llvm::Constant>(operand) ? nullptr : operand;
}

std::string_view why_not_usual(const Instruction& instruction, uint64_t value) {
  if (is_division(instruction)) return value == 0 ? "a division by 0 traps" : "";
  return value > kMostUsualBytes ? "so large a length gains nothing from being known" : "";
}

std::vector<uint32_t> memories_of(const Instruction& instruction) {
  const llvm::CallInst* const call = bulk_call(instruction);
  if (call == nullptr) return {};
  if (!copies(*call)) return {static_cast<uint32_t>(constant_or_zero(call->getArgOperand(kFillMemory)))};
  const uint64_t both = constant_or_zero(call->getArgOperand(kCopyMemories));
  return {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
}

void use_value(IrModule& ir, Instruction& instruction, const UsualValue& of, bool certain,
               const std::function<MemoryPlace(uint32_t)>& place) {
  Value* const operand = usual_operand(instruction);
  auto* const usual = llvm::ConstantInt::get(llvm::cast<llvm::IntegerType>(operand->getType()), of.value);
  const bool divides = is_division(instruction);
  if (divides && certain) return instruction.setOperand(1, usual);
  llvm::IRBuilder<> b(&instruction);
  Value* condition = certain ? nullptr : b.CreateICmpEQ(b.CreateFreeze(operand), usual);
  llvm::MDNode* const weights = ir.branch_weights(of.share, std::max(1 - of.share, kLeastValueShareLeft));
  Instruction *then = nullptr, *otherwise = nullptr;
  if (divides) {
    llvm::SplitBlockAndInsertIfThenElse(condition, &instruction, &then, &otherwise, weights);
    Instruction* const with = instruction.clone();
    with->setOperand(1, usual);
    with->insertBefore(then);
    llvm::BasicBlock* const join = instruction.getParent();
    auto* const phi = llvm::PHINode::Create(instruction.getType(), 2, "", join->begin());
    phi->setDebugLoc(instruction.getDebugLoc());
    instruction.replaceAllUsesWith(phi);
    instruction.moveBefore(otherwise);
    phi->addIncoming(with, then->getParent());
    phi->addIncoming(&instruction, otherwise->getParent());
  } else {
    const BulkCode code(ir, llvm::cast<llvm::CallInst>(instruction), of.value, place);
    Value* const inside = code.in_bounds(b);
    condition = condition == nullptr ? inside : b.CreateAnd(condition, inside);
    llvm::SplitBlockAndInsertIfThenElse(condition, &instruction, &then, &otherwise, weights);
    instruction.moveBefore(otherwise);
    b.SetInsertPoint(then);
    b.SetCurrentDebugLocation(instruction.getDebugLoc());
    code.emit(b);
  }
  for (Instruction* const end : {then, otherwise}) end->setDebugLoc(instruction.getDebugLoc());
}

}  // namespace hindsight::jit::optimizing
