#include "feedback/profile/calls_in_loops.h"

#include <algorithm>
#include <map>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/loop_nests.h"

namespace hindsight::feedback {
namespace {

bool calls_itself_by_name(const wasm::Module& module, FuncIndex function) {
  if (!module.body(function).has_calls) return false;
  wasm::InstrReader reader(module, module.body(function));
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode == wasm::Opcode::kCall && instr.index == function.value) return true;
  }
  return false;
}

}  // namespace

CallsInLoops::CallsInLoops(const wasm::Module& module, FuncIndex function, const FunctionLoops& loops) {
  const wasm::FunctionBody& body = module.body(function);
  if (!body.has_calls) return;
  std::map<uint32_t, bool> possible;
  wasm::InstrReader reader(module, body);
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode != wasm::Opcode::kCall) continue;
    calls_itself_ |= instr.index == function.value;
    if (body.loops.empty()) continue;
    const std::optional<LoopIndex> loop = loops.innermost(instr.offset);
    const FuncIndex callee(instr.index);
    if (!loop || callee == function || module.is_imported(callee)) continue;
    const auto [known, fresh] = possible.try_emplace(callee.value);
    if (fresh)
      known->second =
          wasm::may_be_inlined_for_loads(module.body(callee)) && !calls_itself_by_name(module, callee);
    if (known->second) calls_.push_back({callee, *loop});
  }
  std::sort(calls_.begin(), calls_.end());
  calls_.erase(std::unique(calls_.begin(), calls_.end()), calls_.end());
}

}  // namespace hindsight::feedback
