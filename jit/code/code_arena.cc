#include "jit/code/code_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/system_failures.h"

namespace hindsight::jit {
namespace {

constexpr size_t kGranule = 64;  // a cache line: two versions never share one
constexpr size_t kPage = 4096;
// A freed range at least this long gives its pages back.
constexpr size_t kPunchBytes = size_t{64} << 10;
constexpr int kBreakpoint = 0xcc;
// Pages are made writable in batches, because a fault for each takes a tenth of the time of compiling. A batch is as much again as is in
// use, within these bounds.
constexpr size_t kLeastBatch = size_t{64} << 10;
constexpr size_t kLargestBatch = size_t{1} << 20;

constexpr size_t round_up(size_t n, size_t to) {
  return (n + to - 1) & ~(to - 1);
}

// Reserves addresses for a view, without memory, that begin at a multiple of kHugeCodePage. So what lies together in a huge page of a chunk
// does so in every view. Null: errno says why.
std::byte* reserve_view(size_t bytes) {
  const size_t room = bytes + kHugeCodePage;
  void* const reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = round_up(begin, kHugeCodePage);
  // Refused only where a process may have no more mappings: then these addresses stay taken, and nothing else.
  if (aligned != begin) munmap(reserved, aligned - begin);
  if (const size_t behind = begin + room - (aligned + bytes); behind != 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  return reinterpret_cast<std::byte*>(aligned);
}

std::byte* new_shared_memory(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Takes what is mapped at `memory` to both views, in place of what is mapped there. False: errno says why, `memory` is
// gone, and each view has either what it had or the new memory.
bool map_in_views(std::byte* memory, size_t bytes, std::byte* writable, std::byte* executable) {
  // A length of 0 maps the same pages once more.
  void* const second = mremap(memory, 0, bytes, MREMAP_MAYMOVE);
  bool mapped = false;
  if (second != MAP_FAILED) {
    // Executable before it is where threads may run, which then notice nothing: pages are exchanged in one step.
    mapped = mprotect(second, bytes, PROT_READ | PROT_EXEC) == 0 &&
             mremap(second, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, executable) != MAP_FAILED;
    if (!mapped) {
      const int error = errno;
      munmap(second, bytes);
      errno = error;
    }
  }
  if (mapped && mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, writable) != MAP_FAILED)
    return true;
  const int error = errno;
  munmap(memory, bytes);
  errno = error;
  return false;
}

}  // namespace

struct CodeArena::Impl {
  size_t reserved = 0;
  std::byte* writable = nullptr;    // constant after create()
  std::byte* executable = nullptr;  // constant after create(), so contains() needs no lock
  ForkGate& gate = ForkGate::of_process();
  // For each chunk: 0 while it is not mapped, else one more than the number of forks before it was made. Written under the mutex and inside
  // the gate. Read inside the gate without the mutex: release and acquire, so that who finds a chunk its own finds its bytes.
  std::unique_ptr<std::atomic<uint64_t>[]> chunks;

  // Always taken inside the gate, so that no child finds it locked.
  mutable std::mutex mutex;                            // protects what follows
  size_t lost = 0;                                     // bytes that nobody uses and nobody can have any more
  std::map<size_t, size_t> free_by_offset;             // offset -> length, never adjacent
  std::set<std::pair<size_t, size_t>> free_by_length;  // (length, offset), the same ranges
  size_t in_use = 0;
  size_t populated = 0;  // pages up to here were asked for, in bytes from the start
  std::map<const void*, const std::byte*> near_entries;

  ~Impl() {
    if (writable) munmap(writable, reserved);
    if (executable) munmap(executable, reserved);
  }

  size_t chunk_bytes(size_t chunk) const { return std::min(kHugeCodePage, reserved - chunk * kHugeCodePage); }

  // Inside the gate. Whether this process alone has the chunks of these bytes, which are not empty.
  bool own(size_t offset, size_t length) const {
    const uint64_t now = gate.forks() + 1;
    for (size_t c = offset / kHugeCodePage; c <= (offset + length - 1) / kHugeCodePage; ++c)
      if (chunks[c].load(std::memory_order_acquire) != now) return false;
    return true;
  }

