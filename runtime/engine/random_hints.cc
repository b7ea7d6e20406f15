#include "runtime/engine/random_hints.h"

#include <algorithm>
#include <random>

#include "jit/wasm/instr_reader.h"

namespace hindsight::rt {
namespace {

constexpr uint32_t kMostTargets = 4;
constexpr uint32_t kElements = 12;  // of tables, that targets are drawn from
constexpr size_t kMostLoads = 8;    // as many as a profile would name

bool is_load(wasm::Opcode opcode) {
  return opcode >= wasm::Opcode::kI32Load && opcode <= wasm::Opcode::kI64Load32U;
}

}  // namespace

jit::FunctionHints random_hints(const wasm::Module& module, FuncIndex function, uint32_t seed) {
  std::mt19937 random(seed * 2654435761u + function.value);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  std::vector<WasmOffset> loads;
  jit::FunctionHints hints;
  wasm::Instr instr;
  for (wasm::InstrReader reader(module, module.body(function)); !reader.at_end();) {
    reader.next(instr);
    const bool by_reference =
        instr.opcode == wasm::Opcode::kCallRef || instr.opcode == wasm::Opcode::kReturnCallRef;
    if (is_load(instr.opcode)) {
      loads.push_back(instr.offset);
    } else if (instr.opcode == wasm::Opcode::kIf || instr.opcode == wasm::Opcode::kBrIf ||
               instr.opcode == wasm::Opcode::kSelect) {
      // Whatever the form, as if nothing were dearer than the other one.
      const auto form = static_cast<jit::BranchHint::Form>(below(3));
      hints.branches.push_back({.branch = instr.offset,
                                .taken = below(5000),
                                .not_taken = below(5000),
                                .mispredicted = form == jit::BranchHint::Form::kSelect ? 1.0 : 0.0,
                                .weigh = below(2) != 0,
                                .form = form});
    } else if (by_reference || instr.opcode == wasm::Opcode::kCallIndirect ||
               instr.opcode == wasm::Opcode::kReturnCallIndirect) {
      jit::CallHint hint{.call = instr.offset, .targets = {}, .by_reference = by_reference};
      const uint32_t bound = by_reference ? module.function_count() : kElements;
      for (uint32_t i = below(kMostTargets + 1); i > 0 && bound > 0; --i)
        hint.targets.push_back({.element = below(bound), .share = 1.0 / kMostTargets});
      if (!hint.targets.empty()) hints.calls.push_back(std::move(hint));
    }
  }
  std::shuffle(loads.begin(), loads.end(), random);
  loads.resize(std::min(loads.size(), kMostLoads));
  for (const WasmOffset load : loads) {
    const bool enabled = below(4) != 0;
    if (below(4) != 0)
      hints.interleaves.push_back({.load = load,
                                   .stall_share = 0.1 * below(10),
                                   .initial_width = 2u << below(6),
                                   .initially_enabled = enabled});
    if (below(4) != 0)
      hints.prefetches.push_back({.load = load,
                                  .stall_share = 0.1 * below(10),
                                  .initial_distance = 1 + below(64),
                                  .initially_enabled = enabled});
    if (below(4) != 0)
      hints.jumps.push_back({.load = load,
                             .stall_share = 0.1 * below(10),
                             .initial_distance = below(64),
                             .initially_enabled = enabled});
  }
  return hints;
}

}  // namespace hindsight::rt
