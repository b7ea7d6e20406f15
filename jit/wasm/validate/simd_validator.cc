// FunctionValidator for vector instructions: prefix 0xfd, a sub-opcode in LEB128, immediates.
#include <fmt/format.h>

#include <array>

#include "jit/wasm/validate/function_validator.h"

namespace hindsight::wasm {

namespace {

constexpr uint32_t kFirstRelaxed = 0x100;

struct SimdSignature {
  bool known = false;
  ImmKind imm = ImmKind::kNone;
  uint8_t param_count = 0;
  ValType params[3] = {};
  bool has_result = false;
  ValType result = ValType::kV128;
};

constexpr ValType simd_type_of_letter(char letter) {
  switch (letter) {
    case 'i':
      return ValType::kI32;
    case 'I':
      return ValType::kI64;
    case 'f':
      return ValType::kF32;
    case 'F':
      return ValType::kF64;
    default:
      return ValType::kV128;
  }
}

constexpr std::array<SimdSignature, 512> make_simd_signatures() {
  std::array<SimdSignature, 512> all{};
  const auto add = [&](uint16_t code, ImmKind imm, const char* text) {
    SimdSignature& out = all[code >= kFirstRelaxedSimdCode ? code - kFirstRelaxedSimdCode + kFirstRelaxed
                                                           : code - kFirstSimdCode];
    out.known = true;
    out.imm = imm;
    for (; *text != ':'; ++text) out.params[out.param_count++] = simd_type_of_letter(*text);
    out.has_result = text[1] != '\0';
    if (out.has_result) out.result = simd_type_of_letter(text[1]);
  };
#define HINDSIGHT_ADD(name, code, text, imm, signature) add(code, ImmKind::imm, signature);
  HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return all;
}

constexpr std::array<SimdSignature, 512> kSimdSignatures = make_simd_signatures();

// How many lanes an instruction with a lane number chooses from.
uint32_t lanes_of(Opcode opcode) {
  if (opcode >= Opcode::kV128Load8Lane && opcode <= Opcode::kV128Store64Lane)
    return 16 >> simd_access_log2(opcode);
  if (opcode <= Opcode::kI8x16ReplaceLane) return 16;
  if (opcode <= Opcode::kI16x8ReplaceLane) return 8;
  if (opcode <= Opcode::kI32x4ReplaceLane) return 4;
  if (opcode <= Opcode::kI64x2ReplaceLane) return 2;
  return opcode <= Opcode::kF32x4ReplaceLane ? 4 : 2;
}

}  // namespace

bool FunctionValidator::lane(uint32_t lanes) {
  const uint32_t at = reader_.offset();
  uint8_t index = 0;
  if (!reader_.u8(index)) return false;
  if (index >= lanes)
    return reader_.fail(at, fmt::format("invalid lane index {}: it must be below {}", index, lanes));
  return true;
}

bool FunctionValidator::simd() {
  uint32_t sub = 0;
  if (!reader_.u32(sub)) return false;
  if (sub >= kSimdSignatures.size() || !kSimdSignatures[sub].known)
    return fail(fmt::format("illegal opcode 0xfd 0x{:02x}", sub));
  const SimdSignature& signature = kSimdSignatures[sub];
  const auto opcode =
      static_cast<Opcode>(sub < kFirstRelaxed ? kFirstSimdCode + sub : kFirstRelaxedSimdCode + (sub & 0xff));
  const MemoryType* memory_type = nullptr;
  switch (signature.imm) {
    case ImmKind::kMemArg:
      if (!memory_argument(simd_access_log2(opcode), memory_type)) return false;
      break;
    case ImmKind::kMemArgLane:
      if (!memory_argument(simd_access_log2(opcode), memory_type) || !lane(lanes_of(opcode))) return false;
      break;
    case ImmKind::kLane:
      if (!lane(lanes_of(opcode))) return false;
      break;
    case ImmKind::kShuffle:
      for (int i = 0; i < 16; ++i)
        if (!lane(32)) return false;
      break;
    case ImmKind::kV128: {
      uint64_t half = 0;
      if (!reader_.f64(half) || !reader_.f64(half)) return false;
      break;
    }
    default:
      break;
  }
  for (unsigned i = signature.param_count; i-- > 0;)  // the first operand of an access is its address
    if (!pop(i == 0 && memory_type != nullptr ? memory_type->address() : signature.params[i])) return false;
  if (!signature.has_result) return true;
  if (signature.result == ValType::kV128) uses_v128_ = true;
  return push(signature.result);
}

}  // namespace hindsight::wasm
