// The walk over a function's instructions, and who compiles which.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;
using x86::CondCode;

// One function for each opcode of one byte, with everything in place that is known of it. A chain of switches takes
// longer, because nobody can predict which opcode follows which.
struct FunctionCompiler::Dispatch {
  template <void (FunctionCompiler::*method)(const Instr&)>
  static void whole(FunctionCompiler& c, const Instr& instr) {
    (c.*method)(instr);
  }
  template <void (FunctionCompiler::*method)(uint32_t)>
  static void with_index(FunctionCompiler& c, const Instr& instr) {
    (c.*method)(instr.index);
  }
  template <uint32_t number, bool wide, bool commutative>
  static void alu(FunctionCompiler& c, const Instr&) {
    c.int_alu(number, wide, commutative);
  }
  template <CondCode cc, bool wide>
  static void compare(FunctionCompiler& c, const Instr&) {
    c.int_compare(cc, wide);
  }
  template <bool wide>
  static void eqz(FunctionCompiler& c, const Instr&) {
    c.int_eqz(wide);
  }
  template <bool wide>
  static void mul(FunctionCompiler& c, const Instr&) {
    c.int_mul(wide);
  }
  template <bool wide, bool is_signed, bool remainder>
  static void divide(FunctionCompiler& c, const Instr&) {
    c.int_divide(wide, is_signed, remainder);
  }
  template <asmjit::InstId inst, asmjit::InstId bmi2, bool wide>
  static void shift(FunctionCompiler& c, const Instr&) {
    c.int_shift(inst, bmi2, wide);
  }
  template <bool wide>
  static void count(FunctionCompiler& c, const Instr& instr) {
    c.int_count(instr, wide);
  }
  template <ValType to, uint32_t bits>
  static void extend(FunctionCompiler& c, const Instr&) {
    c.int_extend(to, bits);
  }
  template <asmjit::InstId inst, ValType type, uint32_t size, bool wide_register>
  static void load(FunctionCompiler& c, const Instr& instr) {
    c.load(instr, inst, type, size, wide_register);
  }
  template <uint32_t size>
  static void store(FunctionCompiler& c, const Instr& instr) {
    c.store(instr, size);
  }
  template <bool tee>
  static void set_local(FunctionCompiler& c, const Instr& instr) {
    c.set_local(instr.index, tee);
  }
  template <ValType type>
  static void constant(FunctionCompiler& c, const Instr& instr) {
    c.push_const(type, instr.bits);
  }
  static void ref_as_non_null(FunctionCompiler& c, const Instr&) { c.ref_as_non_null(); }

