#include "jit/code/move_code.h"

#include <cstring>
#include <utility>

namespace hindsight::jit {

size_t bytes_to_move(const CodeVersion& version) {
  return version.tier == Tier::kOptimized && version.relocations ? version.memory.size() : 0;
}

std::unique_ptr<CodeVersion> copy_version(const CodeVersion& version, CodeAllocation place) {
  auto copy = std::make_unique<CodeVersion>();
  const auto moved = [&](const void* code) -> const void* {
    return code == nullptr ? nullptr
                           : place.executable() + (static_cast<const std::byte*>(code) - version.begin());
  };
  copy->function = version.function;
  copy->tier = version.tier;
  copy->code_size = version.code_size;
  copy->entry = moved(version.entry);
  copy->pc_map = version.pc_map;
  for (const OsrEntry& entry : version.osr_entries)
    copy->osr_entries.push_back({entry.loop, moved(entry.code)});
  copy->loop_cells = version.loop_cells;
  copy->prefetch_sites = version.prefetch_sites;
  copy->handlers = version.handlers;
  copy->inlined = version.inlined;
  copy->compile_seconds = version.compile_seconds;
  copy->pass_times = version.pass_times;
  copy->relocations = version.relocations;

  constexpr int kBreakpoint = 0xcc;
  const std::span<std::byte> to = place.writable();
  std::memcpy(to.data(), version.begin(), version.memory.size());
  std::memset(to.data() + version.memory.size(), kBreakpoint, to.size() - version.memory.size());
  relocate(*copy->relocations, place, copy->loop_cells);
  copy->memory = std::move(place);
  // Where running loops are sent from one of the two does not go for the other.
  for (const OsrExit& exit : version.osr_exits) {
    const auto offset = reinterpret_cast<const std::byte*>(exit.slot) - version.memory.writable().data();
    std::memset(to.data() + offset, 0, sizeof(*exit.slot));
    copy->add_exit(exit.loop, CodeOffset(static_cast<uint32_t>(offset)));
  }
  return copy;
}

}  // namespace hindsight::jit
