#include "jit/optimizing/generate/nest_shape.h"

#include "jit/optimizing/generate/local_liveness.h"
#include "jit/wasm/instr_reader.h"

namespace hindsight::jit::optimizing {

NestShape shape_of_nest(const wasm::Module& module, const wasm::FunctionBody& body, LoopIndex root) {
  using wasm::Opcode;
  const wasm::LoopInfo& loop = body.loops[root.value];
  std::vector<bool> used(body.locals.size());
  std::vector<bool> written(body.locals.size());
  wasm::InstrReader reader(module, body);
  wasm::Instr instr;
  for (reader.seek(loop.offset); reader.position() < loop.end;) {
    reader.next(instr);
    const bool writes = instr.opcode == Opcode::kLocalSet || instr.opcode == Opcode::kLocalTee;
    if (!writes && instr.opcode != Opcode::kLocalGet) continue;
    used[instr.index] = true;
    if (writes) written[instr.index] = true;
  }
  NestShape shape;
  for (uint32_t local = 0; local < used.size(); ++local) {
    if (used[local]) shape.used.push_back(local);
    if (written[local]) shape.written.push_back(local);
  }
  LiveAround live = locals_live_around(module, body, root, shape.written);
  shape.live = std::move(live.ways_out);
  shape.live_at_header = std::move(live.header);
  return shape;
}

}  // namespace hindsight::jit::optimizing
