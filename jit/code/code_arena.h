// CodeArena: all generated code of one engine. Shared memory that belongs to no file is mapped twice. One view is
// writable and never executable, the other executable and never writable (W^X without mprotect flips). Allocations hold
// code and its constants together, so that everything generated lies within 2 GiB and rip-relative addressing reaches.
// Both views begin at multiples of 2 MiB, so that ranges of them can be on huge pages.
//
// Address space is reserved at once; memory is mapped there in chunks of 2 MiB, in both views, as it is allocated. That
// it belongs to no file keeps it out of the limit on the size of files, whose price is a deadly signal. It also escapes
// rules against executable files in memory.
//
// After a fork(). Shared memory stays shared with a child, where private memory would be the child's own. So from a
// fork on, neither the parent nor the child writes a chunk that was there before it. Who is to write there copies it
// first and maps the copy in both views, at the same addresses, as its own. What both only run costs neither of them
// anything.
//
// Invariants:
//   - A chunk that two processes map is never written again. Each chunk knows how many forks there had been when it
//     was made; it is shared exactly if there have been more since.
//   - Writing happens inside the process's ForkGate. So no fork falls between the look at that number and the write,
//     and a child never gets what is half written. A CodeWriting is both, the look and the gate.
//   - A copy replaces what it was made from in one system call a view, the executable one first. Threads that run in
//     there go on in the same bytes.
// Children that the gate does not wait for (base/fork_gate.h) are not to run guest code.
//
// Threads: allocate and free lock a mutex; contains() is async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fork_gate.h"
#include "base/result.h"

namespace hindsight::jit {

class CodeAllocation;
class CodeArena;

inline constexpr size_t kHugeCodePage = size_t{2} << 20;

// Leave to write into an allocation, as long as it exists: on the thread that made it, for something short.
class CodeWriting {
 public:
  // Precondition: the allocation is not empty. Throws std::bad_alloc where there has been a fork since it was allocated
  // and there is no memory for a copy of its chunk.
  explicit CodeWriting(const CodeAllocation& allocation);
  CodeWriting(const CodeWriting&) = delete;
  CodeWriting& operator=(const CodeWriting&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  const InsideForkGate inside_;
  std::span<std::byte> bytes_;
};

// A piece of the arena, freed by its destructor. Two addresses for the same bytes, as different types.
class CodeAllocation {
 public:
  CodeAllocation() = default;
  CodeAllocation(CodeAllocation&& other) noexcept;
  CodeAllocation& operator=(CodeAllocation&& other) noexcept;
  ~CodeAllocation();

  explicit operator bool() const { return arena_ != nullptr; }
  // Nothing is written without it.
  CodeWriting write() const { return CodeWriting(*this); }
  // Addresses alone, and for reading.
  std::span<std::byte> writable() const { return {writable_, size_}; }
  const std::byte* executable() const { return executable_; }
  size_t size() const { return size_; }

 private:
  friend class CodeArena;
  friend class CodeWriting;
  CodeArena* arena_ = nullptr;  // outlives its allocations
  std::byte* writable_ = nullptr;
  const std::byte* executable_ = nullptr;
  size_t size_ = 0;
};

class CodeArena {
 public:
  // Reserves address space only; pages are committed as they are written. Error kResource.
  static Result<std::unique_ptr<CodeArena>> create(size_t reserve_bytes = size_t{512} << 20);
  ~CodeArena();
  CodeArena(const CodeArena&) = delete;
  CodeArena& operator=(const CodeArena&) = delete;

  // At least `bytes`, aligned (power of two, at most a page). Error kResource when the reservation is full, or the
  // system has no memory for another chunk.
  Result<CodeAllocation> allocate(size_t bytes, size_t alignment = 64);
  // One piece of each size, one after the other with nothing but rounding to 64 bytes between them. The first one is
  // aligned (power of two, at most kHugeCodePage). Each is freed by itself. Error kResource.
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
  friend class CodeWriting;
  struct Impl;
  Result<size_t> take(size_t length, size_t alignment);
  CodeAllocation piece(size_t offset, size_t length);
  explicit CodeArena(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hindsight::jit
