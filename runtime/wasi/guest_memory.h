// The guest's linear memory as a call sees it. Every pointer that a guest passes is an offset that may be
// anything. Every access is checked here with 64-bit arithmetic and copied by memcpy. So neither
// alignment nor overflow nor a second look at a changed value can matter.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace hindsight::wasi {

static_assert(std::endian::native == std::endian::little, "guest structures are copied without swapping");

// A view for the length of one call: the engine fills it anew each time, because memory may have grown.
struct GuestMemory {
  uint8_t* base = nullptr;
  uint64_t size = 0;  // bytes

  bool contains(uint64_t offset, uint64_t length) const { return length <= size && offset <= size - length; }

  // Nothing where the value is not wholly inside the memory.
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::optional<T> load(uint64_t offset)
  const {
    if (!contains(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, base + offset, sizeof(T));
    // Another thread of the guest may change the place: from here on the compiler must take the copy.
    asm volatile("" : "+m"(value));
    return value;
  }

  // False, and nothing is written, where the value is not wholly inside the memory.
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool store(uint64_t offset, T value) const {
    if (!contains(offset, sizeof(T))) return false;
    std::memcpy(base + offset, &value, sizeof(T));
    return true;
  }

  [[nodiscard]] bool store_bytes(uint64_t offset, const void* bytes, uint64_t length) const {
    if (!contains(offset, length)) return false;
    if (length != 0) std::memcpy(base + offset, bytes, length);
    return true;
  }
};

}  // namespace hindsight::wasi
