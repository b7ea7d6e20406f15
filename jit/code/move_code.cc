#include "jit/code/move_code.h"

#include <cstring>
#include <utility>

namespace hindsight::jit {

namespace {

// What is copied: of a part, the whole that it was made from.
const std::shared_ptr<const CodeVersion>& source_of(const std::shared_ptr<const CodeVersion>& version) {
  return version->whole ? version->whole : version;
}

// Exits and landings lie in the version that runs, after its instructions or anywhere in them.
bool can_be_parted(const CodeVersion& version) {
  return version.hot_bytes.value != 0 && version.osr_exits.empty() && version.handlers.empty();
}

}  // namespace

size_t bytes_to_move(const CodeVersion& version) {
  if (version.whole) return version.memory.size();
  // What a nest counts stays where it is.
  if (version.tier != Tier::kOptimized || !version.relocations || version.work) return 0;
  return can_be_parted(version) ? version.hot_bytes.value : version.memory.size();
}

Result<std::unique_ptr<CodeVersion>> copy_version(const std::shared_ptr<const CodeVersion>& from,
                                                  CodeAllocation place) {
  const std::shared_ptr<const CodeVersion>& source = source_of(from);
  const CodeVersion& version = *source;
  const bool parted = can_be_parted(version);
  auto copy = std::make_unique<CodeVersion>();
  const auto moved = [&](const void* code) -> const void* {
    return code == nullptr ? nullptr
                           : place.executable() + (static_cast<const std::byte*>(code) - version.begin());
  };
  copy->function = version.function;
  copy->tier = version.tier;
  copy->nest = version.nest;
  copy->code_size = parted ? version.hot_bytes : version.code_size;
  copy->hot_bytes = parted ? CodeOffset() : version.hot_bytes;
  copy->entry = moved(version.entry);
  copy->pc_map = version.pc_map;
  for (const OsrEntry& entry : version.osr_entries)
    copy->osr_entries.push_back({entry.loop, moved(entry.code), entry.kind});
  copy->loop_cells = version.loop_cells;
  copy->answers = version.answers;
  copy->handlers = version.handlers;
  copy->inlined = version.inlined;
  copy->compile_seconds = version.compile_seconds;
  copy->pass_times = version.pass_times;
  if (parted) {
    version.parts.fetch_add(1, std::memory_order_relaxed);
    // Release pairs with RetireList's look at the number: what this part did in the version is done.
    copy->whole = std::shared_ptr<const CodeVersion>(source.get(), [source](const CodeVersion* whole) {
      whole->parts.fetch_sub(1, std::memory_order_release);
    });
  } else {
    copy->relocations = version.relocations;
  }

  constexpr int kBreakpoint = 0xcc;
  const CodeWriting writing = place.write();
  const std::span<std::byte> to = writing.bytes();
  const size_t bytes = parted ? version.hot_bytes.value : version.memory.size();
  std::memcpy(to.data(), version.begin(), bytes);
  std::memset(to.data() + bytes, kBreakpoint, to.size() - bytes);
  if (!parted)
    relocate(*copy->relocations, place, copy->loop_cells);
  else if (!relocate_hot_part(*version.relocations, version.memory, place, bytes))
    return make_error(ErrorKind::kResource, "too far from the rest of the code");
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
