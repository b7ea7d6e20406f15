#include "feedback/lwp/emulation/xop_decoder.h"

#include <algorithm>

namespace hindsight::lwp {
namespace {

constexpr uint8_t kXop = 0x8F;
constexpr uint8_t kOpcode = 0x12;
constexpr unsigned kMapControlBlock = 0x09;  // LLWPCB, SLWPCB
constexpr unsigned kMapEvents = 0x0A;        // LWPINS, LWPVAL

constexpr RegisterNumber kSp = 4, kBp = 5, kSi = 6, kDi = 7, kBx = 3;

// Bytes one after the other; a read past the end gives 0 and is remembered, so that a decoder checks once.
class CodeCursor {
 public:
  explicit CodeCursor(std::span<const std::byte> bytes)
      : bytes_(bytes.first(std::min(bytes.size(), kMaxInstructionBytes))) {}

  uint8_t byte() {
    if (at_ == bytes_.size()) {
      cut_off_ = true;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  // Little endian, sign-extended.
  int32_t number(unsigned size) {
    uint32_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= uint32_t{byte()} << (8 * i);
    const unsigned unused = 32 - 8 * size;
    return size == 0 ? 0 : static_cast<int32_t>(value << unused) >> unused;
  }
  bool cut_off() const { return cut_off_; }
  uint8_t position() const { return static_cast<uint8_t>(at_); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool cut_off_ = false;
};

struct Prefixes {
  Segment segment = Segment::kFlat;
  bool address_size = false;
};

// Takes the prefixes that XOP allows; gives the first byte that is none of them. 66, F2, F3 and F0 are #UD
// before XOP: they are not taken, and no XOP instruction begins with them.
uint8_t skip_prefixes(CodeCursor& in, CodeWidth width, Prefixes& prefixes) {
  bool rex = false;
  for (;;) {
    const uint8_t byte = in.byte();
    switch (byte) {
      case 0x26:
      case 0x2E:
      case 0x36:
      case 0x3E:
        // 64-bit code ignores these four, also after an FS or GS; in 32-bit code the last one counts.
        if (width == CodeWidth::k32) prefixes.segment = Segment::kFlat;
        break;
      case 0x64:
        prefixes.segment = Segment::kFs;
        break;
      case 0x65:
        prefixes.segment = Segment::kGs;
        break;
      case 0x67:
        prefixes.address_size = true;
        break;
      default:
        // A REX prefix right before XOP is #UD; one that other prefixes follow is ignored, as before any
        // opcode.
        if (width != CodeWidth::k64 || byte >> 4 != 4) return rex ? 0 : byte;
        rex = true;
        continue;
    }
    rex = false;
  }
}

// The three bytes of XOP as fields, inverted ones turned right.
struct Xop {
  unsigned extend_index, extend_base;  // 0 or 8, to be added to a register's number
  unsigned map, vvvv, vector_length, implied_prefix;
  bool w;
};

Xop read_xop(CodeCursor& in) {
  const uint8_t p1 = in.byte();
  const uint8_t p2 = in.byte();
  return {.extend_index = (p1 & 0x40) ? 0u : 8u,
          .extend_base = (p1 & 0x20) ? 0u : 8u,
          .map = p1 & 0x1Fu,
          .vvvv = (~p2 >> 3) & 0xFu,
          .vector_length = (p2 >> 2) & 1u,
          .implied_prefix = p2 & 3u,
          .w = (p2 & 0x80) != 0};
}

MemoryOperand read_memory_16(CodeCursor& in, unsigned mod, unsigned rm) {
  struct Form {
    RegisterNumber base, index;
  };
  static constexpr Form kForms[8] = {{kBx, kSi},         {kBx, kDi},         {kBp, kSi},
                                     {kBp, kDi},         {kSi, kNoRegister}, {kDi, kNoRegister},
                                     {kBp, kNoRegister}, {kBx, kNoRegister}};
  MemoryOperand out;
  out.address_bits = 16;
  if (mod == 0 && rm == 6) {
    out.displacement = in.number(2);
    return out;
  }
  out.base = kForms[rm].base;
  out.index = kForms[rm].index;
  out.displacement = in.number(mod);  // 0, 1 or 2 bytes
  return out;
}

MemoryOperand read_memory(CodeCursor& in, unsigned mod, unsigned rm, const Xop& xop, CodeWidth width) {
  MemoryOperand out;
  // mod 0: no displacement, but for two forms without a base; mod 1: a byte; mod 2: four.
  unsigned displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (rm == kSp) {  // SIB; not extended: also r12 needs one
    const uint8_t sib = in.byte();
    const unsigned index = ((sib >> 3) & 7u) + xop.extend_index;
    if (index != kSp) {
      out.index = static_cast<RegisterNumber>(index);
      out.scale = static_cast<uint8_t>(1u << (sib >> 6));
    }
    if ((sib & 7) == kBp && mod == 0) {
      displacement_bytes = 4;
    } else {
      out.base = static_cast<RegisterNumber>((sib & 7) + xop.extend_base);
    }
  } else if (rm == kBp && mod == 0) {
    displacement_bytes = 4;
    out.ip_relative = width == CodeWidth::k64;
  } else {
    out.base = static_cast<RegisterNumber>(rm + xop.extend_base);
  }
  out.displacement = in.number(displacement_bytes);
  return out;
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kLlwpcb:
      return "llwpcb";
    case Operation::kSlwpcb:
      return "slwpcb";
    case Operation::kLwpins:
      return "lwpins";
    case Operation::kLwpval:
      return "lwpval";
  }
  return "?";
}

std::optional<Instruction> decode_lwp(std::span<const std::byte> code, CodeWidth width) {
  CodeCursor in(code);
  Prefixes prefixes;
  if (skip_prefixes(in, width, prefixes) != kXop) return std::nullopt;
  // With a map below 8 these bytes are POP r/m; neither map of ours is.
  Xop xop = read_xop(in);
  const bool events = xop.map == kMapEvents;
  if (!events && xop.map != kMapControlBlock) return std::nullopt;
  if (xop.vector_length != 0 || xop.implied_prefix != 0 || in.byte() != kOpcode) return std::nullopt;
  if (width == CodeWidth::k32) {
    // There are eight registers of 32 bits: what would name another is not looked at.
    xop.extend_index = xop.extend_base = 0;
    xop.w = false;
  }

  const uint8_t modrm = in.byte();
  const unsigned mod = modrm >> 6, reg = (modrm >> 3) & 7u, rm = modrm & 7u;
  if (reg > 1)
    return std::nullopt;  // R' extends reg where it names a register; here it is part of the opcode

  Instruction out;
  out.operand_bits = xop.w ? 64 : 32;
  if (events) {
    out.operation = reg == 0 ? Operation::kLwpins : Operation::kLwpval;
    out.first = static_cast<RegisterNumber>(width == CodeWidth::k32 ? xop.vvvv & 7u : xop.vvvv);
  } else {
    out.operation = reg == 0 ? Operation::kLlwpcb : Operation::kSlwpcb;
    if (xop.vvvv != 0 || mod != 3) return std::nullopt;
  }
  if (mod == 3) {
    out.second = static_cast<RegisterNumber>(rm + xop.extend_base);
  } else if (width == CodeWidth::k32 && prefixes.address_size) {
    out.memory = read_memory_16(in, mod, rm);
  } else {
    out.memory = read_memory(in, mod, rm, xop, width);
    const bool narrow = width == CodeWidth::k32 || prefixes.address_size;
    out.memory->address_bits = narrow ? 32 : 64;
  }
  if (out.memory) out.memory->segment = prefixes.segment;
  if (events) out.immediate = static_cast<uint32_t>(in.number(4));
  if (in.cut_off()) return std::nullopt;
  out.length = in.position();
  return out;
}

}  // namespace hindsight::lwp
