#include "runtime/code/random_hints.h"

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

bool is_division(wasm::Opcode opcode) {
  using wasm::Opcode;
  return (opcode >= Opcode::kI32DivS && opcode <= Opcode::kI32RemU) ||
         (opcode >= Opcode::kI64DivS && opcode <= Opcode::kI64RemU);
}

}  // namespace

jit::FunctionHints random_hints(const wasm::Module& module, FuncIndex function, uint32_t seed) {
  std::mt19937 random(seed * 2654435761u + function.value);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  // Small ones, which programs divide by, and others.
  const auto divisor = [&]() -> uint64_t {
    switch (below(4)) {
      case 0:
        return ~uint64_t{0} - below(4);
      case 1:
        return random() | uint64_t{random()} << 32;
      default:
        return below(12);
    }
  };
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
      // Never seen, and it happens all the same.
      if (below(3) == 0) {
        jit::BranchHint& hint = hints.branches.back();
        hint.one_sided = true;
        (below(2) != 0 ? hint.taken : hint.not_taken) = 0;
      }
    } else if (is_division(instr.opcode)) {
      hints.values.push_back({.at = instr.offset, .value = divisor(), .share = 0.1 * below(11)});
    } else if (instr.opcode == wasm::Opcode::kLoop) {
      // Numbers of their own: what is drawn for the rest stays what a seed stands for.
      std::mt19937 turns(seed ^ instr.offset.value * 2654435761u);
      if (turns() % 4 != 0)
        hints.values.push_back({.at = instr.offset,
                                .value = turns() % (turns() % 2 != 0 ? 8 : 70),
                                .share = 0.1 * static_cast<double>(turns() % 11)});
    } else if (instr.opcode == wasm::Opcode::kMemoryCopy || instr.opcode == wasm::Opcode::kMemoryFill) {
      hints.values.push_back(
          {.at = instr.offset, .value = below(below(2) != 0 ? 10 : 300), .share = 0.1 * below(11)});
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
