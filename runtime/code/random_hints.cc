#include "runtime/code/random_hints.h"

#include <algorithm>
#include <random>

#include "jit/wasm/instr_reader.h"

namespace hindsight::rt {
namespace {

using jit::ChangeKind;

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

std::vector<jit::Request> random_hints(const wasm::Module& module, FuncIndex function, uint32_t seed) {
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
  std::vector<jit::Request> requests;
  const auto ask = [&](ChangeKind kind, WasmOffset at, auto what) {
    requests.push_back({.site = {kind, at}, .what = std::move(what)});
  };
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
      const uint32_t form = below(3);  // as it comes, a select, a branch
      jit::BranchCounts counts{below(5000), below(5000), form == 1 ? 1.0 : 0.0};
      const bool weigh = below(2) != 0;
      // Never seen, and it happens all the same.
      const bool one_sided = below(3) == 0;
      if (one_sided) (below(2) != 0 ? counts.taken : counts.not_taken) = 0;
      if (weigh) ask(ChangeKind::kWeighBranches, instr.offset, counts);
      if (one_sided) ask(ChangeKind::kSplitCold, instr.offset, counts);
      if (form != 0) ask(form == 1 ? ChangeKind::kSelect : ChangeKind::kBranch, instr.offset, counts);
    } else if (is_division(instr.opcode)) {
      ask(ChangeKind::kValue, instr.offset, jit::UsualValue{.value = divisor(), .share = 0.1 * below(11)});
    } else if (instr.opcode == wasm::Opcode::kLoop) {
      // Numbers of their own: what is drawn for the rest stays what a seed stands for.
      std::mt19937 turns(seed ^ instr.offset.value * 2654435761u);
      if (turns() % 4 != 0)
        ask(ChangeKind::kValue, instr.offset,
            jit::UsualValue{.value = turns() % (turns() % 2 != 0 ? 8 : 70),
                            .share = 0.1 * static_cast<double>(turns() % 11)});
    } else if (instr.opcode == wasm::Opcode::kMemoryCopy || instr.opcode == wasm::Opcode::kMemoryFill) {
      ask(ChangeKind::kValue, instr.offset,
          jit::UsualValue{.value = below(below(2) != 0 ? 10 : 300), .share = 0.1 * below(11)});
    } else if (by_reference || instr.opcode == wasm::Opcode::kCallIndirect ||
               instr.opcode == wasm::Opcode::kReturnCallIndirect) {
      jit::CallTargets targets{.targets = {}, .by_reference = by_reference};
      const uint32_t bound = by_reference ? module.function_count() : kElements;
      for (uint32_t i = below(kMostTargets + 1); i > 0 && bound > 0; --i)
        targets.targets.push_back({.element = below(bound), .share = 1.0 / kMostTargets});
      if (!targets.targets.empty()) ask(ChangeKind::kInlineCalls, instr.offset, std::move(targets));
    }
  }
  std::shuffle(loads.begin(), loads.end(), random);
  loads.resize(std::min(loads.size(), kMostLoads));
  for (const WasmOffset load : loads) {
    const bool enabled = below(4) != 0;
    const auto try_it = [&](ChangeKind kind, const auto& setting) {
      if (below(4) == 0) return;
      const double weight = 0.1 * below(10);
      requests.push_back({.site = {kind, load}, .weight = weight, .setting = setting(), .enabled = enabled});
    };
    try_it(ChangeKind::kInterleave, [&] { return 2u << below(6); });
    try_it(ChangeKind::kPrefetch, [&] { return 1 + below(64); });
    try_it(ChangeKind::kJumpPointers, [&] { return below(64); });
    try_it(ChangeKind::kSpeculate, [] { return 0u; });
  }
  return requests;
}

}  // namespace hindsight::rt
