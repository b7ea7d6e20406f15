#include "jit/wasm/opcodes.h"

#include <array>

namespace hindsight::wasm {

namespace {

constexpr uint16_t kPrefixed = 0xfc00;
constexpr uint16_t kSimd = 0xfd00;
constexpr uint16_t kRelaxedSimd = 0xff00;

struct Tables {
  std::array<OpcodeInfo, 256> plain{};
  std::array<OpcodeInfo, 256> prefixed{};
  std::array<OpcodeInfo, 256> atomic{};
  std::array<OpcodeInfo, 256> simd{};
  std::array<OpcodeInfo, 256> relaxed_simd{};
};

constexpr Tables make_tables() {
  Tables tables;
  auto add = [&](uint16_t code, OpcodeInfo info) {
    if (code >= kRelaxedSimd) {
      tables.relaxed_simd[code - kRelaxedSimd] = info;
    } else if (code >= kAtomicPrefix) {
      tables.atomic[code - kAtomicPrefix] = info;
    } else if (code >= kSimd) {
      tables.simd[code - kSimd] = info;
    } else if (code >= kPrefixed) {
      tables.prefixed[code - kPrefixed] = info;
    } else {
      tables.plain[code] = info;
    }
  };
#define HINDSIGHT_ADD(name, code, text, imm, signature) add(code, {text, ImmKind::imm, signature});
  HINDSIGHT_WASM_OPCODES(HINDSIGHT_ADD)
  HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

const OpcodeInfo* find_opcode(uint16_t code) {
  const OpcodeInfo* info = nullptr;
  if (code < 256) {
    info = &kTables.plain[code];
  } else if (code >= kPrefixed && code < kPrefixed + 256) {
    info = &kTables.prefixed[code - kPrefixed];
  } else if (code >= kAtomicPrefix && code < kAtomicPrefix + 256) {
    info = &kTables.atomic[code - kAtomicPrefix];
  } else if (code >= kSimd && code < kSimd + 256) {
    info = &kTables.simd[code - kSimd];
  } else if (code >= kRelaxedSimd) {
    info = &kTables.relaxed_simd[code - kRelaxedSimd];
  }
  return info != nullptr && info->name != nullptr ? info : nullptr;
}

}  // namespace hindsight::wasm
