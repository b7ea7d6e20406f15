// Constants, splats, lanes and shuffles.
#include <array>
#include <bit>
#include <cstring>

#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

namespace {

using Lanes = std::array<uint8_t, 16>;

Lanes lanes_of(const Instr& instr) {
  Lanes lanes;
  std::memcpy(lanes.data(), &instr.bits, 8);
  std::memcpy(lanes.data() + 8, &instr.high, 8);
  return lanes;
}

// The immediate of a pshufd that does the same to the first operand.
std::optional<int> as_word_shuffle(const Lanes& lanes) {
  int immediate = 0;
  for (int i = 0; i < 4; ++i) {
    const uint8_t first = lanes[static_cast<size_t>(4 * i)];
    if (first % 4 != 0 || first >= 16) return std::nullopt;
    for (int k = 1; k < 4; ++k)
      if (lanes[static_cast<size_t>(4 * i + k)] != first + k) return std::nullopt;
    immediate |= first / 4 << (2 * i);
  }
  return immediate;
}

// The number of bytes by which the two operands, the first one low, are shifted.
std::optional<int> as_byte_shift(const Lanes& lanes) {
  for (size_t i = 0; i < 16; ++i)
    if (lanes[i] != lanes[0] + i) return std::nullopt;
  return lanes[0];
}

// Alternating pieces of the low or high halves of both operands.
std::optional<VectorInst> as_interleaving(const Lanes& lanes) {
  static constexpr VectorInst kLow[] = {HINDSIGHT_VP(unpcklbw), HINDSIGHT_VP(unpcklwd),
                                        HINDSIGHT_VP(unpckldq), HINDSIGHT_VP(unpcklqdq)};
  static constexpr VectorInst kHigh[] = {HINDSIGHT_VP(unpckhbw), HINDSIGHT_VP(unpckhwd),
                                         HINDSIGHT_VP(unpckhdq), HINDSIGHT_VP(unpckhqdq)};
  for (uint32_t log2 = 0; log2 < 4; ++log2) {
    for (const uint32_t half : {0u, 8u}) {
      bool same = true;
      for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t piece = i >> log2;
        const uint32_t wanted =
            half + (piece / 2 << log2) + (i & ((1u << log2) - 1)) + (piece % 2 == 0 ? 0 : 16);
        same = same && lanes[i] == wanted;
      }
      if (same) return half == 0 ? kLow[log2] : kHigh[log2];
    }
  }
  return std::nullopt;
}

}  // namespace

void FunctionCompiler::simd_lanes(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kV128Const:
      return push_const(ValType::kV128, instr.bits, instr.high);
    case Opcode::kI8x16Shuffle:
      return shuffle(instr);
    case Opcode::kI8x16Swizzle: {
      // Lane numbers of 16 and more become negative by a saturating addition, for which pshufb gives zero.
      const Entry b = pop();
      const Entry a = pop();
      const RegId lanes = use(b);
      const x86::Xmm scratch = x86::xmm15;
      vector_op(HINDSIGHT_VP(addusb), scratch, xmm(lanes), splat8(0x70));
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VP(shufb), a, scratch));
    }
    default:
      break;
  }
  if (instr.opcode <= Opcode::kF64x2Splat) return splat(instr.opcode);
  switch (instr.opcode) {
    case Opcode::kI8x16ReplaceLane:
    case Opcode::kI16x8ReplaceLane:
    case Opcode::kI32x4ReplaceLane:
    case Opcode::kI64x2ReplaceLane:
    case Opcode::kF32x4ReplaceLane:
    case Opcode::kF64x2ReplaceLane:
      return replace_lane(instr);
    default:
      return extract_lane(instr);
  }
}

void FunctionCompiler::splat(Opcode op) {
  const Entry a = pop();
  if (a.is_const()) {
    uint64_t bits = a.bits;
    if (op == Opcode::kI8x16Splat) bits = 0x0101010101010101u * (bits & 0xff);
    if (op == Opcode::kI16x8Splat) bits = 0x0001000100010001u * (bits & 0xffff);
    if (op == Opcode::kI32x4Splat || op == Opcode::kF32x4Splat) bits = bits << 32 | (bits & UINT32_MAX);
    return push_const(ValType::kV128, bits, bits);
  }
  const RegId source = use(a);
  const RegId result_reg = result_like(a, true);
  const x86::Xmm result = xmm(result_reg);
  switch (op) {
    case Opcode::kI8x16Splat:
      a_.movd(result, gp(source, false));
      if (features_.avx2) {
        a_.vpbroadcastb(result, result);
        break;
      }
      a_.pxor(x86::xmm15, x86::xmm15);
      a_.pshufb(result, x86::xmm15);
      break;
    case Opcode::kI16x8Splat:
      a_.movd(result, gp(source, false));
      if (features_.avx2) {
        a_.vpbroadcastw(result, result);
        break;
      }
      a_.pshuflw(result, result, 0);
      a_.pshufd(result, result, 0);
      break;
    case Opcode::kI32x4Splat:
      a_.movd(result, gp(source, false));
      a_.pshufd(result, result, 0);
      break;
    case Opcode::kI64x2Splat:
      a_.movq(result, gp(source, true));
      a_.punpcklqdq(result, result);
      break;
    case Opcode::kF32x4Splat:
      a_.pshufd(result, xmm(source), 0);
      break;
    default:
      a_.movddup(result, xmm(source));
      break;
  }
  push_reg(ValType::kV128, result_reg);
}

