// AddressRanges: a fixed-size set of address ranges that signal handlers may ask "is this address yours?".
// The process has two: linear-memory reservations and code arenas. Static storage, no allocation, no lock.
//
// Concurrency: a writer claims a slot by a compare-exchange on `begin` (0 -> kClaimed), stores `end`, then
// stores the true `begin` with release. A reader that loads `begin` with acquire therefore sees its `end` and
// tag. Removing stores 0. A range is removed before it is unmapped, so a reader never takes a recycled
// address for an old range. A reader racing with a removal may answer either way. That is harmless because
// nobody may touch a range that is being removed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hindsight::rt {

template <size_t kCapacity>
class AddressRanges {
 public:
  struct Found {
    uintptr_t begin = 0;  // 0: no range holds the address
    uint32_t tag = 0;
  };

  // Any thread. `tag` is whatever the owner wants to find again. False: the set is full.
  bool add(uintptr_t begin, uintptr_t end, uint32_t tag = 0) noexcept {
    for (size_t i = 0; i < kCapacity; i++) {
      uintptr_t expected = 0;
      if (!slots_[i].begin.compare_exchange_strong(expected, kClaimed, std::memory_order_acquire)) continue;
      slots_[i].end.store(end, std::memory_order_relaxed);
      slots_[i].tag.store(tag, std::memory_order_relaxed);
      slots_[i].begin.store(begin, std::memory_order_release);
      // Readers stop at the high-water mark; it only grows. Release: the slot is complete before it counts.
      size_t seen = used_.load(std::memory_order_relaxed);
      while (seen < i + 1 && !used_.compare_exchange_weak(seen, i + 1, std::memory_order_release)) {
      }
      return true;
    }
    return false;
  }

  void remove(uintptr_t begin) noexcept {
    for (size_t i = 0; i < used_.load(std::memory_order_acquire); i++) {
      uintptr_t expected = begin;
      if (slots_[i].begin.compare_exchange_strong(expected, 0, std::memory_order_release)) return;
    }
  }

  // Async-signal-safe.
  bool contains(uintptr_t address) const noexcept { return find(address).begin != 0; }

  // The range that holds `address`. Async-signal-safe.
  Found find(uintptr_t address) const noexcept {
    const size_t used = used_.load(std::memory_order_acquire);
    for (size_t i = 0; i < used; i++) {
      const uintptr_t begin = slots_[i].begin.load(std::memory_order_acquire);
      if (begin <= kClaimed || address < begin) continue;
      if (address < slots_[i].end.load(std::memory_order_relaxed))
        return {begin, slots_[i].tag.load(std::memory_order_relaxed)};
    }
    return {};
  }

  size_t count() const noexcept {
    size_t n = 0;
    for (const Slot& slot : slots_) n += slot.begin.load(std::memory_order_relaxed) > kClaimed;
    return n;
  }

 private:
  static constexpr uintptr_t kClaimed = 1;
  struct Slot {
    std::atomic<uintptr_t> begin{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<uint32_t> tag{0};
  };
  Slot slots_[kCapacity];
  std::atomic<size_t> used_{0};
};

// Linear-memory reservations, guard pages included. The tag is the memory's index in the module that defines
// it.
AddressRanges<8192>& memory_reservations() noexcept;
// Executable views of code arenas.
AddressRanges<256>& code_ranges() noexcept;

}  // namespace hindsight::rt
