// Memory: one linear memory. Its address range is reserved once and never moves, so generated code may keep
// the base in a register; growing only makes more of the range accessible. Fresh pages are zero.
//
// Guard-page mode reserves 8 GiB + 64 KiB: a 32-bit index plus a 32-bit static offset plus the widest access
// always lands inside, so a fault there is an out-of-bounds access and no code checks anything. Explicit mode
// reserves what the memory may grow to, or as much of that as can be had (then growing beyond it fails, which
// WebAssembly allows).
//
// Threads: owned by a store, used by one thread at a time; byte_length may be read by any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "jit/abi/vm_context.h"
#include "jit/compile_options.h"
#include "jit/wasm/types.h"

namespace hindsight::rt {

inline constexpr uint64_t kGuardReservationBytes = (uint64_t{8} << 30) + wasm::kPageBytes;

class Memory {
 public:
  // `cap_bytes` bounds the size besides the type's own maximum. Errors: kResource.
  static Result<std::unique_ptr<Memory>> create(const wasm::MemoryType& type, jit::BoundsChecks bounds,
                                                uint64_t cap_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Pages before growing; nothing if the memory cannot grow by `delta` pages (then it is unchanged).
  std::optional<uint32_t> grow(uint32_t delta_pages);

  uint32_t pages() const { return static_cast<uint32_t>(bytes() / wasm::kPageBytes); }
  uint64_t bytes() const { return record_.byte_length.load(std::memory_order_acquire); }
  uint8_t* base() const { return record_.base; }
  std::span<std::byte> span() const { return {reinterpret_cast<std::byte*>(record_.base), bytes()}; }
  bool in_bounds(uint64_t offset, uint64_t length) const {
    return length <= bytes() && offset <= bytes() - length;
  }
  // As declared; import matching compares with this and the present size.
  const wasm::MemoryType& type() const { return type_; }
  jit::MemoryRecord* record() { return &record_; }
  const jit::MemoryRecord* record() const { return &record_; }

 private:
  Memory() = default;
  wasm::MemoryType type_;
  jit::MemoryRecord record_{};
};

// True if guard-page mode is possible here: reserves and releases one range of that size.
bool guard_pages_available();

}  // namespace hindsight::rt