void FunctionCompiler::extract_lane(const Instr& instr) {
  const auto lane = static_cast<int>(instr.index);
  const Entry a = pop();
  const RegId source_reg = use(a);
  const x86::Xmm source = xmm(source_reg);
  if (instr.opcode == Opcode::kF32x4ExtractLane || instr.opcode == Opcode::kF64x2ExtractLane) {
    // What is above a scalar in its register is nobody's business.
    const bool wide = instr.opcode == Opcode::kF64x2ExtractLane;
    const RegId result = result_like(a, true);
    if (lane == 0) {
      if (result != source_reg) a_.movaps(xmm(result), source);
    } else if (wide) {
      a_.pshufd(xmm(result), source, 0xee);
    } else {
      a_.pshufd(xmm(result), source, lane);
    }
    return push_reg(wide ? ValType::kF64 : ValType::kF32, result);
  }
  const RegId result_reg = alloc(false);
  const x86::Gp result = gp(result_reg, false);
  ValType type = ValType::kI32;
  switch (instr.opcode) {
    case Opcode::kI8x16ExtractLaneS:
      a_.pextrb(result, source, lane);
      a_.movsx(result, result.r8());
      break;
    case Opcode::kI8x16ExtractLaneU:
      a_.pextrb(result, source, lane);
      break;
    case Opcode::kI16x8ExtractLaneS:
      a_.pextrw(result, source, lane);
      a_.movsx(result, result.r16());
      break;
    case Opcode::kI16x8ExtractLaneU:
      a_.pextrw(result, source, lane);
      break;
    case Opcode::kI32x4ExtractLane:
      if (lane == 0)
        a_.movd(result, source);
      else
        a_.pextrd(result, source, lane);
      break;
    default:
      type = ValType::kI64;
      if (lane == 0)
        a_.movq(gp(result_reg, true), source);
      else
        a_.pextrq(gp(result_reg, true), source, lane);
      break;
  }
  push_reg(type, result_reg);
}

void FunctionCompiler::replace_lane(const Instr& instr) {
  const auto lane = static_cast<int>(instr.index);
  const Entry value = pop();
  const Entry a = pop();
  const RegId source = use(value);
  const RegId result_reg = own(a);
  const x86::Xmm result = xmm(result_reg);
  switch (instr.opcode) {
    case Opcode::kI8x16ReplaceLane:
      a_.pinsrb(result, gp(source, false), lane);
      break;
    case Opcode::kI16x8ReplaceLane:
      a_.pinsrw(result, gp(source, false), lane);
      break;
    case Opcode::kI32x4ReplaceLane:
      a_.pinsrd(result, gp(source, false), lane);
      break;
    case Opcode::kI64x2ReplaceLane:
      a_.pinsrq(result, gp(source, true), lane);
      break;
    case Opcode::kF32x4ReplaceLane:
      a_.insertps(result, xmm(source), lane << 4);
      break;
    default:
      if (lane == 0)
        a_.movsd(result, xmm(source));
      else
        a_.movlhps(result, xmm(source));
      break;
  }
  push_reg(ValType::kV128, result_reg);
}

void FunctionCompiler::shuffle(const Instr& instr) {
  Lanes lanes = lanes_of(instr);
  Entry b = pop();
  Entry a = pop();
  bool uses_a = false, uses_b = false;
  for (const uint8_t lane : lanes) (lane < 16 ? uses_a : uses_b) = true;
  if (!uses_a) {
    std::swap(a, b);
    for (uint8_t& lane : lanes) lane -= 16;
  }
  if (uses_a != uses_b) {
    if (const auto immediate = as_word_shuffle(lanes)) {
      const asmjit::Operand from = vector_operand(a);
      const RegId result = result_like(a, true);
      a_.emit(Inst::kIdPshufd, xmm(result), from, asmjit::imm(*immediate));
      return push_reg(ValType::kV128, result);
    }
    const auto mask = std::bit_cast<std::array<uint64_t, 2>>(lanes);
    return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VP(shufb), a, constant16(mask[0], mask[1])));
  }
  if (const auto interleave = as_interleaving(lanes))
    return push_reg(ValType::kV128, vector_binary(*interleave, a, b));
  if (const auto bytes = as_byte_shift(lanes)) {
    const asmjit::Operand low = vector_operand(a);
    RegId result;
    if (features_.avx) {
      const RegId high = use(b);
      result = owned(b) ? b.reg : result_like(a, true);
      a_.emit(Inst::kIdVpalignr, xmm(result), xmm(high), low, asmjit::imm(*bytes));
    } else {
      result = own(b);
      a_.emit(Inst::kIdPalignr, xmm(result), low, asmjit::imm(*bytes));
    }
    return push_reg(ValType::kV128, result);
  }
  // Each operand's lanes to their places, zeros elsewhere.
  Lanes of_a, of_b;
  for (size_t i = 0; i < 16; ++i) {
    of_a[i] = lanes[i] < 16 ? lanes[i] : 0x80;
    of_b[i] = lanes[i] < 16 ? 0x80 : static_cast<uint8_t>(lanes[i] - 16);
  }
  const auto mask_a = std::bit_cast<std::array<uint64_t, 2>>(of_a);
  const auto mask_b = std::bit_cast<std::array<uint64_t, 2>>(of_b);
  const RegId right = use(b);
  const RegId left = features_.avx ? use(a) : own(a);
  const RegId result = features_.avx ? result_like(a, true) : left;
  vector_op(HINDSIGHT_VP(shufb), x86::xmm15, xmm(right), constant16(mask_b[0], mask_b[1]));
  vector_op(HINDSIGHT_VP(shufb), xmm(result), xmm(left), constant16(mask_a[0], mask_a[1]));
  a_.por(xmm(result), x86::xmm15);
  push_reg(ValType::kV128, result);
}

}  // namespace hindsight::jit::baseline
