// Floating point: exactly the specification, never fast-math. What LLVM may do with signaling NaNs that
// WebAssembly may not is handled in protect.h.
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::FCmpInst;
using llvm::Value;
using wasm::Opcode;

void FunctionGenerator::emit_float_compare(uint32_t which) {
  static constexpr FCmpInst::Predicate kPredicates[] = {FCmpInst::FCMP_OEQ, FCmpInst::FCMP_UNE,
                                                        FCmpInst::FCMP_OLT, FCmpInst::FCMP_OGT,
                                                        FCmpInst::FCMP_OLE, FCmpInst::FCMP_OGE};
  Value* const b = pop();
  Value* const a = pop();
  push_condition(b_.CreateFCmp(kPredicates[which], a, b));
}

void FunctionGenerator::emit_float_operator(uint32_t which, bool wide) {
  enum { kAbs, kNeg, kCeil, kFloor, kTrunc, kNearest, kSqrt, kAdd, kSub, kMul, kDiv, kMin, kMax, kCopysign };
  Value* const b = pop();
  switch (which) {
    case kAbs:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b));
      return;
    case kNeg:
      push(b_.CreateFNeg(b));
      return;
    case kCeil:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, b));
      return;
    case kFloor:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b));
      return;
    case kTrunc:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b));
      return;
    case kNearest:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, b));
      return;
    case kSqrt:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, b));
      return;
    default:
      break;
  }
  Value* const a = pop();
  switch (which) {
    case kAdd:
      push(b_.CreateFAdd(a, b));
      break;
    case kSub:
      push(b_.CreateFSub(a, b));
      break;
    case kMul:
      push(b_.CreateFMul(a, b));
      break;
    case kDiv:
      push(b_.CreateFDiv(a, b));
      break;
    case kMin:
      push(minimum_or_maximum(a, b, false));
      break;
    case kMax:
      push(minimum_or_maximum(a, b, true));
      break;
    default:
      push(b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b));
      break;
  }
}

// Selects, so that it vectorizes. Equal operands are equal in bits or are the two zeros. For the zeros,
// joining the sign bits gives the answer (or: any minus wins, and: any plus wins). The sum quiets a signaling
// NaN, which llvm.minimum's lowering on x86 may hand through.
Value* FunctionGenerator::minimum_or_maximum(Value* a, Value* b, bool maximum) {
  llvm::Type* const type = a->getType();
  llvm::Type* const bits = type == ir_.f32 ? ir_.i32 : ir_.i64;
  Value* const a_bits = b_.CreateBitCast(a, bits);
  Value* const b_bits = b_.CreateBitCast(b, bits);
  Value* const zero =
      b_.CreateBitCast(maximum ? b_.CreateAnd(a_bits, b_bits) : b_.CreateOr(a_bits, b_bits), type);
  Value* const first = maximum ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  Value* const ordered = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), zero, b_.CreateSelect(first, a, b));
  return b_.CreateSelect(b_.CreateFCmpUNO(a, b), b_.CreateFAdd(a, b), ordered);
}

