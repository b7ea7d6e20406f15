#include "jit/baseline/operators/comparison.h"

#include <cassert>
#include <cmath>
#include <cstring>

namespace hindsight::jit::baseline {
namespace {

constexpr uint8_t kCarry = 1, kParity = 2, kZero = 4, kSign = 8, kOverflow = 16;

template <typename T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
T take(const uint8_t*& at) {
  const T value = load<T>(at);
  at += sizeof value;
  return value;
}

template <typename Word>
uint8_t flags_of(Word result) {
  uint8_t flags = result == 0 ? kZero : 0;
  if (result >> (8 * sizeof(Word) - 1)) flags |= kSign;
  if (__builtin_parity(static_cast<uint8_t>(result)) == 0) flags |= kParity;
  return flags;
}

template <typename Word>
uint8_t subtract(Word a, Word b) {
  const auto difference = static_cast<Word>(a - b);
  uint8_t flags = flags_of(difference);
  if (a < b) flags |= kCarry;
  if (((a ^ b) & (a ^ difference)) >> (8 * sizeof(Word) - 1)) flags |= kOverflow;
  return flags;
}

template <typename Word>
uint8_t integer_flags(bool is_test, uint64_t a, uint64_t b) {
  const auto x = static_cast<Word>(a), y = static_cast<Word>(b);
  return is_test ? flags_of(static_cast<Word>(x & y)) : subtract(x, y);
}

template <typename Float>
uint8_t float_flags(Float a, Float b) {
  if (std::isnan(a) || std::isnan(b)) return kZero | kParity | kCarry;
  return a == b ? kZero : a < b ? kCarry : 0;
}

bool holds(uint32_t condition, uint8_t flags) {
  const bool less = ((flags & kSign) != 0) != ((flags & kOverflow) != 0);
  const bool zero = (flags & kZero) != 0;
  bool result = false;
  switch (condition >> 1) {
    case 0:
      result = (flags & kOverflow) != 0;
      break;
    case 1:
      result = (flags & kCarry) != 0;
      break;
    case 2:
      result = zero;
      break;
    case 3:
      result = zero || (flags & kCarry) != 0;
      break;
    case 4:
      result = (flags & kSign) != 0;
      break;
    case 5:
      result = (flags & kParity) != 0;
      break;
    case 6:
      result = less;
      break;
    default:
      result = less || zero;
      break;
  }
  return result != ((condition & 1) != 0);
}

// The operand bytes of one instruction. Memory is relative to rbp or to the instruction, which then ends with it.
struct Operands {
  uint32_t reg = 0;  // or the opcode's digit
  uint32_t rm = 0;   // a register, if `memory` is null
  const uint8_t* memory = nullptr;
};

Operands take_operands(const uint8_t*& at, uint32_t rex, const RegisterFile& registers) {
  const uint8_t modrm = *at++;
  Operands operands;
  operands.reg = ((modrm >> 3) & 7u) | ((rex & 4) << 1);
  operands.rm = (modrm & 7u) | ((rex & 1) << 3);
  constexpr uint32_t kFrame = 5;
  switch (modrm >> 6) {
    case 3:
      return operands;
    case 0: {  // of rm 5: relative to the instruction
      const auto distance = take<int32_t>(at);
      operands.memory = at + distance;
      break;
    }
    case 1:
      operands.memory = reinterpret_cast<const uint8_t*>(registers[kFrame]) + take<int8_t>(at);
      break;
    default:
      operands.memory = reinterpret_cast<const uint8_t*>(registers[kFrame]) + take<int32_t>(at);
      break;
  }
  assert(operands.rm == kFrame);
  return operands;
}

// The flags that the comparison at `at` leaves, which is skipped.
uint8_t take_comparison(const uint8_t*& at, const RegisterFile& registers, const VectorHalves& vectors) {
  const bool prefixed = *at == 0x66;
  if (prefixed) ++at;
  const uint32_t rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
  const bool wide = (rex & 8) != 0;
  const uint8_t opcode = *at++;
  if (opcode == 0x0f) {
    const uint8_t second = *at++;
    if (second == 0x38) ++at;  // ptest: 66 0f 38 17
    const Operands o = take_operands(at, rex, registers);
    const uint64_t* a = vectors.half[o.reg];
    if (second == 0x38) {
      const uint64_t* b = vectors.half[o.rm];
      uint8_t flags = 0;
      if (((a[0] & b[0]) | (a[1] & b[1])) == 0) flags |= kZero;
      if (((~a[0] & b[0]) | (~a[1] & b[1])) == 0) flags |= kCarry;
      return flags;
    }
    const auto* left = reinterpret_cast<const uint8_t*>(a);
    const uint8_t* right = o.memory ? o.memory : reinterpret_cast<const uint8_t*>(vectors.half[o.rm]);
    if (prefixed) return float_flags(load<double>(left), load<double>(right));
    return float_flags(load<float>(left), load<float>(right));
  }
  const Operands o = take_operands(at, rex, registers);
  const uint64_t rm = !o.memory ? registers[o.rm]
                      : wide    ? load<uint64_t>(o.memory)
                                : load<uint32_t>(o.memory);
  const bool is_test = opcode == 0x85 || opcode == 0xf7;
  uint64_t a = rm, b = 0;
  switch (opcode) {
    case 0x39:  // cmp r/m, r
    case 0x85:  // test r/m, r
      b = registers[o.reg];
      break;
    case 0x3b:  // cmp r, r/m
      a = registers[o.reg];
      b = rm;
      break;
    case 0x83:  // cmp r/m, imm8
      b = static_cast<uint64_t>(int64_t{take<int8_t>(at)});
      break;
    default:  // 81: cmp, f7: test of r/m and imm32
      b = static_cast<uint64_t>(int64_t{take<int32_t>(at)});
      break;
  }
  return wide ? integer_flags<uint64_t>(is_test, a, b) : integer_flags<uint32_t>(is_test, a, b);
}

struct Jump {
  uint32_t condition = 0;
  const uint8_t* target = nullptr;
};

Jump take_jump(const uint8_t*& at) {
  const bool is_long = *at == 0x0f;
  if (is_long) ++at;
  Jump jump;
  jump.condition = *at++ & 15u;
  const int32_t distance = is_long ? take<int32_t>(at) : take<int8_t>(at);
  jump.target = at + distance;
  return jump;
}

}  // namespace

Outcome outcome_at(const uint8_t* code, const RegisterFile& registers, const VectorHalves& vectors) {
  const uint8_t flags = take_comparison(code, registers, vectors);
  constexpr uint32_t kIfParity = 10, kIfEqual = 4;
  Jump jump = take_jump(code);
  Outcome outcome;
  if (jump.condition == kIfParity) {
    // "Equal" jumps over the jump if unordered; "not equal" jumps to the same place.
    jump = take_jump(code);
    const bool unordered = (flags & kParity) != 0;
    outcome.jumps = jump.condition == kIfEqual ? !unordered && holds(jump.condition, flags)
                                               : unordered || holds(jump.condition, flags);
  } else {
    outcome.jumps = holds(jump.condition, flags);
  }
  outcome.target = outcome.jumps ? jump.target : code;
  return outcome;
}

const uint8_t* jump_target(const uint8_t* code) {
  const bool is_long = *code++ == 0xe9;
  const int32_t distance = is_long ? take<int32_t>(code) : take<int8_t>(code);
  return code + distance;
}

}  // namespace hindsight::jit::baseline
