// The instruction forms that Emitter encodes by itself. A form is what a mnemonic has of its own; which
// operands it takes follows from its kind. Whatever does not fit (other sizes, high byte registers, segments)
// is left to asmjit.
#include <array>

#include "jit/baseline/emitter.h"

namespace hindsight::jit::baseline {

namespace {

using asmjit::RegType;
namespace Inst = x86::Inst;

enum class Kind : uint8_t {
  kNone,
  kAlu,      // opcode: the digit. r,r  r,m  m,r  r,i  m,i
  kMove,     // mov
  kTest,     // r,r  m,r  r,i
  kLea,      // r,m
  kTwoByte,  // 0f opcode: r,r  r,m
  kWiden,    // 0f opcode for bytes, the next one for halves: r,r  r,m
  kMovsxd,
  kShift,     // opcode: the digit. r,i  r,cl
  kBmiShift,  // prefix: VEX pp. r,r,r
  kUnary,     // f7 or (prefix 1) ff with the digit: r
  kSet,       // 0f opcode: r8
  kPush,
  kPop,
  kFar,    // call and jmp: ff with the digit: r  m
  kPlain,  // opcode alone; prefix: REX
  kUd2,
  kSse,        // 0f opcode: x,x  x,m
  kSseMove,    // the same, and m,x with the next opcode
  kToFloat,    // 0f opcode: x,r
  kToInteger,  // 0f opcode: r,x
  kMoveBits,   // movd, movq between the files; opcode: 1 for 64 bits
};

struct Form {
  Kind kind = Kind::kNone;
  uint8_t prefix = 0;
  uint8_t opcode = 0;
};

constexpr auto kForms = [] {
  std::array<Form, Inst::_kIdCount> forms{};
  const auto set = [&](asmjit::InstId inst, Kind kind, uint32_t opcode, uint32_t prefix = 0) {
    forms[inst] = {kind, static_cast<uint8_t>(prefix), static_cast<uint8_t>(opcode)};
  };
  set(Inst::kIdAdd, Kind::kAlu, 0);
  set(Inst::kIdOr, Kind::kAlu, 1);
  set(Inst::kIdAnd, Kind::kAlu, 4);
  set(Inst::kIdSub, Kind::kAlu, 5);
  set(Inst::kIdXor, Kind::kAlu, 6);
  set(Inst::kIdCmp, Kind::kAlu, 7);
  set(Inst::kIdMov, Kind::kMove, 0);
  set(Inst::kIdTest, Kind::kTest, 0);
  set(Inst::kIdLea, Kind::kLea, 0);
  set(Inst::kIdImul, Kind::kTwoByte, 0xaf);
  set(Inst::kIdBsf, Kind::kTwoByte, 0xbc);
  set(Inst::kIdBsr, Kind::kTwoByte, 0xbd);
  set(Inst::kIdPopcnt, Kind::kTwoByte, 0xb8, 0xf3);
  set(Inst::kIdTzcnt, Kind::kTwoByte, 0xbc, 0xf3);
  set(Inst::kIdLzcnt, Kind::kTwoByte, 0xbd, 0xf3);
  for (uint32_t cc = 0; cc < 16; ++cc) {
    set(Inst::cmovccFromCond(static_cast<x86::CondCode>(cc)), Kind::kTwoByte, 0x40 + cc);
    set(Inst::setccFromCond(static_cast<x86::CondCode>(cc)), Kind::kSet, 0x90 + cc);
  }
  // Other names of the same conditions.
  set(Inst::kIdCmovz, Kind::kTwoByte, 0x44);
  set(Inst::kIdCmovnz, Kind::kTwoByte, 0x45);
  set(Inst::kIdMovzx, Kind::kWiden, 0xb6);
  set(Inst::kIdMovsx, Kind::kWiden, 0xbe);
  set(Inst::kIdMovsxd, Kind::kMovsxd, 0x63);
  set(Inst::kIdRol, Kind::kShift, 0);
  set(Inst::kIdRor, Kind::kShift, 1);
  set(Inst::kIdShl, Kind::kShift, 4);
  set(Inst::kIdShr, Kind::kShift, 5);
  set(Inst::kIdSar, Kind::kShift, 7);
  set(Inst::kIdShlx, Kind::kBmiShift, 0xf7, 1);
  set(Inst::kIdSarx, Kind::kBmiShift, 0xf7, 2);
  set(Inst::kIdShrx, Kind::kBmiShift, 0xf7, 3);
  set(Inst::kIdNot, Kind::kUnary, 2);
  set(Inst::kIdNeg, Kind::kUnary, 3);
  set(Inst::kIdDiv, Kind::kUnary, 6);
  set(Inst::kIdIdiv, Kind::kUnary, 7);
  set(Inst::kIdInc, Kind::kUnary, 0, 1);
  set(Inst::kIdPush, Kind::kPush, 0x50);
  set(Inst::kIdPop, Kind::kPop, 0x58);
  set(Inst::kIdCall, Kind::kFar, 2);
  set(Inst::kIdJmp, Kind::kFar, 4);
  set(Inst::kIdRet, Kind::kPlain, 0xc3);
  set(Inst::kIdCdq, Kind::kPlain, 0x99);
  set(Inst::kIdCqo, Kind::kPlain, 0x99, 0x48);
  set(Inst::kIdUd2, Kind::kUd2, 0x0b);
  set(Inst::kIdMovss, Kind::kSseMove, 0x10, 0xf3);
  set(Inst::kIdMovsd, Kind::kSseMove, 0x10, 0xf2);
  set(Inst::kIdMovups, Kind::kSseMove, 0x10);
  set(Inst::kIdMovaps, Kind::kSseMove, 0x28);
  set(Inst::kIdUcomiss, Kind::kSse, 0x2e);
  set(Inst::kIdUcomisd, Kind::kSse, 0x2e, 0x66);
  set(Inst::kIdSqrtss, Kind::kSse, 0x51, 0xf3);
  set(Inst::kIdSqrtsd, Kind::kSse, 0x51, 0xf2);
  set(Inst::kIdAndps, Kind::kSse, 0x54);
  set(Inst::kIdAndnps, Kind::kSse, 0x55);
  set(Inst::kIdOrps, Kind::kSse, 0x56);
  set(Inst::kIdXorps, Kind::kSse, 0x57);
  set(Inst::kIdAddss, Kind::kSse, 0x58, 0xf3);
  set(Inst::kIdAddsd, Kind::kSse, 0x58, 0xf2);
  set(Inst::kIdMulss, Kind::kSse, 0x59, 0xf3);
  set(Inst::kIdMulsd, Kind::kSse, 0x59, 0xf2);
  set(Inst::kIdCvtss2sd, Kind::kSse, 0x5a, 0xf3);
  set(Inst::kIdCvtsd2ss, Kind::kSse, 0x5a, 0xf2);
  set(Inst::kIdSubss, Kind::kSse, 0x5c, 0xf3);
  set(Inst::kIdSubsd, Kind::kSse, 0x5c, 0xf2);
  set(Inst::kIdDivss, Kind::kSse, 0x5e, 0xf3);
  set(Inst::kIdDivsd, Kind::kSse, 0x5e, 0xf2);
  set(Inst::kIdCvtsi2ss, Kind::kToFloat, 0x2a, 0xf3);
  set(Inst::kIdCvtsi2sd, Kind::kToFloat, 0x2a, 0xf2);
  set(Inst::kIdCvttss2si, Kind::kToInteger, 0x2c, 0xf3);
  set(Inst::kIdCvttsd2si, Kind::kToInteger, 0x2c, 0xf2);
  set(Inst::kIdMovd, Kind::kMoveBits, 0);
  set(Inst::kIdMovq, Kind::kMoveBits, 1);
  return forms;
}();

bool is32(const x86::Gp& r) {
  return r.type() == RegType::kX86_Gpd;
}
bool is64(const x86::Gp& r) {
  return r.type() == RegType::kX86_Gpq;
}
bool is8(const x86::Gp& r) {
  return r.type() == RegType::kX86_GpbLo;
}
bool is16(const x86::Gp& r) {
  return r.type() == RegType::kX86_Gpw;
}
// Both of 32 or both of 64 bits.
bool alike(const x86::Gp& a, const x86::Gp& b) {
  return a.type() == b.type() && (is32(a) || is64(a));
}
// An immediate of an instruction of 32 bits, given signed or unsigned.
bool is_word(int64_t v) {
  return v >= INT32_MIN && v <= int64_t{UINT32_MAX};
}
// Registers 4 to 7 as bytes are spl to dil only with a REX prefix.
bool wants_rex(const x86::Gp& byte) {
  return byte.id() >= 4;
}

}  // namespace

// Bytes that an instruction may have are always written, and passed over if it has them. Which ones it has
// changes from one instruction to the next. A jump around each costs more in mispredictions than the bytes
// do. room() left space. Opcodes beyond one byte come with their escape: 0x0f10.
static uint8_t* put_opcode(uint8_t* at, uint32_t prefix, uint32_t rex, bool force_rex, uint32_t opcode) {
  *at = static_cast<uint8_t>(prefix);
  at += prefix != 0;
  *at = static_cast<uint8_t>(0x40 | rex);
  at += (rex != 0) | force_rex;
  *at = static_cast<uint8_t>(opcode >> 8);
  at += opcode > 0xff;
  *at = static_cast<uint8_t>(opcode);
  return at + 1;
}

void Emitter::op_reg(uint32_t prefix, bool wide, uint32_t opcode, uint32_t reg, uint32_t rm, bool force_rex) {
  room();
  const uint32_t rex = (wide ? 8u : 0u) | ((reg & 8) >> 1) | (rm >> 3);
  uint8_t* const at = put_opcode(at_, prefix, rex, force_rex, opcode);
  *at = static_cast<uint8_t>(0xc0 | (reg & 7) << 3 | (rm & 7));
  at_ = at + 1;
}

void Emitter::op_mem(uint32_t prefix, bool wide, uint32_t opcode, uint32_t reg, const x86::Mem& mem,
                     uint32_t trailing, bool force_rex) {
  room();
  const uint32_t field = (reg & 7) << 3;
  const int32_t disp = mem.offsetLo32();
  if (mem.baseType() == RegType::kX86_Rip) [[unlikely]] {
    at_ = put_opcode(at_, prefix, (wide ? 8u : 0u) | ((reg & 8) >> 1), force_rex, opcode);
    *at_++ = static_cast<uint8_t>(field | 5);
    data_uses_.push_back({static_cast<uint32_t>(offset()), static_cast<uint32_t>(disp), trailing});
    return put32(0);
  }
  const uint32_t base = mem.baseId();
  const uint32_t index = mem.hasIndex() ? mem.indexId() : 4;  // 4: none
  const uint32_t rex = (wide ? 8u : 0u) | ((reg & 8) >> 1) | ((index & 8) >> 2) | (base >> 3);
  uint8_t* at = put_opcode(at_, prefix, rex, force_rex, opcode);
  const bool none = (disp == 0) & ((base & 7) != 5);
  const bool near = asmjit::Support::isInt8(disp);
  const uint32_t mode = none ? 0 : near ? 0x40 : 0x80;
  const bool with_sib = (index != 4) | ((base & 7) == 4);
  at[0] = static_cast<uint8_t>(mode | field | (with_sib ? 4 : base & 7));
  at[1] = static_cast<uint8_t>(mem.shift() << 6 | (index & 7) << 3 | (base & 7));
  at += 1 + with_sib;
  std::memcpy(at, &disp, sizeof disp);
  at_ = at + (none ? 0 : near ? 1 : 4);
}

void Emitter::immediate(int64_t value, uint32_t bytes) {
  std::memcpy(at_, &value, 8);  // room() left space
  at_ += bytes;
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst) {
  const Form form = kForms[inst];
  room();
  if (form.kind == Kind::kPlain) {
    if (form.prefix) *at_++ = form.prefix;
    *at_++ = form.opcode;
    return asmjit::kErrorOk;
  }
  if (form.kind == Kind::kUd2) {
    *at_++ = 0x0f;
    *at_++ = 0x0b;
    return asmjit::kErrorOk;
  }
  return by_asmjit(inst, nullptr, 0);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a) {
  const Form form = kForms[inst];
  switch (form.kind) {
    case Kind::kUnary:
      if (!is32(a) && !is64(a)) break;
      op_reg(0, is64(a), form.prefix ? 0xff : 0xf7, form.opcode, a.id());
      return asmjit::kErrorOk;
    case Kind::kSet:
      if (!is8(a)) break;
      op_reg(0, false, 0x0f00u | form.opcode, 0, a.id(), wants_rex(a));
      return asmjit::kErrorOk;
    case Kind::kPush:
    case Kind::kPop:
      if (!is64(a)) break;
      room();
      if (a.id() >= 8) *at_++ = 0x41;
      *at_++ = static_cast<uint8_t>(form.opcode | (a.id() & 7));
      return asmjit::kErrorOk;
    case Kind::kFar:
      if (!is64(a)) break;
      op_reg(0, false, 0xff, form.opcode, a.id());
      return asmjit::kErrorOk;
    default:
      break;
  }
  return by_asmjit(inst, &a, 1);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Mem& a) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kFar && plain(a)) {
    op_mem(0, false, 0xff, form.opcode, a);
    return asmjit::kErrorOk;
  }
  return by_asmjit(inst, &a, 1);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b) {
  const Form form = kForms[inst];
  switch (form.kind) {
    case Kind::kAlu:
      if (!alike(a, b)) break;
      op_reg(0, is64(a), form.opcode << 3 | 1u, b.id(), a.id());
      return asmjit::kErrorOk;
    case Kind::kMove:
      if (!alike(a, b)) break;
      op_reg(0, is64(a), 0x89, b.id(), a.id());
      return asmjit::kErrorOk;
    case Kind::kTest:
      if (!alike(a, b)) break;
      op_reg(0, is64(a), 0x85, b.id(), a.id());
      return asmjit::kErrorOk;
    case Kind::kTwoByte:
      if (!alike(a, b)) break;
      op_reg(form.prefix, is64(a), 0x0f00u | form.opcode, a.id(), b.id());
      return asmjit::kErrorOk;
    case Kind::kWiden:
      if ((!is32(a) && !is64(a)) || (!is8(b) && !is16(b))) break;
      op_reg(0, is64(a), 0x0f00u | (form.opcode + (is16(b) ? 1u : 0u)), a.id(), b.id(),
             is8(b) && wants_rex(b));
      return asmjit::kErrorOk;
    case Kind::kMovsxd:
      if (!is64(a) || !is32(b)) break;
      op_reg(0, true, 0x63, a.id(), b.id());
      return asmjit::kErrorOk;
    case Kind::kShift:
      if ((!is32(a) && !is64(a)) || !is8(b) || b.id() != x86::Gp::kIdCx) break;
      op_reg(0, is64(a), 0xd3, form.opcode, a.id());
      return asmjit::kErrorOk;
    default:
      break;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Mem& b) {
  const Form form = kForms[inst];
  if (plain(b) && (is32(a) || is64(a))) {
    switch (form.kind) {
      case Kind::kAlu:
        op_mem(0, is64(a), form.opcode << 3 | 3u, a.id(), b);
        return asmjit::kErrorOk;
      case Kind::kMove:
        op_mem(0, is64(a), 0x8b, a.id(), b);
        return asmjit::kErrorOk;
      case Kind::kLea:
        op_mem(0, is64(a), 0x8d, a.id(), b);
        return asmjit::kErrorOk;
      case Kind::kTwoByte:
        op_mem(form.prefix, is64(a), 0x0f00u | form.opcode, a.id(), b);
        return asmjit::kErrorOk;
      case Kind::kWiden:
        if (b.size() != 1 && b.size() != 2) break;
        op_mem(0, is64(a), 0x0f00u | (form.opcode + (b.size() == 2 ? 1u : 0u)), a.id(), b);
        return asmjit::kErrorOk;
      case Kind::kMovsxd:
        if (!is64(a)) break;
        op_mem(0, true, 0x63, a.id(), b);
        return asmjit::kErrorOk;
      default:
        break;
    }
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Mem& a, const x86::Gp& b) {
  const Form form = kForms[inst];
  if (plain(a)) {
    const bool whole = is32(b) || is64(b);
    switch (form.kind) {
      case Kind::kAlu:
        if (!whole) break;
        op_mem(0, is64(b), form.opcode << 3 | 1u, b.id(), a);
        return asmjit::kErrorOk;
      case Kind::kTest:
        if (!whole) break;
        op_mem(0, is64(b), 0x85, b.id(), a);
        return asmjit::kErrorOk;
      case Kind::kMove:
        if (whole)
          op_mem(0, is64(b), 0x89, b.id(), a);
        else if (is16(b))
          op_mem(0x66, false, 0x89, b.id(), a);
        else if (is8(b))
          op_mem(0, false, 0x88, b.id(), a, 0, wants_rex(b));
        else
          break;
        return asmjit::kErrorOk;
      default:
        break;
    }
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const asmjit::Imm& b) {
  const Form form = kForms[inst];
  const int64_t given = b.value();
  const bool wide = is64(a);
  if (wide || is32(a)) {
    const bool fits = wide ? asmjit::Support::isInt32(given) : is_word(given);
    const int64_t value = wide ? given : static_cast<int32_t>(given);
    switch (form.kind) {
      case Kind::kAlu:
        if (!fits) break;
        op_reg(0, wide, asmjit::Support::isInt8(value) ? 0x83 : 0x81, form.opcode, a.id());
        immediate(value, asmjit::Support::isInt8(value) ? 1 : 4);
        return asmjit::kErrorOk;
      case Kind::kTest:
        if (!fits) break;
        op_reg(0, wide, 0xf7, 0, a.id());
        immediate(value, 4);
        return asmjit::kErrorOk;
      case Kind::kShift: {
        const auto count = static_cast<uint32_t>(given) & (wide ? 63 : 31);
        op_reg(0, wide, count == 1 ? 0xd1 : 0xc1, form.opcode, a.id());
        if (count != 1) immediate(count, 1);
        return asmjit::kErrorOk;
      }
      case Kind::kMove: {
        if (wide && !(given >= 0 && given <= int64_t{UINT32_MAX}) && asmjit::Support::isInt32(given)) {
          op_reg(0, true, 0xc7, 0, a.id());
          immediate(given, 4);
          return asmjit::kErrorOk;
        }
        if (!wide && !is_word(given)) break;
        const bool long_form = wide && !(given >= 0 && given <= int64_t{UINT32_MAX});
        room();
        const uint32_t rex = (long_form ? 8u : 0u) | (a.id() >> 3);
        if (rex) *at_++ = static_cast<uint8_t>(0x40 | rex);
        *at_++ = static_cast<uint8_t>(0xb8 | (a.id() & 7));
        immediate(given, long_form ? 8 : 4);
        return asmjit::kErrorOk;
      }
      default:
        break;
    }
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Mem& a, const asmjit::Imm& b) {
  const Form form = kForms[inst];
  const uint32_t size = a.size();
  const int64_t given = b.value();
  if (plain(a)) {
    const bool wide = size == 8;
    const bool fits = wide ? asmjit::Support::isInt32(given) : is_word(given);
    const int64_t value = wide ? given : static_cast<int32_t>(given);
    if (form.kind == Kind::kAlu && (size == 4 || wide) && fits) {
      op_mem(0, wide, asmjit::Support::isInt8(value) ? 0x83 : 0x81, form.opcode, a,
             asmjit::Support::isInt8(value) ? 1 : 4);
      immediate(value, asmjit::Support::isInt8(value) ? 1 : 4);
      return asmjit::kErrorOk;
    }
    if (form.kind == Kind::kMove && size != 0 && size <= 8 && fits) {
      const uint32_t bytes = size == 8 ? 4 : size;
      op_mem(size == 2 ? 0x66 : 0, wide, size == 1 ? 0xc6 : 0xc7, 0, a, bytes);
      immediate(value, bytes);
      return asmjit::kErrorOk;
    }
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Xmm& b) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kSse || form.kind == Kind::kSseMove) {
    op_reg(form.prefix, false, 0x0f00u | form.opcode, a.id(), b.id());
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Mem& b) {
  const Form form = kForms[inst];
  if ((form.kind == Kind::kSse || form.kind == Kind::kSseMove) && plain(b)) {
    op_mem(form.prefix, false, 0x0f00u | form.opcode, a.id(), b);
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Mem& a, const x86::Xmm& b) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kSseMove && plain(a)) {
    op_mem(form.prefix, false, 0x0f00u | (form.opcode + 1u), b.id(), a);
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Xmm& a, const x86::Gp& b) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kToFloat && (is32(b) || is64(b))) {
    op_reg(form.prefix, is64(b), 0x0f00u | form.opcode, a.id(), b.id());
    return asmjit::kErrorOk;
  }
  if (form.kind == Kind::kMoveBits && (form.opcode ? is64(b) : is32(b))) {
    op_reg(0x66, form.opcode != 0, 0x0f6e, a.id(), b.id());
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Xmm& b) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kToInteger && (is32(a) || is64(a))) {
    op_reg(form.prefix, is64(a), 0x0f00u | form.opcode, a.id(), b.id());
    return asmjit::kErrorOk;
  }
  if (form.kind == Kind::kMoveBits && (form.opcode ? is64(a) : is32(a))) {
    op_reg(0x66, form.opcode != 0, 0x0f7e, b.id(), a.id());
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b, const asmjit::Imm& c) {
  const int64_t value = is64(a) ? c.value() : static_cast<int32_t>(c.value());
  if (inst == Inst::kIdImul && alike(a, b) &&
      (is64(a) ? asmjit::Support::isInt32(value) : is_word(c.value()))) {
    op_reg(0, is64(a), asmjit::Support::isInt8(value) ? 0x6b : 0x69, a.id(), b.id());
    immediate(value, asmjit::Support::isInt8(value) ? 1 : 4);
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b, c};
  return by_asmjit(inst, operands, 3);
}

asmjit::Error Emitter::_emitI(asmjit::InstId inst, const x86::Gp& a, const x86::Gp& b, const x86::Gp& c) {
  const Form form = kForms[inst];
  if (form.kind == Kind::kBmiShift && alike(a, b) && alike(a, c)) {
    room();
    // VEX in three bytes: R, X and B inverted; map 0f38; W, vvvv inverted, pp.
    *at_++ = 0xc4;
    *at_++ = static_cast<uint8_t>((a.id() >= 8 ? 0 : 0x80) | 0x40 | (b.id() >= 8 ? 0 : 0x20) | 2);
    *at_++ = static_cast<uint8_t>((is64(a) ? 0x80 : 0) | (~c.id() & 15) << 3 | form.prefix);
    *at_++ = form.opcode;
    *at_++ = static_cast<uint8_t>(0xc0 | (a.id() & 7) << 3 | (b.id() & 7));
    return asmjit::kErrorOk;
  }
  const asmjit::Operand_ operands[] = {a, b, c};
  return by_asmjit(inst, operands, 3);
}

// Operands that are known at run time only.
asmjit::Error Emitter::_emitI(asmjit::InstId inst, const asmjit::Operand_& a, const asmjit::Operand_& b) {
  const auto is_gp = [](const asmjit::Operand_& o) { return o.isReg() && o.as<x86::Reg>().isGp(); };
  const auto is_xmm = [](const asmjit::Operand_& o) { return o.isReg() && o.as<x86::Reg>().isXmm(); };
  if (is_gp(a)) {
    const auto& first = a.as<x86::Gp>();
    if (is_gp(b)) return _emitI(inst, first, b.as<x86::Gp>());
    if (b.isImm()) return _emitI(inst, first, b.as<asmjit::Imm>());
    if (b.isMem()) return _emitI(inst, first, b.as<x86::Mem>());
    if (is_xmm(b)) return _emitI(inst, first, b.as<x86::Xmm>());
  } else if (is_xmm(a)) {
    const auto& first = a.as<x86::Xmm>();
    if (is_xmm(b)) return _emitI(inst, first, b.as<x86::Xmm>());
    if (b.isMem()) return _emitI(inst, first, b.as<x86::Mem>());
    if (is_gp(b)) return _emitI(inst, first, b.as<x86::Gp>());
  } else if (a.isMem()) {
    const auto& first = a.as<x86::Mem>();
    if (is_gp(b)) return _emitI(inst, first, b.as<x86::Gp>());
    if (b.isImm()) return _emitI(inst, first, b.as<asmjit::Imm>());
    if (is_xmm(b)) return _emitI(inst, first, b.as<x86::Xmm>());
  }
  const asmjit::Operand_ operands[] = {a, b};
  return by_asmjit(inst, operands, 2);
}

}  // namespace hindsight::jit::baseline
