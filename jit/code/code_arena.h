// CodeArena: all generated code of one engine. One memfd, mapped twice: a writable view that is never
// executable and an executable view that is never writable (W^X without mprotect flips). Allocations hold
// code and its constants together, so that everything generated lies within 2 GiB and rip-relative addressing
// reaches. Both views begin at multiples of 2 MiB, so that ranges of them can be on huge pages.
//
// Threads: allocate and free lock a mutex; contains() is async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace hindsight::jit {

class CodeArena;

inline constexpr size_t kHugeCodePage = size_t{2} << 20;

// A piece of the arena, freed by its destructor. Two addresses for the same bytes, as different types.
class CodeAllocation {
 public:
  CodeAllocation() = default;
  CodeAllocation(CodeAllocation&& other) noexcept;
  CodeAllocation& operator=(CodeAllocation&& other) noexcept;
  ~CodeAllocation();

  explicit operator bool() const { return arena_ != nullptr; }
  std::span<std::byte> writable() const { return {writable_, size_}; }
  const std::byte* executable() const { return executable_; }
  size_t size() const { return size_; }

 private:
  friend class CodeArena;
  CodeArena* arena_ = nullptr;  // outlives its allocations
  std::byte* writable_ = nullptr;
  const std::byte* executable_ = nullptr;
  size_t size_ = 0;
};

class CodeArena {
 public:
  // Reserves address space only; pages are committed as they are written.
  static Result<std::unique_ptr<CodeArena>> create(size_t reserve_bytes = size_t{512} << 20);
  ~CodeArena();
  CodeArena(const CodeArena&) = delete;
  CodeArena& operator=(const CodeArena&) = delete;

  // At least `bytes`, aligned (power of two, at most a page). Error kResource when the reservation is full.
  Result<CodeAllocation> allocate(size_t bytes, size_t alignment = 64);
  // One piece of each size, each behind the one before it with nothing but rounding to 64 bytes between them;
  // the first one aligned (power of two, at most kHugeCodePage). Each is freed by itself. Error kResource.
  Result<std::vector<CodeAllocation>> allocate_together(std::span<const size_t> sizes, size_t alignment = 64);

  // A jump to `function` within the arena, so that all its code reaches it with a near call. Made at its first
  // use; stays as long as the arena, and is not counted as in use.
  Result<const std::byte*> near_entry(const void* function);

  bool contains(const void* executable_address) const noexcept;
  const std::byte* executable_begin() const noexcept;
  const std::byte* executable_end() const noexcept;
  size_t bytes_in_use() const;

 private:
  friend class CodeAllocation;
  struct Impl;
  Result<size_t> take(size_t length, size_t alignment);
  CodeAllocation piece(size_t offset, size_t length);
  explicit CodeArena(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hindsight::jit
