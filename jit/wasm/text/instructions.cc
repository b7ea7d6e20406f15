#include "jit/wasm/text/instructions.h"

#include <array>

namespace hindsight::wasm::text {

namespace {

constexpr Instruction kInstructions[] = {
#define HINDSIGHT_ROW(enumerator, code, text, imm, signature) {text, code, ImmKind::imm, GcImmediates::kNone},
    HINDSIGHT_WASM_OPCODES(HINDSIGHT_ROW) HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_ROW)
#undef HINDSIGHT_ROW
#define HINDSIGHT_GC_ROW(code, text, imm) {text, code, ImmKind::kNone, GcImmediates::imm},
        HINDSIGHT_WASM_GC_OPCODES(HINDSIGHT_GC_ROW)
#undef HINDSIGHT_GC_ROW
};

constexpr size_t kSlots = 2048;  // a power of two, some three times the number of instructions
static_assert(std::size(kInstructions) * 3 < kSlots);

constexpr uint32_t hash_of(std::string_view name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ hash >> 15;
}

// Open addressing. The names are fixed, so that no text can make a search longer than it is here.
std::array<uint16_t, kSlots> make_slots() {
  std::array<uint16_t, kSlots> slots{};  // 1 + the instruction's place, or 0
  for (size_t i = 0; i < std::size(kInstructions); ++i) {
    size_t slot = hash_of(kInstructions[i].name) % kSlots;
    while (slots[slot] != 0 && kInstructions[slots[slot] - 1].name != kInstructions[i].name)
      slot = (slot + 1) % kSlots;
    if (slots[slot] == 0) slots[slot] = static_cast<uint16_t>(i + 1);  // the first of several with one name
  }
  return slots;
}

}  // namespace

const Instruction* find_instruction(std::string_view name) {
  static const std::array<uint16_t, kSlots> slots = make_slots();
  for (size_t slot = hash_of(name) % kSlots; slots[slot] != 0; slot = (slot + 1) % kSlots) {
    const Instruction& found = kInstructions[slots[slot] - 1];
    if (found.name == name) return &found;
  }
  return nullptr;
}

void encode_opcode(uint16_t code, Encoder& out) {
  constexpr unsigned kRelaxedPage = 0xff;
  const unsigned page = code >> 8;
  const unsigned low = code & 0xff;
  if (page == 0) return out.u8(low);
  out.u8(page == kRelaxedPage ? kSimdPrefix : page);
  out.unsigned_leb(page == kRelaxedPage ? 0x100 + low : low);
}

}  // namespace hindsight::wasm::text
