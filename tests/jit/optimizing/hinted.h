// A function compiled with prefetches asked for some of its loads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {

// The offset of the n-th load of an exported function.
inline WasmOffset load_of(const wasm::Module& module, std::string_view name, uint32_t n) {
  const FuncIndex function(module.find_export(name)->index);
  wasm::InstrReader reader(module, module.body(function));
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    const auto code = static_cast<uint32_t>(instr.opcode);
    const bool loads = (code >= 0x28 && code <= 0x35) || instr.opcode == wasm::Opcode::kV128Load;
    if (loads && n-- == 0) return instr.offset;
  }
  ADD_FAILURE() << "no such load";
  return {};
}

// One that needs no more than a place.
inline Request change(ChangeKind kind, WasmOffset at, double weight = 0) {
  return {.site = {kind, at}, .weight = weight};
}

struct Hinted {
  Hinted(std::string_view wat, std::string_view name, std::vector<uint32_t> loads, bool osr = false)
      : optimized(wat) {
    for (uint32_t load : loads)
      optimized.request.changes.push_back(
          change(ChangeKind::kPrefetch, load_of(*optimized.module, name, load), 0.5));
    optimized.request.dump_ir = true;
    if (osr) optimized.request.osr_loops = {LoopIndex(0)};
    version = optimized.compile(name);
    if (version)
      func_refs(optimized.instance->context())[optimized.module->find_export(name)->index].code =
          version->entry;
  }
  std::string sites() const {
    std::string text;
    for (const Answer& site : version->answers)
      text += std::string(site.is_applied() ? "applied: " : "refused: ") + site.why + "\n";
    return text;
  }
  Optimized optimized;
  const CodeVersion* version = nullptr;
};

}  // namespace hindsight::jit::testing
