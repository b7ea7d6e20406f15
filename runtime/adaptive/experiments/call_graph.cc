#include "runtime/adaptive/experiments/call_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "jit/wasm/instr_reader.h"

namespace hindsight::rt {
namespace {

// A place that may have called, with its weight.
struct Site {
  uint32_t caller = 0;
  uint32_t at = 0;
  double weight = 0;
};

// Where in the version's code an instruction begins.
std::unordered_map<uint32_t, uint32_t> code_of_offsets(const jit::CodeVersion& version) {
  std::unordered_map<uint32_t, uint32_t> first;
  for (const jit::PcRow& row : version.pc_map.rows()) first.try_emplace(row.wasm.value, row.code.value);
  return first;
}

}  // namespace

jit::CallGraph make_call_graph(const wasm::Module& module, const feedback::Profile* profile,
                               std::span<const std::shared_ptr<jit::CodeVersion>> versions,
                               std::span<const uint64_t> calls) {
  jit::CallGraph graph;
  std::unordered_map<uint32_t, uint32_t> number_of;  // function index -> place in the graph
  for (uint32_t i = 0; i < versions.size(); ++i) {
    number_of.emplace(versions[i]->function.value, i);
    graph.functions.push_back({versions[i]->code_size.value, calls[i]});
  }

  std::vector<std::vector<Site>> sites(versions.size());  // by callee
  const auto add = [&](uint32_t function, Site site) {
    if (const auto callee = number_of.find(function);
        callee != number_of.end() && callee->second != site.caller)
      sites[callee->second].push_back(site);
  };
  for (uint32_t caller = 0; caller < versions.size(); ++caller) {
    const jit::CodeVersion& version = *versions[caller];
    const auto ran = static_cast<double>(calls[caller]);
    const auto code = code_of_offsets(version);
    const auto look = [&](FuncIndex in) {
      const feedback::FunctionCounts* counts = nullptr;
      if (profile != nullptr) {
        const auto found = profile->functions().find(in.value);
        if (found != profile->functions().end()) counts = &found->second;
      }
      wasm::InstrReader reader(module, module.body(in));
      wasm::Instr instr;
      while (!reader.at_end()) {
        reader.next(instr);
        const bool direct = instr.opcode == wasm::Opcode::kCall || instr.opcode == wasm::Opcode::kReturnCall;
        const bool indirect =
            instr.opcode == wasm::Opcode::kCallIndirect || instr.opcode == wasm::Opcode::kReturnCallIndirect;
        if (!direct && !(indirect && counts != nullptr)) continue;
        const auto at = code.find(instr.offset.value);
        const Site site{caller, at != code.end() ? at->second : 0, ran};
        if (direct) {
          add(instr.index, site);
          continue;
        }
        const auto seen = counts->values.find(instr.offset.value);
        if (seen == counts->values.end() || seen->second.total == 0) continue;
        for (const feedback::ValueCounts::Candidate& target : seen->second.candidates) {
          const double share = static_cast<double>(target.count) / static_cast<double>(seen->second.total);
          const auto callee = module.initial_element(instr.index2, static_cast<uint32_t>(target.value));
          if (callee) add(callee->value, {site.caller, site.at, ran * share});
        }
      }
    };
    look(version.function);
    for (const FuncIndex inlined : version.inlined) look(inlined);
  }
  for (uint32_t callee = 0; callee < versions.size(); ++callee) {
    double weight = 0;
    for (const Site& site : sites[callee]) weight += site.weight;
    if (weight <= 0) continue;
    for (const Site& site : sites[callee]) {
      const double share = static_cast<double>(calls[callee]) * site.weight / weight;
      if (share >= 0.5)
        graph.calls.push_back({site.caller, callee, site.at, static_cast<uint64_t>(std::llround(share))});
    }
  }
  return graph;
}

}  // namespace hindsight::rt