  // Inside the gate, with the mutex held: makes them so. False: errno says why; some may be by now.
  bool make_own(size_t offset, size_t length) {
    const uint64_t now = gate.forks() + 1;
    for (size_t c = offset / kHugeCodePage; c <= (offset + length - 1) / kHugeCodePage; ++c) {
      const uint64_t made = chunks[c].load(std::memory_order_relaxed);
      if (made == now) continue;
      const size_t begin = c * kHugeCodePage;
      std::byte* const memory = new_shared_memory(chunk_bytes(c));
      if (memory == nullptr) return false;
      if (made != 0) copy_used(begin, begin + chunk_bytes(c), memory);
      if (!map_in_views(memory, chunk_bytes(c), writable + begin, executable + begin)) return false;
      chunks[c].store(now, std::memory_order_release);
    }
    return true;
  }

  // Copies to `to` what lies from begin to end, but for the pages of long free ranges, which are zero as in the original (release()).
  // Precondition: the mutex is held.
  void copy_used(size_t begin, size_t end, std::byte* to) const {
    size_t at = begin;
    const auto copy_to = [&](size_t until) {
      if (until > at) std::memcpy(to + (at - begin), writable + at, until - at);
    };
    auto it = free_by_offset.upper_bound(begin);
    if (it != free_by_offset.begin()) --it;
    for (; it != free_by_offset.end() && it->first < end; ++it) {
      if (it->second < kPunchBytes) continue;
      const size_t hole_begin = round_up(std::max(it->first, begin), kPage);
      const size_t hole_end = std::min(it->first + it->second, end) & ~(kPage - 1);
      if (hole_end <= hole_begin) continue;
      copy_to(hole_begin);
      at = hole_end;
    }
    copy_to(end);
  }