void FunctionGenerator::emit_float_conversion(const wasm::Instr& instr) {
  const auto saturate = [&](llvm::Intrinsic::ID id, llvm::Type* to) {
    Value* const value = pop();
    push(b_.CreateIntrinsic(id, {to, value->getType()}, {value}));
  };
  switch (instr.opcode) {
    case Opcode::kI32TruncF32S:
      emit_truncation(false, false, true);
      break;
    case Opcode::kI32TruncF32U:
      emit_truncation(false, false, false);
      break;
    case Opcode::kI32TruncF64S:
      emit_truncation(true, false, true);
      break;
    case Opcode::kI32TruncF64U:
      emit_truncation(true, false, false);
      break;
    case Opcode::kI64TruncF32S:
      emit_truncation(false, true, true);
      break;
    case Opcode::kI64TruncF32U:
      emit_truncation(false, true, false);
      break;
    case Opcode::kI64TruncF64S:
      emit_truncation(true, true, true);
      break;
    case Opcode::kI64TruncF64U:
      emit_truncation(true, true, false);
      break;
    case Opcode::kI32TruncSatF32S:
    case Opcode::kI32TruncSatF64S:
      saturate(llvm::Intrinsic::fptosi_sat, ir_.i32);
      break;
    case Opcode::kI32TruncSatF32U:
    case Opcode::kI32TruncSatF64U:
      saturate(llvm::Intrinsic::fptoui_sat, ir_.i32);
      break;
    case Opcode::kI64TruncSatF32S:
    case Opcode::kI64TruncSatF64S:
      saturate(llvm::Intrinsic::fptosi_sat, ir_.i64);
      break;
    case Opcode::kI64TruncSatF32U:
    case Opcode::kI64TruncSatF64U:
      saturate(llvm::Intrinsic::fptoui_sat, ir_.i64);
      break;
    case Opcode::kF32ConvertI32S:
    case Opcode::kF32ConvertI64S:
      push(b_.CreateSIToFP(pop(), ir_.f32));
      break;
    case Opcode::kF32ConvertI32U:
    case Opcode::kF32ConvertI64U:
      push(b_.CreateUIToFP(pop(), ir_.f32));
      break;
    case Opcode::kF64ConvertI32S:
    case Opcode::kF64ConvertI64S:
      push(b_.CreateSIToFP(pop(), ir_.f64));
      break;
    case Opcode::kF64ConvertI32U:
    case Opcode::kF64ConvertI64U:
      push(b_.CreateUIToFP(pop(), ir_.f64));
      break;
    case Opcode::kF32DemoteF64:
      push(b_.CreateFPTrunc(pop(), ir_.f32));
      break;
    case Opcode::kF64PromoteF32:
      push(b_.CreateFPExt(pop(), ir_.f64));
      break;
    case Opcode::kI32ReinterpretF32:
      push(b_.CreateBitCast(pop(), ir_.i32));
      break;
    case Opcode::kI64ReinterpretF64:
      push(b_.CreateBitCast(pop(), ir_.i64));
      break;
    case Opcode::kF32ReinterpretI32:
      push(b_.CreateBitCast(pop(), ir_.f32));
      break;
    default:
      push(b_.CreateBitCast(pop(), ir_.f64));
      break;
  }
}

// A NaN is an invalid conversion; everything else outside of (below, above) is an overflow. Bounds are exact
// in the operand's format: "x > -2^31 - 1" where the format has that number, "x >= -2^31" where it does not.
void FunctionGenerator::emit_truncation(bool from_f64, bool to_i64, bool is_signed) {
  Value* const value = pop();
  llvm::Type* const type = from_f64 ? ir_.f64 : ir_.f32;
  trap_if(b_.CreateFCmpUNO(value, value), TrapCode::kInvalidConversion);
  const auto number = [&](double n) { return llvm::ConstantFP::get(type, n); };
  const double above = is_signed ? (to_i64 ? 0x1p63 : 0x1p31) : (to_i64 ? 0x1p64 : 0x1p32);
  Value* low_enough = b_.CreateFCmpOLT(value, number(above));
  Value* high_enough = nullptr;
  if (!is_signed) {
    high_enough = b_.CreateFCmpOGT(value, number(-1.0));
  } else if (from_f64 && !to_i64) {
    high_enough = b_.CreateFCmpOGT(value, number(-0x1p31 - 1));
  } else {
    high_enough = b_.CreateFCmpOGE(value, number(-above));
  }
  trap_if(b_.CreateNot(b_.CreateAnd(low_enough, high_enough)), TrapCode::kIntegerOverflow);
  llvm::Type* const result = to_i64 ? ir_.i64 : ir_.i32;
  push(is_signed ? b_.CreateFPToSI(value, result) : b_.CreateFPToUI(value, result));
}

}  // namespace hindsight::jit::optimizing
