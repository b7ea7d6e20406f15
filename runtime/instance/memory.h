// Memory: one linear memory. Its address range is reserved once and never moves, so generated code may keep the base in a
// register. Growing only makes more of the range accessible. Fresh pages are zero.
//
// Guard-page mode reserves 8 GiB + 64 KiB. A 32-bit index plus a 32-bit static offset plus the widest access always lands
// inside. So a fault there is an out-of-bounds access, and no code checks anything. Explicit mode reserves what the
// memory may grow to. Where address space is limited, it reserves as much of that as leaves as much again for others, and
// kLeftForOthersBytes at least. Then growing beyond it fails, which WebAssembly allows. No range covers all that 64-bit
// addresses reach. A memory that has them reserves what it may grow to and kGuardedOffset more. So code compares an index
// with a constant and leaves the rest to the guard pages (see MemoryCell).
//
// A shared memory may belong to several stores, whose threads run at the same time. Its base never moves and its length
// only grows. grow() makes pages accessible first and then stores the length, sequentially consistent, so that who reads
// the new length may touch the new pages. An older length that code has read stays true. The contents are the guests' own
// to order.
//
// Threads: one that is not shared is owned by a store and used by one thread at a time. byte_length may be read by any
// thread. For a shared one everything may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/fork_gate.h"
#include "base/result.h"
#include "jit/abi/vm_context.h"
#include "jit/compile_options.h"
#include "jit/wasm/types.h"
#include "runtime/instance/store_budget.h"
#include "runtime/instance/wait_queue.h"

namespace hindsight::rt {

inline constexpr uint64_t kGuardReservationBytes = (uint64_t{8} << 30) + wasm::kPageBytes;

class Memory : public std::enable_shared_from_this<Memory> {
 public:
  // `cap_bytes` bounds the size besides the type's own maximum, and `budget` what it and other memories hold together.
  // `index` is the memory's in the module that defines it, for records of its addresses. Errors: kResource.
  static Result<std::unique_ptr<Memory>> create(
      const wasm::MemoryType& type, jit::BoundsChecks bounds, uint64_t cap_bytes, uint32_t index = 0,
      std::shared_ptr<StoreBudget> budget = std::make_shared<StoreBudget>());
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Pages before growing; nothing if the memory cannot grow by `delta` pages (then it is unchanged).
  std::optional<uint64_t> grow(uint64_t delta_pages);

  uint64_t pages() const { return bytes() / wasm::kPageBytes; }
  uint64_t bytes() const { return record_.byte_length.load(std::memory_order_acquire); }
  uint8_t* base() const { return record_.base; }
  std::span<std::byte> span() const { return {reinterpret_cast<std::byte*>(record_.base), bytes()}; }
  bool in_bounds(uint64_t offset, uint64_t length) const {
    return length <= bytes() && offset <= bytes() - length;
  }
  // As declared; import matching compares with this and the present size.
  const wasm::MemoryType& type() const { return type_; }
  // What an instance's context says of it.
  jit::MemoryCell cell() { return {record_.base, &record_, record_.max_pages * wasm::kPageBytes, 0}; }
  jit::MemoryRecord* record() { return &record_; }
  WaitQueue& waiters() { return waiters_; }
  const jit::MemoryRecord* record() const { return &record_; }

 private:
  explicit Memory(std::shared_ptr<StoreBudget> budget) : budget_(std::move(budget)) {}
  wasm::MemoryType type_;
  const std::shared_ptr<StoreBudget> budget_;
  jit::MemoryRecord record_{};
  ForkSafeMutex grow_mutex_;  // one grow at a time
  WaitQueue waiters_;
};

// True if guard-page mode is possible here, for so many memories at a time: reserves and releases a range of that size.
// An engine asks once, since the answer is in all its code; where address space is limited to less, code checks bounds.
inline constexpr uint64_t kGuardedMemories = 16;
inline constexpr uint64_t kLeftForOthersBytes = uint64_t{512} << 20;
bool guard_pages_available();

}  // namespace hindsight::rt
