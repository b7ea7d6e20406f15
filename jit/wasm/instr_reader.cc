#include "jit/wasm/instr_reader.h"

#include <array>
#include <cstring>

namespace hindsight::wasm {

namespace {

// Immediate kinds by opcode byte, so that decoding is one lookup and one switch.
constexpr std::array<ImmKind, 256> make_plain_kinds() {
  std::array<ImmKind, 256> out{};
#define HINDSIGHT_ADD(name, code, text, imm, signature) \
  if (code < 256) out[code & 0xff] = ImmKind::imm;
  HINDSIGHT_WASM_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return out;
}

constexpr std::array<ImmKind, 32> make_prefixed_kinds() {
  std::array<ImmKind, 32> out{};
#define HINDSIGHT_ADD(name, code, text, imm, signature) \
  if (code >> 8 == 0xfc) out[code & 0x1f] = ImmKind::imm;
  HINDSIGHT_WASM_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return out;
}

// By sub-opcode, relaxed ones from 256 on.
constexpr std::array<ImmKind, 512> make_simd_kinds() {
  std::array<ImmKind, 512> out{};
#define HINDSIGHT_ADD(name, code, text, imm, signature) \
  out[(code >= kFirstRelaxedSimdCode ? 0x100 : 0) | (code & 0xff)] = ImmKind::imm;
  HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return out;
}

constexpr auto kPlainKinds = make_plain_kinds();
constexpr auto kPrefixedKinds = make_prefixed_kinds();
constexpr auto kSimdKinds = make_simd_kinds();

// Invariant: the validator has read these same bytes, so every LEB128 number ends and fits.
inline uint32_t read_u32(const uint8_t*& p) {
  uint32_t byte = *p++;
  if (byte < 0x80) [[likely]]
    return byte;
  uint32_t value = byte & 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    byte = *p++;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline uint64_t read_u64(const uint8_t*& p) {
  uint64_t byte = *p++;
  if (byte < 0x80) [[likely]]
    return byte;
  uint64_t value = byte & 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    byte = *p++;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline int64_t read_signed(const uint8_t*& p) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte;
  do {
    byte = *p++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
  } while (byte & 0x80);
  if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
  return static_cast<int64_t>(value);
}

}  // namespace

constinit const std::array<InstrReader::Quick, 256> InstrReader::kQuick = [] {
  std::array<Quick, 256> out{};
  const auto quick = [](ImmKind kind) -> Quick {
    switch (kind) {
      case ImmKind::kNone:
        return {.length = 1};
      case ImmKind::kLabel:
      case ImmKind::kFunc:
      case ImmKind::kLocal:
      case ImmKind::kGlobal:
        return {.length = 2, .more_in_first = 0x80, .index_mask = 0x7f};
      case ImmKind::kMemArg:
        static_assert((kMemArgHasMemory & (kMemArgHasMemory - 1)) == 0);
        return {.length = 3, .more_in_first = 0x80 | kMemArgHasMemory, .more_in_second = 0x80};
      default:
        return {.never = 1};  // with masks of zero no bits are equal to this
    }
  };
  for (uint32_t code = 0; code < 256; ++code)
    out[code] = code < 0xfc ? quick(kPlainKinds[code]) : Quick{.never = 1};
  return out;
}();

InstrReader::InstrReader(const Module& module, const FunctionBody& body)
    : module_(module),
      start_(module.bytes.data()),
      pos_(start_ + body.begin.value),
      end_(start_ + body.end.value) {}

void InstrReader::read_catches() {
  catches_.resize(read_u32(pos_));
  for (CatchClause& clause : catches_) {
    clause.kind = *pos_++;
    clause.tag = clause.catches_all() ? 0 : read_u32(pos_);
    clause.label = read_u32(pos_);
  }
}

// A nullable reference to what the next bytes name.
ValType InstrReader::read_heap_type() {
  if ((*pos_ & 0xc0) == 0x40) return static_cast<ValType>(*pos_++);
  return typed_ref(module_.canonical_types[static_cast<size_t>(read_signed(pos_))]);
}

ValType InstrReader::read_value_type() {
  const uint8_t byte = *pos_++;
  if (byte == kNullableRef) return read_heap_type();
  if (byte == kNonNullRef) return non_null(read_heap_type());
  return static_cast<ValType>(byte);
}

void InstrReader::next_of_any_kind(Instr& instr) {
  const uint8_t code = *pos_++;
  ImmKind kind;
  if (code < 0xfc) [[likely]] {
    instr.opcode = static_cast<Opcode>(code);
    kind = kPlainKinds[code];
  } else if (code == 0xfe) {
    instr.opcode = static_cast<Opcode>(kAtomicPrefix | read_u32(pos_));
    kind = instr.opcode == Opcode::kAtomicFence ? ImmKind::kFence : ImmKind::kMemArg;
  } else if (code == kSimdPrefix) {
    const uint32_t sub = read_u32(pos_);
    instr.opcode = static_cast<Opcode>((sub < 0x100 ? kFirstSimdCode : kFirstRelaxedSimdCode) | (sub & 0xff));
    kind = kSimdKinds[sub & 0x1ff];
  } else {
    const uint32_t sub = read_u32(pos_);
    instr.opcode = static_cast<Opcode>(kFirstPrefixedCode | sub);
    kind = kPrefixedKinds[sub & 0x1f];
  }
  switch (kind) {
    case ImmKind::kNone:
      break;
    case ImmKind::kBlock:
    case ImmKind::kTryTable:
      instr.block = {};
      if (*pos_ == 0x40) {
        ++pos_;
      } else if ((*pos_ & 0xc0) == 0x40) {
        instr.block.single_result = read_value_type();
      } else {
        instr.block.func_type = &module_.types[static_cast<size_t>(read_signed(pos_))];
      }
      if (kind == ImmKind::kTryTable) read_catches();
      break;
    case ImmKind::kLabel:
    case ImmKind::kFunc:
    case ImmKind::kLocal:
    case ImmKind::kGlobal:
    case ImmKind::kTable:
    case ImmKind::kMemory:
    case ImmKind::kData:
    case ImmKind::kElem:
    case ImmKind::kTag:
    case ImmKind::kType:
      instr.index = read_u32(pos_);
      break;
    case ImmKind::kBrTable:
      instr.target_count = read_u32(pos_);
      br_targets_.clear();
      for (uint32_t i = 0; i <= instr.target_count; ++i) br_targets_.push_back(read_u32(pos_));
      break;
    case ImmKind::kIndirect:
    case ImmKind::kMemoryInit:
    case ImmKind::kMemoryCopy:
    case ImmKind::kTableInit:
    case ImmKind::kTableCopy:
      instr.index = read_u32(pos_);
      instr.index2 = read_u32(pos_);
      break;
    case ImmKind::kSelectTypes:
      (void)read_u32(pos_);  // the count, always one
      instr.ref_type = read_value_type();
      break;
    case ImmKind::kMemArg:
    case ImmKind::kMemArgLane:
      instr.align_log2 = read_u32(pos_);
      instr.index = 0;
      if (instr.align_log2 & kMemArgHasMemory) {
        instr.align_log2 &= ~kMemArgHasMemory;
        instr.index = read_u32(pos_);
      }
      instr.bits = read_u64(pos_);
      if (kind == ImmKind::kMemArgLane) instr.index2 = *pos_++;
      break;
    case ImmKind::kV128:
    case ImmKind::kShuffle:
      std::memcpy(&instr.bits, pos_, 8);
      std::memcpy(&instr.high, pos_ + 8, 8);
      pos_ += 16;
      break;
    case ImmKind::kLane:
      instr.index = *pos_++;
      break;
    case ImmKind::kI32:
      instr.bits = static_cast<uint32_t>(read_signed(pos_));
      break;
    case ImmKind::kI64:
      instr.bits = static_cast<uint64_t>(read_signed(pos_));
      break;
    case ImmKind::kF32: {
      uint32_t bits;
      std::memcpy(&bits, pos_, sizeof(bits));
      instr.bits = bits;
      pos_ += sizeof(bits);
      break;
    }
    case ImmKind::kF64:
      std::memcpy(&instr.bits, pos_, sizeof(instr.bits));
      pos_ += sizeof(instr.bits);
      break;
    case ImmKind::kFence:
      ++pos_;
      break;
    case ImmKind::kRefType:
      instr.ref_type = read_heap_type();
      break;
  }
}

}  // namespace hindsight::wasm
