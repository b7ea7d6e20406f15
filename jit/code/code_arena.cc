#include "jit/code/code_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace hindsight::jit {
namespace {

constexpr size_t kGranule = 64;  // a cache line: two versions never share one
constexpr size_t kPage = 4096;
// A freed range at least this long gives its pages back.
constexpr size_t kPunchBytes = size_t{64} << 10;
constexpr int kBreakpoint = 0xcc;
// Pages are made writable in batches, a fault for each being a tenth of the time that compiling takes: as
// much again as is in use, within these bounds.
constexpr size_t kLeastBatch = size_t{64} << 10;
constexpr size_t kLargestBatch = size_t{1} << 20;

constexpr size_t round_up(size_t n, size_t to) {
  return (n + to - 1) & ~(to - 1);
}

int open_memory_file() {
  // Kernels since 6.3 may make memfds non-executable unless asked; older ones refuse the flag.
  constexpr unsigned kMfdExec = 0x10;
  const int fd = memfd_create("hindsight-code", MFD_CLOEXEC | kMfdExec);
  if (fd >= 0 || errno != EINVAL) return fd;
  return memfd_create("hindsight-code", MFD_CLOEXEC);
}

// The file's `bytes` at an address that is a multiple of kHugeCodePage: what lies together in a huge page of
// the file does so in every view. Null: errno says why.
std::byte* map_view(int fd, size_t bytes, int protection) {
  const size_t room = bytes + kHugeCodePage;
  void* const reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = round_up(begin, kHugeCodePage);
  void* const view = mmap(reinterpret_cast<void*>(aligned), bytes, protection,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  const int error = errno;
  if (view == MAP_FAILED) {
    munmap(reserved, room);
    errno = error;
    return nullptr;
  }
  if (aligned != begin) munmap(reserved, aligned - begin);
  if (const size_t behind = begin + room - (aligned + bytes); behind != 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  return static_cast<std::byte*>(view);
}

}  // namespace

struct CodeArena::Impl {
  int fd = -1;
  size_t reserved = 0;
  std::byte* writable = nullptr;    // constant after create()
  std::byte* executable = nullptr;  // constant after create(), so contains() needs no lock

  mutable std::mutex mutex;                            // protects what follows
  std::map<size_t, size_t> free_by_offset;             // offset -> length, never adjacent
  std::set<std::pair<size_t, size_t>> free_by_length;  // (length, offset), the same ranges
  size_t in_use = 0;
  size_t populated = 0;  // pages from the start on that were asked for, in bytes
  std::map<const void*, const std::byte*> near_entries;

  ~Impl() {
    if (writable) munmap(writable, reserved);
    if (executable) munmap(executable, reserved);
    if (fd >= 0) close(fd);
  }

  // With the mutex held.
  void insert_free(size_t offset, size_t length) {
    free_by_offset.emplace(offset, length);
    free_by_length.emplace(length, offset);
  }
  std::map<size_t, size_t>::iterator erase_free(std::map<size_t, size_t>::iterator it) {
    free_by_length.erase({it->second, it->first});
    return free_by_offset.erase(it);
  }
  // Takes `bytes` off the front of a free range, by far the commonest way to allocate: no node is made or
  // freed.
  void shorten_free(std::set<std::pair<size_t, size_t>>::iterator it, size_t bytes) {
    auto by_offset = free_by_offset.extract(it->second);
    auto by_length = free_by_length.extract(it);
    by_offset.key() += bytes;
    by_offset.mapped() -= bytes;
    by_length.value() = {by_offset.mapped(), by_offset.key()};
    free_by_offset.insert(std::move(by_offset));
    free_by_length.insert(std::move(by_length));
  }

  void populate(size_t end) {
    if (end <= populated) return;
    size_t bytes = round_up(end - populated, kPage) + std::clamp(in_use, kLeastBatch, kLargestBatch);
    bytes = std::min(bytes & ~(kPage - 1), reserved - populated);
#ifdef MADV_POPULATE_READ
    // Pages that are there already are mapped many at a time, and writable at once since the mapping is
    // shared; with MADV_POPULATE_WRITE each is a fault of its own (3.1 us a page where this takes 2.4).
    // Nobody has had these pages yet, so that the zeros overwrite nothing. Only an optimization: where the
    // kernel does not know it, or has no memory, writing faults as it always did.
    static constexpr char kZeros[64 << 10] = {};
    for (size_t at = populated; at < populated + bytes;) {
      const ssize_t written =
          pwrite(fd, kZeros, std::min(sizeof kZeros, populated + bytes - at), static_cast<off_t>(at));
      if (written <= 0) break;
      at += static_cast<size_t>(written);
    }
    (void)madvise(writable + populated, bytes, MADV_POPULATE_READ);
#endif
    populated += bytes;
  }

  void release(size_t offset, size_t length) {
    // A stale jump into freed code stops at once instead of running whatever comes next.
    std::memset(writable + offset, kBreakpoint, length);
    if (length >= kPunchBytes) {
      const size_t begin = round_up(offset, kPage);
      const size_t end = (offset + length) & ~(kPage - 1);
      // Only an optimization: if the file system refuses, the pages stay.
      (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                      static_cast<off_t>(end - begin));
    }
    const std::lock_guard lock(mutex);
    in_use -= length;
    auto next = free_by_offset.lower_bound(offset);
    if (next != free_by_offset.end() && next->first == offset + length) {
      length += next->second;
      next = erase_free(next);
    }
    if (next != free_by_offset.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        length += previous->second;
        erase_free(previous);
      }
    }
    insert_free(offset, length);
  }
};

CodeAllocation::CodeAllocation(CodeAllocation&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      writable_(std::exchange(other.writable_, nullptr)),
      executable_(std::exchange(other.executable_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

CodeAllocation& CodeAllocation::operator=(CodeAllocation&& other) noexcept {
  CodeAllocation taken(std::move(other));
  std::swap(arena_, taken.arena_);
  std::swap(writable_, taken.writable_);
  std::swap(executable_, taken.executable_);
  std::swap(size_, taken.size_);
  return *this;
}

CodeAllocation::~CodeAllocation() {
  if (arena_) arena_->impl_->release(static_cast<size_t>(writable_ - arena_->impl_->writable), size_);
}

CodeArena::CodeArena(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CodeArena::~CodeArena() = default;

Result<std::unique_ptr<CodeArena>> CodeArena::create(size_t reserve_bytes) {
  const auto fail = [](const char* what) {
    return make_error(ErrorKind::kResource, std::string(what) + ": " + std::strerror(errno), "code arena");
  };
  auto impl = std::make_unique<Impl>();
  impl->reserved = round_up(std::max(reserve_bytes, kPage), kPage);
  impl->fd = open_memory_file();
  if (impl->fd < 0) return fail("cannot create the memory file for code");
  if (ftruncate(impl->fd, static_cast<off_t>(impl->reserved)) != 0)
    return fail("cannot size the code memory");

  impl->writable = map_view(impl->fd, impl->reserved, PROT_READ | PROT_WRITE);
  if (impl->writable == nullptr) return fail("cannot map the writable view of code");
  impl->executable = map_view(impl->fd, impl->reserved, PROT_READ | PROT_EXEC);
  if (impl->executable == nullptr) return fail("cannot map the executable view of code");
  impl->insert_free(0, impl->reserved);
  return std::unique_ptr<CodeArena>(new CodeArena(std::move(impl)));
}

// The offset of a range that is free no more. `length` is a multiple of the granule. With the mutex held.
Result<size_t> CodeArena::take(size_t length, size_t alignment) {
  // Best fit among the ranges that surely have an aligned piece: O(log n), and free ranges are granules.
  const auto fit = impl_->free_by_length.lower_bound({length + alignment - kGranule, 0});
  if (fit == impl_->free_by_length.end())
    return make_error(ErrorKind::kResource, "code memory is full", "code arena");
  const auto [free_length, free_offset] = *fit;
  const size_t offset = round_up(free_offset, alignment);
  const size_t end = offset + length;
  if (offset == free_offset && length < free_length) {
    impl_->shorten_free(fit, length);
  } else {
    impl_->erase_free(impl_->free_by_offset.find(free_offset));
    if (offset > free_offset) impl_->insert_free(free_offset, offset - free_offset);
    if (end < free_offset + free_length) impl_->insert_free(end, free_offset + free_length - end);
  }
  impl_->in_use += length;
  impl_->populate(end);
  return offset;
}

CodeAllocation CodeArena::piece(size_t offset, size_t length) {
  CodeAllocation allocation;
  allocation.arena_ = this;
  allocation.writable_ = impl_->writable + offset;
  allocation.executable_ = impl_->executable + offset;
  allocation.size_ = length;
  return allocation;
}

Result<CodeAllocation> CodeArena::allocate(size_t bytes, size_t alignment) {
  const size_t length = round_up(std::max<size_t>(bytes, 1), kGranule);
  if (length < bytes) return make_error(ErrorKind::kResource, "code memory is full", "code arena");
  const std::lock_guard lock(impl_->mutex);
  HINDSIGHT_ASSIGN(const size_t offset, take(length, std::max(alignment, kGranule)));
  return piece(offset, length);
}

Result<std::vector<CodeAllocation>> CodeArena::allocate_together(std::span<const size_t> sizes,
                                                                 size_t alignment) {
  std::vector<size_t> lengths;
  size_t total = 0;
  for (const size_t bytes : sizes) {
    const size_t length = round_up(std::max<size_t>(bytes, 1), kGranule);
    if (length < bytes || length > impl_->reserved - total)
      return make_error(ErrorKind::kResource, "code memory is full", "code arena");
    lengths.push_back(length);
    total += length;
  }
  std::vector<CodeAllocation> pieces;
  if (lengths.empty()) return pieces;
  pieces.reserve(lengths.size());
  const std::lock_guard lock(impl_->mutex);
  HINDSIGHT_ASSIGN(size_t offset, take(total, std::max(alignment, kGranule)));
  for (const size_t length : lengths) {
    pieces.push_back(piece(offset, length));
    offset += length;
  }
  return pieces;
}

Result<const std::byte*> CodeArena::near_entry(const void* function) {
  {
    const std::lock_guard lock(impl_->mutex);
    const auto it = impl_->near_entries.find(function);
    if (it != impl_->near_entries.end()) return it->second;
  }
  HINDSIGHT_ASSIGN(CodeAllocation memory, allocate(kGranule));
  // jmp [rip]; the address
  constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(memory.writable().data(), kJump, sizeof kJump);
  std::memcpy(memory.writable().data() + sizeof kJump, &function, sizeof function);
  // Behind `memory`, so that the lock ends first: where another thread was faster, `memory` frees itself.
  const std::lock_guard lock(impl_->mutex);
  const auto [it, inserted] = impl_->near_entries.try_emplace(function, memory.executable());
  if (inserted) {
    impl_->in_use -= memory.size();
    memory.arena_ = nullptr;  // the arena's own from now on
  }
  return it->second;
}

bool CodeArena::contains(const void* executable_address) const noexcept {
  const auto* address = static_cast<const std::byte*>(executable_address);
  return address >= impl_->executable && address < impl_->executable + impl_->reserved;
}
const std::byte* CodeArena::executable_begin() const noexcept {
  return impl_->executable;
}
const std::byte* CodeArena::executable_end() const noexcept {
  return impl_->executable + impl_->reserved;
}
size_t CodeArena::bytes_in_use() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->in_use;
}

}  // namespace hindsight::jit
