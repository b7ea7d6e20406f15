#include "jit/wasm/branch_hints.h"

#include <algorithm>

#include "jit/wasm/byte_reader.h"

namespace hindsight::wasm {

namespace {

// Functions come in ascending order, and so do the instructions of each.
bool read_hints(Module& module, ByteReader& reader) {
  uint32_t functions = 0;
  if (!reader.count(functions, UINT32_MAX, "functions with hints", 2)) return false;
  uint32_t next_function = 0;
  for (uint32_t i = 0; i < functions; ++i) {
    uint32_t function = 0;
    uint32_t hints = 0;
    ++module.decode_stats.steps;
    if (!reader.u32(function) || function < next_function || function == UINT32_MAX) return false;
    next_function = function + 1;
    if (!reader.count(hints, UINT32_MAX, "hints", 3)) return false;
    uint32_t next_offset = 0;
    for (uint32_t k = 0; k < hints; ++k) {
      uint32_t offset = 0;
      uint32_t size = 0;
      uint8_t value = 0;
      ++module.decode_stats.steps;
      if (!reader.u32(offset) || offset < next_offset || offset == UINT32_MAX) return false;
      next_offset = offset + 1;
      if (!reader.u32(size) || size != 1 || !reader.u8(value) || value > 1) return false;
      module.branch_hints.push_back(
          {.function = FuncIndex(function), .offset = WasmOffset(offset), .likely = value == 1});
    }
  }
  return reader.at_end();
}

}  // namespace

void read_branch_hints(Module& module, uint32_t begin, uint32_t end) {
  const uint8_t* base = module.bytes.data();
  ByteReader reader(base, base + begin, base + end);
  if (read_hints(module, reader)) return;
  ++module.decode_stats.branch_hint_errors;
  module.branch_hints.clear();
}

void finish_branch_hints(Module& module, std::span<const uint32_t> body_starts) {
  auto& hints = module.branch_hints;
  const size_t found = hints.size();
  std::erase_if(hints, [&](BranchHint& hint) {
    const uint32_t body = hint.function.value - module.imported_functions;
    if (hint.function.value < module.imported_functions || body >= body_starts.size()) return true;
    // Invariant: a body ends within the module, which is smaller than 4 GiB.
    const uint64_t offset = uint64_t{body_starts[body]} + hint.offset.value;
    hint.offset = WasmOffset(static_cast<uint32_t>(std::min<uint64_t>(offset, UINT32_MAX)));
    return offset < module.bodies[body].begin.value || offset >= module.bodies[body].end.value;
  });
  std::ranges::stable_sort(hints, {}, [](const BranchHint& hint) { return hint.offset.value; });
  const auto repeated =
      std::ranges::unique(hints, {}, [](const BranchHint& hint) { return hint.offset.value; });
  hints.erase(repeated.begin(), repeated.end());
  module.decode_stats.branch_hint_errors += static_cast<uint32_t>(found - hints.size());
}

}  // namespace hindsight::wasm
