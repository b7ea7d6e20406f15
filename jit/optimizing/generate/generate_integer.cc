// Integer operators: both widths from one description. `which` counts from the first opcode of the group.
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::ICmpInst;
using llvm::Value;
using wasm::Opcode;

void FunctionGenerator::emit_integer_compare(uint32_t which, bool wide) {
  if (which == 0) {  // eqz
    Value* const value = pop();
    push_condition(wide ? b_.CreateIsNull(value) : b_.CreateNot(condition(value)));
    return;
  }
  static constexpr ICmpInst::Predicate kPredicates[] = {
      ICmpInst::ICMP_EQ,  ICmpInst::ICMP_NE,  ICmpInst::ICMP_SLT, ICmpInst::ICMP_ULT, ICmpInst::ICMP_SGT,
      ICmpInst::ICMP_UGT, ICmpInst::ICMP_SLE, ICmpInst::ICMP_ULE, ICmpInst::ICMP_SGE, ICmpInst::ICMP_UGE};
  Value* const b = pop();
  Value* const a = pop();
  push_condition(b_.CreateICmp(kPredicates[which - 1], a, b));
}

void FunctionGenerator::emit_integer_operator(uint32_t which, bool wide) {
  enum {
    kClz,
    kCtz,
    kPopcnt,
    kAdd,
    kSub,
    kMul,
    kDivS,
    kDivU,
    kRemS,
    kRemU,
    kAnd,
    kOr,
    kXor,
    kShl,
    kShrS,
    kShrU,
    kRotl,
    kRotr
  };
  llvm::IntegerType* const type = wide ? ir_.i64 : ir_.i32;
  Value* const b = pop();
  switch (which) {
    case kClz:
      push(b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, b, b_.getFalse()));
      return;
    case kCtz:
      push(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, b, b_.getFalse()));
      return;
    case kPopcnt:
      push(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b));
      return;
    default:
      break;
  }
  Value* const a = pop();
  const auto shift_count = [&] { return b_.CreateAnd(b, llvm::ConstantInt::get(type, wide ? 63 : 31)); };
  switch (which) {
    case kAdd:
      push(b_.CreateAdd(a, b));
      break;
    case kSub:
      push(b_.CreateSub(a, b));
      break;
    case kMul:
      push(b_.CreateMul(a, b));
      break;
    case kDivS:
    case kDivU:
    case kRemS:
    case kRemU:
      emit_division(which - kDivS, a, b);
      break;
    case kAnd:
      push(b_.CreateAnd(a, b));
      break;
    case kOr:
      push(b_.CreateOr(a, b));
      break;
    case kXor:
      push(b_.CreateXor(a, b));
      break;
    case kShl:
      push(b_.CreateShl(a, shift_count()));
      break;
    case kShrS:
      push(b_.CreateAShr(a, shift_count()));
      break;
    case kShrU:
      push(b_.CreateLShr(a, shift_count()));
      break;
    case kRotl:
      push(b_.CreateIntrinsic(llvm::Intrinsic::fshl, {type}, {a, a, b}));
      break;
    default:
      push(b_.CreateIntrinsic(llvm::Intrinsic::fshr, {type}, {a, a, b}));
      break;
  }
}

void FunctionGenerator::emit_division(uint32_t which, Value* a, Value* b) {
  enum { kDivS, kDivU, kRemS, kRemU };
  auto* const type = llvm::cast<llvm::IntegerType>(a->getType());
  trap_if(b_.CreateIsNull(b), TrapCode::kIntegerDivideByZero);
  Value* const minus_one = llvm::ConstantInt::getSigned(type, -1);
  switch (which) {
    case kDivS: {
      Value* const least = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getBitWidth()));
      trap_if(b_.CreateAnd(b_.CreateICmpEQ(a, least), b_.CreateICmpEQ(b, minus_one)),
              TrapCode::kIntegerOverflow);
      push(b_.CreateSDiv(a, b));
      break;
    }
    case kDivU:
      push(b_.CreateUDiv(a, b));
      break;
    case kRemS: {
      // least % -1 is 0 in wasm and a fault on the processor; x % 1 is 0 as well.
      Value* const divisor =
          b_.CreateSelect(b_.CreateICmpEQ(b, minus_one), llvm::ConstantInt::get(type, 1), b);
      push(b_.CreateSRem(a, divisor));
      break;
    }
    default:
      push(b_.CreateURem(a, b));
      break;
  }
}

void FunctionGenerator::emit_integer_conversion(const wasm::Instr& instr) {
  Value* const value = pop();
  const auto extend = [&](llvm::IntegerType* from, llvm::IntegerType* to) {
    push(b_.CreateSExt(b_.CreateTrunc(value, from), to));
  };
  switch (instr.opcode) {
    case Opcode::kI32WrapI64:
      push(b_.CreateTrunc(value, ir_.i32));
      break;
    case Opcode::kI64ExtendI32S:
      push(b_.CreateSExt(value, ir_.i64));
      break;
    case Opcode::kI64ExtendI32U:
      push(b_.CreateZExt(value, ir_.i64));
      break;
    case Opcode::kI32Extend8S:
      extend(ir_.i8, ir_.i32);
      break;
    case Opcode::kI32Extend16S:
      extend(ir_.i16, ir_.i32);
      break;
    case Opcode::kI64Extend8S:
      extend(ir_.i8, ir_.i64);
      break;
    case Opcode::kI64Extend16S:
      extend(ir_.i16, ir_.i64);
      break;
    default:
      extend(ir_.i32, ir_.i64);
      break;
  }
}

}  // namespace hindsight::jit::optimizing
