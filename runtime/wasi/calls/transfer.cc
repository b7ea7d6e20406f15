// Reading and writing.
//
// Whether a call waits is decided here and not by the host descriptor. kNonblock is a flag of the guest's
// entry. On the host it would belong to the open file and so to everyone who shares a standard stream. So
// every transfer on something that can block first waits (or looks) through wait.h, which the embedder can
// interrupt. Only then it moves bytes.
//
// A write to a pipe that may be in blocking mode goes in pieces of PIPE_BUF. POLLOUT promises room for that
// many, so the write itself never blocks.
#include <limits.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file_size_guard.h"
#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/sigpipe_guard.h"
#include "runtime/wasi/wait.h"

namespace hindsight::wasi::calls {
namespace {

// Linux moves no more than this in one call; a guest sees a short count, as it would natively.
constexpr uint64_t kMaxTransfer = 0x7ffff000;

// The guest's vectors as host vectors, each checked. At most IOV_MAX that are not empty and kMaxTransfer
// bytes are taken: the transfer is short then, never wrong. The answer is the number of bytes.
Answer<uint64_t> gather(GuestMemory memory, uint32_t iovs, uint32_t count, std::vector<iovec>& out) {
  namespace field = layout::iovec;
  out.clear();
  if (!memory.contains(iovs, uint64_t{count} * field::kSize)) return std::unexpected(Errno::kFault);
  uint64_t total = 0;
  for (uint64_t i = 0; i < count && out.size() < IOV_MAX && total < kMaxTransfer; i++) {
    const uint64_t at = iovs + i * field::kSize;
    const auto buffer = memory.load<uint32_t>(at + field::kBuf);
    const auto length = memory.load<uint32_t>(at + field::kLen);
    if (!buffer || !length || !memory.contains(*buffer, *length)) return std::unexpected(Errno::kFault);
    const uint64_t taken = std::min<uint64_t>(*length, kMaxTransfer - total);
    if (taken == 0) continue;
    out.push_back({.iov_base = memory.base + *buffer, .iov_len = static_cast<size_t>(taken)});
    total += taken;
  }
  return total;
}

struct Transfer {
  WasiContext& context;
  FdEntry& entry;
  std::vector<iovec>& vectors;
  uint64_t total;               // bytes in vectors; not 0
  std::optional<off_t> offset;  // where, for the positioned calls
};

bool nonblocking(const FdEntry& entry) {
  return entry.flags & fdflags::kNonblock;
}

// Carries on after EINTR or EAGAIN, or says why not.
Errno after_failure(const Transfer& transfer) {
  if (errno == EINTR) return transfer.context.interrupted() ? Errno::kIntr : Errno::kSuccess;
  // Somebody else was faster, or the host descriptor is in nonblocking mode: wait again.
  if (errno == EAGAIN && !transfer.entry.always_ready() && !nonblocking(transfer.entry))
    return Errno::kSuccess;
  return last_errno();
}

Answer<uint64_t> read_host(const Transfer& transfer) {
  const int fd = transfer.entry.fd.get();
  const int count = static_cast<int>(transfer.vectors.size());
  while (true) {
    if (!transfer.offset && !transfer.entry.always_ready()) {
      const Errno ready = wait_for_one(transfer.context, fd, POLLIN, nonblocking(transfer.entry));
      if (ready != Errno::kSuccess) return std::unexpected(ready);
    }
    const ssize_t got = transfer.offset ? ::preadv(fd, transfer.vectors.data(), count, *transfer.offset)
                                        : ::readv(fd, transfer.vectors.data(), count);
    if (got >= 0) return static_cast<uint64_t>(got);
    const Errno reason = after_failure(transfer);
    if (reason != Errno::kSuccess) return std::unexpected(reason);
  }
}

Answer<uint64_t> read_text(const Transfer& transfer) {
  FdEntry& entry = transfer.entry;
  uint64_t moved = 0;
  for (const iovec& vector : transfer.vectors) {
    const size_t step = std::min(vector.iov_len, entry.text.size() - entry.text_position);
    if (step == 0) break;
    std::memcpy(vector.iov_base, entry.text.data() + entry.text_position, step);
    entry.text_position += step;
    moved += step;
  }
  return moved;
}

Answer<uint64_t> write_file(const Transfer& transfer) {
  const FileSizeGuard guard;
  const int fd = transfer.entry.fd.get();
  const int count = static_cast<int>(transfer.vectors.size());
  while (true) {
    const ssize_t put = transfer.offset ? ::pwritev(fd, transfer.vectors.data(), count, *transfer.offset)
                                        : ::writev(fd, transfer.vectors.data(), count);
    if (put >= 0) return static_cast<uint64_t>(put);
    const Errno reason = after_failure(transfer);
    if (reason != Errno::kSuccess) return std::unexpected(reason);
  }
}

Answer<uint64_t> write_stream(const Transfer& transfer) {
  SigpipeGuard guard;
  const int fd = transfer.entry.fd.get();
  uint64_t moved = 0;
  size_t vector = 0;
  size_t inside = 0;  // bytes of the present vector that are written
  while (moved < transfer.total) {
    Errno reason = wait_for_one(transfer.context, fd, POLLOUT, nonblocking(transfer.entry));
    if (reason == Errno::kSuccess) {
      const iovec& present = transfer.vectors[vector];
      const size_t piece = std::min<size_t>(present.iov_len - inside, PIPE_BUF);
      const ssize_t put = ::write(fd, static_cast<const char*>(present.iov_base) + inside, piece);
      if (put >= 0) {
        moved += static_cast<uint64_t>(put);
        inside += static_cast<size_t>(put);
        if (inside == present.iov_len) {
          vector++;
          inside = 0;
        }
        continue;
      }
      if (errno == EPIPE) guard.note_broken_pipe();
      reason = after_failure(transfer);
      if (reason == Errno::kSuccess) continue;
    }
    // What is out is out: the guest hears of the failure at its next write.
    if (moved > 0) break;
    return std::unexpected(reason);
  }
  return moved;
}

Answer<uint64_t> write_sink(const Transfer& transfer) {
  for (const iovec& vector : transfer.vectors)
    transfer.entry.sink(std::span(static_cast<const std::byte*>(vector.iov_base), vector.iov_len));
  return transfer.total;
}

Answer<uint64_t> read(const Transfer& transfer) {
  if (transfer.entry.kind == FdEntry::Kind::kText) {
    if (transfer.offset) return std::unexpected(Errno::kSpipe);
    return read_text(transfer);
  }
  return read_host(transfer);
}

Answer<uint64_t> write(const Transfer& transfer) {
  if (transfer.entry.kind == FdEntry::Kind::kSink) {
    if (transfer.offset) return std::unexpected(Errno::kSpipe);
    return write_sink(transfer);
  }
  return transfer.offset || transfer.entry.always_ready() ? write_file(transfer) : write_stream(transfer);
}

Errno run(WasiContext& context, GuestMemory memory, uint32_t fd, uint64_t wanted, uint32_t iovs,
          uint32_t count, std::optional<uint64_t> offset, uint32_t done,
          Answer<uint64_t> (*move)(const Transfer&)) {
  const auto entry = context.fds().get(fd, wanted);
  if (!entry) return entry.error();
  if (offset && *offset > INT64_MAX) return Errno::kInval;
  if (!memory.contains(done, sizeof(uint32_t))) return Errno::kFault;
  // While this call waits others are made.
  std::vector<iovec> vectors = std::exchange(context.iovec_scratch(), {});
  const auto total = gather(memory, iovs, count, vectors);
  if (!total) return total.error();
  Answer<uint64_t> moved = uint64_t{0};
  if (*total > 0) {
    std::optional<off_t> host_offset;
    if (offset) host_offset = static_cast<off_t>(*offset);
    moved = move({context, **entry, vectors, *total, host_offset});
  }
  context.iovec_scratch() = std::move(vectors);
  if (!moved) return moved.error();
  return memory.store(done, static_cast<uint32_t>(*moved)) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace

Errno fd_read(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t iovs, uint32_t count,
              uint32_t done) {
  return run(context, memory, fd, rights::kFdRead, iovs, count, std::nullopt, done, &read);
}

Errno fd_pread(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t iovs, uint32_t count,
               uint64_t offset, uint32_t done) {
  return run(context, memory, fd, rights::kFdRead | rights::kFdSeek, iovs, count, offset, done, &read);
}

Errno fd_write(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t iovs, uint32_t count,
               uint32_t done) {
  return run(context, memory, fd, rights::kFdWrite, iovs, count, std::nullopt, done, &write);
}

// With kAppend Linux writes at the end whatever the offset; POSIX would write at the offset. Both are told
// apart by no portable program, so the host's way is kept.
Errno fd_pwrite(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t iovs, uint32_t count,
                uint64_t offset, uint32_t done) {
  return run(context, memory, fd, rights::kFdWrite | rights::kFdSeek, iovs, count, offset, done, &write);
}

}  // namespace hindsight::wasi::calls
