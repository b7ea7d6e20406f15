#include "runtime/instance/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/system_failures.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {
namespace {

void* reserve(uint64_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// Whether there would be room for `bytes` more.
bool room_for(uint64_t bytes) {
  void* const p = reserve(bytes);
  if (p == nullptr) return false;
  ::munmap(p, bytes);
  return true;
}

bool make_accessible(uint8_t* base, uint64_t bytes) {
  return bytes == 0 || ::mprotect(base, bytes, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::create(const wasm::MemoryType& type, jit::BoundsChecks bounds,
                                               uint64_t cap_bytes, uint32_t index,
                                               std::shared_ptr<StoreBudget> budget) {
  const uint64_t cap_pages = std::min<uint64_t>(cap_bytes / wasm::kPageBytes, type.most_pages());
  const uint64_t min_pages = type.limits.min;
  if (min_pages > cap_pages)
    return make_error(ErrorKind::kResource, "a memory of " + std::to_string(min_pages) +
                                                " pages is more than the allowed " +
                                                std::to_string(cap_pages) + " pages");
  uint64_t max_pages = std::min<uint64_t>(type.limits.max.value_or(type.most_pages()), cap_pages);

  std::unique_ptr<Memory> memory(new Memory(std::move(budget)));
  memory->type_ = type;
  uint64_t bytes = kGuardReservationBytes;
  void* base = nullptr;
  if (bounds == jit::BoundsChecks::kGuardPages && !type.is64) {
    base = reserve(bytes);
  } else {
    const uint64_t behind =
        bounds == jit::BoundsChecks::kGuardPages ? jit::kGuardedOffset + wasm::kPageBytes : wasm::kPageBytes;
    // With explicit checks the inaccessible page after the end is not needed for safety. It keeps the base
    // from being null for empty memories and makes a missing check a fault instead of a silent overrun.
    for (;;) {
      bytes = max_pages * wasm::kPageBytes + behind;
      base = reserve(bytes);
      if (max_pages <= min_pages) break;
      // What the memory may never grow to must not keep all else in the process from what it needs.
      if (base != nullptr && room_for(std::max(bytes, kLeftForOthersBytes))) break;
      if (base != nullptr) ::munmap(base, bytes);
      max_pages = std::max(min_pages, max_pages / 2);
    }
  }
  if (base == nullptr)
    return make_error(ErrorKind::kResource, "cannot reserve " + std::to_string(bytes) +
                                                " bytes of address space for a memory: " + strerror(errno));
  jit::MemoryRecord& record = memory->record_;
  record.base = static_cast<uint8_t*>(base);
  record.reserved_bytes = bytes;
  record.max_pages = max_pages;
  const uint64_t initial = min_pages * wasm::kPageBytes;
  if (!memory->budget_->take_memory(initial))
    return StoreBudget::refusal("a memory of " + std::to_string(min_pages) + " pages", initial,
                                memory->budget_->memory_bytes(), "bytes",
                                memory->budget_->limits().memory_bytes, "memory-bytes");
  record.byte_length.store(initial, std::memory_order_release);
  if (!make_accessible(record.base, initial))
    return make_error(ErrorKind::kResource,
                      "cannot commit " + std::to_string(initial) + " bytes for a memory: " + strerror(errno));
  const auto begin = reinterpret_cast<uintptr_t>(base);
  if (!memory_reservations().add(begin, begin + bytes, index))
    return make_error(ErrorKind::kResource, "too many linear memories in this process");
  return memory;
}

Memory::~Memory() {
  if (record_.base == nullptr) return;
  budget_->give_memory(bytes());
  memory_reservations().remove(reinterpret_cast<uintptr_t>(record_.base));
  if (::munmap(record_.base, record_.reserved_bytes) != 0)
    count_system_failure(SystemFailure::kMemoryRelease, errno);
}

std::optional<uint64_t> Memory::grow(uint64_t delta_pages) {
  const std::lock_guard lock(grow_mutex_);
  const uint64_t old_bytes = bytes();
  const uint64_t old_pages = old_bytes / wasm::kPageBytes;
  if (delta_pages > record_.max_pages - old_pages) return std::nullopt;
  if (delta_pages != 0) {
    const uint64_t more = delta_pages * wasm::kPageBytes;
    if (!budget_->take_memory(more)) return std::nullopt;
    if (!make_accessible(record_.base + old_bytes, more)) {
      count_system_failure(SystemFailure::kMemoryGrowth, errno);
      budget_->give_memory(more);
      return std::nullopt;
    }
    // Whoever reads the new length may touch the new pages. Sequentially consistent, because memory.size and
    // memory.grow of a shared memory are; release would do for the pages.
    record_.byte_length.store(old_bytes + more, std::memory_order_seq_cst);
  }
  return old_pages;
}

bool guard_pages_available() {
  return room_for(kGuardedMemories * kGuardReservationBytes);
}

}  // namespace hindsight::rt
