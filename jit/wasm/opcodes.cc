#include "jit/wasm/opcodes.h"

#include <array>

namespace hindsight::wasm {

namespace {

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
    if (code >= kFirstRelaxedSimdCode) {
      tables.relaxed_simd[code - kFirstRelaxedSimdCode] = info;
    } else if (code >= kAtomicPrefix) {
      tables.atomic[code - kAtomicPrefix] = info;
    } else if (code >= kFirstSimdCode) {
      tables.simd[code - kFirstSimdCode] = info;
    } else if (code >= kFirstPrefixedCode) {
      tables.prefixed[code - kFirstPrefixedCode] = info;
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
  } else if (code >= kFirstPrefixedCode && code < kFirstPrefixedCode + 256) {
    info = &kTables.prefixed[code - kFirstPrefixedCode];
  } else if (code >= kAtomicPrefix && code < kAtomicPrefix + 256) {
    info = &kTables.atomic[code - kAtomicPrefix];
  } else if (code >= kFirstSimdCode && code < kFirstSimdCode + 256) {
    info = &kTables.simd[code - kFirstSimdCode];
  } else if (code >= kFirstRelaxedSimdCode) {
    info = &kTables.relaxed_simd[code - kFirstRelaxedSimdCode];
  }
  return info != nullptr && info->name != nullptr ? info : nullptr;
}

}  // namespace hindsight::wasm