  static constexpr std::array<CompileOpcode, 256> make() {
    std::array<CompileOpcode, 256> of{};
    const auto all = [&](uint32_t first, uint32_t last, CompileOpcode handler) {
      for (uint32_t code = first; code <= last; ++code) of[code] = handler;
    };
    const auto set = [&](Opcode opcode, CompileOpcode handler) {
      of[static_cast<uint8_t>(opcode)] = handler;
    };
    using F = FunctionCompiler;
    all(0x00, 0xff, whole<&F::table>);
    all(0x00, 0x0f, whole<&F::control>);
    all(0x06, 0x0a, whole<&F::exception_instruction>);
    all(0x18, 0x19, whole<&F::exception_instruction>);
    all(0x1a, 0x24, whole<&F::variable>);
    all(0x1f, 0x1f, whole<&F::exception_instruction>);
    all(0x28, 0x40, whole<&F::bulk>);
    all(0x5b, 0x66, whole<&F::floating>);
    all(0x8b, 0xa6, whole<&F::floating>);
    all(0xa7, 0xbf, whole<&F::conversion>);
    set(Opcode::kCall, whole<&F::call>);
    set(Opcode::kCallIndirect, whole<&F::call_indirect>);
    set(Opcode::kReturnCall, whole<&F::return_call>);
    set(Opcode::kReturnCallIndirect, whole<&F::return_call_indirect>);
    set(Opcode::kCallRef, whole<&F::call_ref>);
    set(Opcode::kReturnCallRef, whole<&F::return_call_ref>);
    set(Opcode::kRefAsNonNull, ref_as_non_null);
    set(Opcode::kBrOnNull, with_index<&F::branch_on_null>);
    set(Opcode::kBrOnNonNull, with_index<&F::branch_on_non_null>);
    set(Opcode::kLocalGet, with_index<&F::push_local>);
    set(Opcode::kLocalSet, set_local<false>);
    set(Opcode::kLocalTee, set_local<true>);
    set(Opcode::kI32Const, constant<ValType::kI32>);
    set(Opcode::kI64Const, constant<ValType::kI64>);
    set(Opcode::kF32Const, constant<ValType::kF32>);
    set(Opcode::kF64Const, constant<ValType::kF64>);

    set(Opcode::kI32Load, load<Inst::kIdMov, ValType::kI32, 4, false>);
    set(Opcode::kI64Load, load<Inst::kIdMov, ValType::kI64, 8, true>);
    set(Opcode::kF32Load, load<Inst::kIdMovss, ValType::kF32, 4, false>);
    set(Opcode::kF64Load, load<Inst::kIdMovsd, ValType::kF64, 8, false>);
    set(Opcode::kI32Load8S, load<Inst::kIdMovsx, ValType::kI32, 1, false>);
    set(Opcode::kI32Load8U, load<Inst::kIdMovzx, ValType::kI32, 1, false>);
    set(Opcode::kI32Load16S, load<Inst::kIdMovsx, ValType::kI32, 2, false>);
    set(Opcode::kI32Load16U, load<Inst::kIdMovzx, ValType::kI32, 2, false>);
    set(Opcode::kI64Load8S, load<Inst::kIdMovsx, ValType::kI64, 1, true>);
    set(Opcode::kI64Load8U, load<Inst::kIdMovzx, ValType::kI64, 1, false>);
    set(Opcode::kI64Load16S, load<Inst::kIdMovsx, ValType::kI64, 2, true>);
    set(Opcode::kI64Load16U, load<Inst::kIdMovzx, ValType::kI64, 2, false>);
    set(Opcode::kI64Load32S, load<Inst::kIdMovsxd, ValType::kI64, 4, true>);
    set(Opcode::kI64Load32U, load<Inst::kIdMov, ValType::kI64, 4, false>);
    set(Opcode::kI32Store8, store<1>);
    set(Opcode::kI64Store8, store<1>);
    set(Opcode::kI32Store16, store<2>);
    set(Opcode::kI64Store16, store<2>);
    set(Opcode::kI32Store, store<4>);
    set(Opcode::kF32Store, store<4>);
    set(Opcode::kI64Store32, store<4>);
    set(Opcode::kI64Store, store<8>);
    set(Opcode::kF64Store, store<8>);

    set(Opcode::kI32Extend8S, extend<ValType::kI32, 8>);
    set(Opcode::kI32Extend16S, extend<ValType::kI32, 16>);
    set(Opcode::kI64Extend8S, extend<ValType::kI64, 8>);
    set(Opcode::kI64Extend16S, extend<ValType::kI64, 16>);
    set(Opcode::kI64Extend32S, extend<ValType::kI64, 32>);
#define HINDSIGHT_BOTH(name, handler, ...)             \
  set(Opcode::kI32##name, handler<__VA_ARGS__ false>); \
  set(Opcode::kI64##name, handler<__VA_ARGS__ true>);
#define HINDSIGHT_COMPARE(name, cc) HINDSIGHT_BOTH(name, compare, CondCode::cc, )
    HINDSIGHT_BOTH(Eqz, eqz)
    HINDSIGHT_COMPARE(Eq, kE)
    HINDSIGHT_COMPARE(Ne, kNE)
    HINDSIGHT_COMPARE(LtS, kL)
    HINDSIGHT_COMPARE(LtU, kB)
    HINDSIGHT_COMPARE(GtS, kG)
    HINDSIGHT_COMPARE(GtU, kA)
    HINDSIGHT_COMPARE(LeS, kLE)
    HINDSIGHT_COMPARE(LeU, kBE)
    HINDSIGHT_COMPARE(GeS, kGE)
    HINDSIGHT_COMPARE(GeU, kAE)
    HINDSIGHT_BOTH(Mul, mul)
    HINDSIGHT_BOTH(Clz, count)
    HINDSIGHT_BOTH(Ctz, count)
    HINDSIGHT_BOTH(Popcnt, count)
    HINDSIGHT_BOTH(Shl, shift, Inst::kIdShl, Inst::kIdShlx, )
    HINDSIGHT_BOTH(ShrS, shift, Inst::kIdSar, Inst::kIdSarx, )
    HINDSIGHT_BOTH(ShrU, shift, Inst::kIdShr, Inst::kIdShrx, )
    HINDSIGHT_BOTH(Rotl, shift, Inst::kIdRol, 0, )
    HINDSIGHT_BOTH(Rotr, shift, Inst::kIdRor, 0, )
#undef HINDSIGHT_COMPARE
#undef HINDSIGHT_BOTH
#define HINDSIGHT_BOTH(name, handler, first, ...)              \
  set(Opcode::kI32##name, handler<first, false, __VA_ARGS__>); \
  set(Opcode::kI64##name, handler<first, true, __VA_ARGS__>);
    HINDSIGHT_BOTH(Add, alu, kAluAdd, true)
    HINDSIGHT_BOTH(Sub, alu, kAluSub, false)
    HINDSIGHT_BOTH(And, alu, kAluAnd, true)
    HINDSIGHT_BOTH(Or, alu, kAluOr, true)
    HINDSIGHT_BOTH(Xor, alu, kAluXor, true)
#undef HINDSIGHT_BOTH
#define HINDSIGHT_BOTH(name, ...)                      \
  set(Opcode::kI32##name, divide<false, __VA_ARGS__>); \
  set(Opcode::kI64##name, divide<true, __VA_ARGS__>);
    HINDSIGHT_BOTH(DivS, true, false)
    HINDSIGHT_BOTH(DivU, false, false)
    HINDSIGHT_BOTH(RemS, true, true)
    HINDSIGHT_BOTH(RemU, false, true)
#undef HINDSIGHT_BOTH
    return of;
  }
  static const std::array<CompileOpcode, 256> kAll;

  static void prefixed(FunctionCompiler& c, const Instr& instr) {
    c.compile_prefixed(instr);
  }
  static CompileOpcode of(Opcode opcode) {
    const auto code = static_cast<uint16_t>(opcode);
    return code > 0xff ? prefixed : kAll[code];
  }
};
constinit const std::array<FunctionCompiler::CompileOpcode, 256> FunctionCompiler::Dispatch::kAll = make();

void FunctionCompiler::skip_dead(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kLoop:
      ++next_loop_;
      ++dead_depth_;
      break;
    case Opcode::kBlock:
    case Opcode::kIf:
    case Opcode::kTry:
    case Opcode::kTryTable:
      ++dead_depth_;
      break;
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_catch(instr);
      }
      break;
    case Opcode::kDelegate:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_delegate(instr.index);
      } else {
        --dead_depth_;
      }
      break;
    case Opcode::kElse:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        do_else();
      }
      break;
    case Opcode::kEnd:
      if (dead_depth_ == 0) {
        offset_ = instr.offset;
        row(offset_);
        do_end();
      } else {
        --dead_depth_;
      }
      break;
    default:
      break;
  }
}

void FunctionCompiler::compile_body() {
  Control& function = controls_.emplace_back();
  function.kind = Control::Kind::kFunction;
  function.label = epilogue_ = a_.new_label();
  function.type.func_type = &type_;
  Instr instr;
  while (!controls_.empty()) {
    if (reachable_ && !recorder_) {
      // These leave no code where they stand, so they have no row and free nothing.
      uint32_t immediate;
      for (;; ++pending_instructions_) {
        if (reader_.next_is_local_get(immediate))
          push_local(immediate);
        else if (reader_.next_is_i32_const(immediate))
          push_const(ValType::kI32, immediate);
        else
          break;
      }
    }
    reader_.next(instr);
    if (!reachable_) {
      skip_dead(instr);
      continue;
    }
    if (a_.offset() > kMaxCodeBytes) return;  // see compile()
    if (recorder_) {
      recorder_->sync(stack_.size());
      if (recorder_->full()) count_instructions();
    }
    begin_instruction(instr);
    Dispatch::of(instr.opcode)(*this, instr);
    finish_instruction();
  }
}

void FunctionCompiler::compile_prefixed(const Instr& instr) {
  const auto code = static_cast<uint16_t>(instr.opcode);
  if (wasm::is_simd(instr.opcode)) return simd(instr);
  if (code >= 0xfc00 && code <= 0xfc07) return conversion(instr);
  if (code >= 0xfc08 && code <= 0xfc0b) return bulk(instr);
  if (code >> 8 == 0xfe) return atomic(instr);
  return table(instr);  // tables, segments
}

}  // namespace hindsight::jit::baseline