  // With the mutex held.
  // Pieces are freed by destructors: where there is no memory to note a free range, it stays out of use.
  void insert_free(size_t offset, size_t length) noexcept {
    try {
      const auto it = free_by_offset.emplace(offset, length).first;
      try {
        free_by_length.emplace(length, offset);
        return;
      } catch (const std::bad_alloc&) {
        free_by_offset.erase(it);
      }
    } catch (const std::bad_alloc&) {
    }
    lost += length;
  }
  // A free range's nodes, to be put back as another one's: a moment without memory must not cost what all later code needs.
  struct Nodes {
    std::map<size_t, size_t>::node_type by_offset;
    std::set<std::pair<size_t, size_t>>::node_type by_length;
  };
  Nodes take_nodes(std::map<size_t, size_t>::iterator it) {
    auto by_length = free_by_length.extract({it->second, it->first});
    return {free_by_offset.extract(it), std::move(by_length)};
  }
  void put(Nodes nodes, size_t offset, size_t length) {
    nodes.by_offset.key() = offset;
    nodes.by_offset.mapped() = length;
    nodes.by_length.value() = {length, offset};
    free_by_offset.insert(std::move(nodes.by_offset));
    free_by_length.insert(std::move(nodes.by_length));
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

  // With the mutex held; these bytes' chunks are this process's.
  void populate(size_t offset, size_t end) {
    if (end <= populated) return;
    // Others in front of it, if they are not mapped yet, are left to whoever allocates them.
    const size_t begin = std::max(populated, offset & ~(kPage - 1));
    const size_t mapped = std::min(round_up(end, kHugeCodePage), reserved);
    size_t bytes = round_up(end - begin, kPage) + std::clamp(in_use, kLeastBatch, kLargestBatch);
    bytes = std::min(bytes & ~(kPage - 1), mapped - begin);
#ifdef MADV_POPULATE_WRITE
    // Only an optimization: where the kernel does not know it, or has no memory, writing faults as it always did.
    (void)madvise(writable + begin, bytes, MADV_POPULATE_WRITE);
#endif
    populated = begin + bytes;
  }

  void release(size_t offset, size_t length) {
    const InsideForkGate inside(gate);
    if (!own(offset, length)) {
      const std::lock_guard lock(mutex);
      // Without memory for a copy it stays as it is: taken, and never written.
      if (!make_own(offset, length)) return count_system_failure(SystemFailure::kCodeRelease, errno);
    }
    // A stale jump into freed code stops at once instead of running whatever comes next.
    std::memset(writable + offset, kBreakpoint, length);
    if (length >= kPunchBytes) {
      const size_t begin = round_up(offset, kPage);
      const size_t end = (offset + length) & ~(kPage - 1);
      // Only an optimization: if the kernel refuses (as of locked memory), the pages stay.
      if (madvise(writable + begin, end - begin, MADV_REMOVE) != 0)
        count_system_failure(SystemFailure::kCodeRelease, errno);
    }
    const std::lock_guard lock(mutex);
    in_use -= length;
    std::optional<Nodes> neighbour;
    auto next = free_by_offset.lower_bound(offset);
    if (next != free_by_offset.end() && next->first == offset + length) {
      length += next->second;
      const auto adjacent = next++;
      neighbour = take_nodes(adjacent);
    }
    if (next != free_by_offset.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        length += previous->second;
        neighbour = take_nodes(previous);
      }
    }
    if (neighbour)
      put(std::move(*neighbour), offset, length);
    else
      insert_free(offset, length);
  }
};

CodeWriting::CodeWriting(const CodeAllocation& allocation)
    : inside_(allocation.arena_->impl_->gate), bytes_(allocation.writable()) {
  CodeArena::Impl& impl = *allocation.arena_->impl_;
  const auto offset = static_cast<size_t>(bytes_.data() - impl.writable);
  if (impl.own(offset, bytes_.size())) [[likely]]
    return;
  const std::lock_guard lock(impl.mutex);
  if (!impl.make_own(offset, bytes_.size())) throw std::bad_alloc();
}

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
  if (!impl->gate.watches())
    return make_error(ErrorKind::kResource, "cannot ask to be told of forks", "code arena");
  impl->reserved = round_up(std::max(reserve_bytes, kPage), kPage);
  impl->chunks =
      std::make_unique<std::atomic<uint64_t>[]>((impl->reserved + kHugeCodePage - 1) / kHugeCodePage);
  impl->writable = reserve_view(impl->reserved);
  if (impl->writable == nullptr) return fail("cannot reserve the writable view of code");
  impl->executable = reserve_view(impl->reserved);
  if (impl->executable == nullptr) return fail("cannot reserve the executable view of code");
  impl->insert_free(0, impl->reserved);
  return std::unique_ptr<CodeArena>(new CodeArena(std::move(impl)));
}

// The offset of a range that is free no more. `length` is a multiple of the granule. Inside the gate, with the mutex
// held.
Result<size_t> CodeArena::take(size_t length, size_t alignment) {
  // Best fit among the ranges that surely have an aligned piece: O(log n), and free ranges are granules.
  const auto fit = impl_->free_by_length.lower_bound({length + alignment - kGranule, 0});
  if (fit == impl_->free_by_length.end())
    return make_error(ErrorKind::kResource, "code memory is full", "code arena");
  const auto [free_length, free_offset] = *fit;
  const size_t offset = round_up(free_offset, alignment);
  const size_t end = offset + length;
  if (!impl_->make_own(offset, length))
    return make_error(ErrorKind::kResource, std::string("no memory for code: ") + std::strerror(errno),
                      "code arena");
  if (offset == free_offset && length < free_length) {
    impl_->shorten_free(fit, length);
  } else {
    // What is longer of the rest has the range's nodes.
    Impl::Nodes nodes = impl_->take_nodes(impl_->free_by_offset.find(free_offset));
    const size_t front = offset - free_offset, back = free_offset + free_length - end;
    if (back > front) {
      impl_->put(std::move(nodes), end, back);
      if (front != 0) impl_->insert_free(free_offset, front);
    } else if (front != 0) {
      impl_->put(std::move(nodes), free_offset, front);
      if (back != 0) impl_->insert_free(end, back);
    }
  }
  impl_->in_use += length;
  impl_->populate(offset, end);
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
  const InsideForkGate inside(impl_->gate);
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
  const InsideForkGate inside(impl_->gate);
  const std::lock_guard lock(impl_->mutex);
  HINDSIGHT_ASSIGN(size_t offset, take(total, std::max(alignment, kGranule)));
  for (const size_t length : lengths) {
    pieces.push_back(piece(offset, length));
    offset += length;
  }
  return pieces;
}

Result<const std::byte*> CodeArena::near_entry(const void* function) {
  const InsideForkGate inside(impl_->gate);
  {
    const std::lock_guard lock(impl_->mutex);
    const auto it = impl_->near_entries.find(function);
    if (it != impl_->near_entries.end()) return it->second;
  }
  HINDSIGHT_ASSIGN(CodeAllocation memory, allocate(kGranule));
  // jmp [rip]; the address
  constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};
  const CodeWriting writing = memory.write();
  std::memcpy(writing.bytes().data(), kJump, sizeof kJump);
  std::memcpy(writing.bytes().data() + sizeof kJump, &function, sizeof function);
  // Declared after `memory`, so that the lock ends first: where another thread was faster, `memory` frees itself.
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
  const InsideForkGate inside(impl_->gate);
  const std::lock_guard lock(impl_->mutex);
  return impl_->in_use;
}

}  // namespace hindsight::jit
