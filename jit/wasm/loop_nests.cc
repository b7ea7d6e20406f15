#include "jit/wasm/loop_nests.h"

#include "jit/wasm/instr_reader.h"

namespace hindsight::wasm {
namespace {

bool has_tail_call(const Module& module, const FunctionBody& body, const LoopInfo& loop) {
  if (!body.has_tail_calls) return false;
  InstrReader reader(module, body);
  reader.seek(loop.offset);
  Instr instr;
  while (reader.position() < loop.end) {
    reader.next(instr);
    if (instr.opcode == Opcode::kReturnCall || instr.opcode == Opcode::kReturnCallIndirect ||
        instr.opcode == Opcode::kReturnCallRef)
      return true;
  }
  return false;
}

bool in_handler(const FunctionBody& body, const LoopInfo& loop) {
  for (uint32_t at = loop.frame; at != ~0u; at = body.loop_frames[at].parent)
    if (body.loop_frames[at].kind == LoopFrame::Kind::kHandler) return true;
  return false;
}

}  // namespace

std::string_view why_no_nest(const Module& module, FuncIndex function, LoopIndex root) {
  const FunctionBody& body = module.body(function);
  const LoopInfo& loop = body.loops[root.value];
  if (!loop.reachable) return "it is in dead code";
  if (loop.too_deep) return "a branch leaves it over more than 63 blocks";
  if (in_handler(body, loop)) return "a handler of exceptions is around it";
  if (has_tail_call(module, body, loop)) return "it has a tail call";
  return {};
}

bool is_inlined_in_loops(const FunctionBody& callee) {
  const uint32_t size = callee.end.value - callee.begin.value;
  return callee.locals.size() <= kMostInlinedLocals && size <= (callee.loops.empty()       ? kInlinedInLoops
                                                                : callee.loops.size() == 1 ? kInlinedWithLoop
                                                                                           : kAlwaysInlined);
}

bool may_be_inlined_for_loads(const FunctionBody& callee) {
  return callee.end.value - callee.begin.value <= kMostInlinedForLoads &&
         callee.locals.size() <= kMostInlinedLocals && !callee.has_tail_calls && !callee.has_handlers;
}

uint32_t nest_bytes(const Module& module, FuncIndex function, LoopIndex root) {
  const FunctionBody& body = module.body(function);
  const LoopInfo& loop = body.loops[root.value];
  const uint32_t own = loop.end.value + 1 - loop.offset.value;
  if (!body.has_calls) return own;
  const uint32_t most = most_inlined_into_nest(own);
  uint32_t inlined = 0;
  InstrReader reader(module, body);
  reader.seek(loop.offset);
  Instr instr;
  while (reader.position() < loop.end) {
    reader.next(instr);
    if (instr.opcode != Opcode::kCall) continue;
    const FuncIndex callee(instr.index);
    if (module.is_imported(callee) || callee == function || !is_inlined_in_loops(module.body(callee)))
      continue;
    const uint32_t size = module.body(callee).end.value - module.body(callee).begin.value;
    if (inlined + size <= most) inlined += size;
  }
  return own + inlined;
}

}  // namespace hindsight::wasm
