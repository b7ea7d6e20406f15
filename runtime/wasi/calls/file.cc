// Calls about the file that a descriptor refers to, except for its contents.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file_size_guard.h"
#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/calls/filestat.h"
#include "runtime/wasi/calls/times.h"

namespace hindsight::wasi {
namespace {

// A time the guest cannot express is told as 0, not as an error: one odd time must not hide a file.
uint64_t saturated(timespec time) {
  return to_nanoseconds(time).value_or(0);
}

// Runs a call again that a signal cut short, unless the embedder meant it.
template <typename Call>
Errno restarting(const WasiContext& context, Call call) {
  while (call() != 0) {
    if (errno != EINTR) return last_errno();
    if (context.interrupted()) return Errno::kIntr;
  }
  return Errno::kSuccess;
}

// The entry of a host file that has the rights; `otherwise` for one that lives in this process only.
Answer<FdEntry*> host_entry(WasiContext& context, uint32_t fd, uint64_t wanted, Errno otherwise) {
  auto entry = context.fds().get(fd, wanted);
  if (entry && (*entry)->kind != FdEntry::Kind::kHost) return std::unexpected(otherwise);
  return entry;
}

}  // namespace

Errno store_filestat(GuestMemory memory, uint64_t at, const struct stat& status, Filetype type,
                     const layout::Filestat& to) {
  const uint8_t zeros[layout::kFilestat.size] = {};
  if (!memory.store_bytes(at, zeros, to.size)) return Errno::kFault;
  const auto links = static_cast<uint64_t>(status.st_nlink);
  const bool stored =
      memory.store(at + to.dev, static_cast<uint64_t>(status.st_dev)) &&
      memory.store(at + to.ino, static_cast<uint64_t>(status.st_ino)) &&
      memory.store(at + to.filetype, type) &&
      (to.nlink_bytes == 8
           ? memory.store(at + to.nlink, links)
           : memory.store(at + to.nlink, static_cast<uint32_t>(std::min<uint64_t>(links, UINT32_MAX)))) &&
      memory.store(at + to.file_size, static_cast<uint64_t>(status.st_size)) &&
      memory.store(at + to.atim, saturated(status.st_atim)) &&
      memory.store(at + to.mtim, saturated(status.st_mtim)) &&
      memory.store(at + to.ctim, saturated(status.st_ctim));
  return stored ? Errno::kSuccess : Errno::kFault;
}

namespace calls {

Errno fd_advise(WasiContext& context, GuestMemory, uint32_t fd, uint64_t offset, uint64_t length,
                uint32_t advice) {
  const auto entry = host_entry(context, fd, rights::kFdAdvise, Errno::kSpipe);
  if (!entry) return entry.error();
  int host_advice = 0;
  switch (advice) {
    case static_cast<uint32_t>(Advice::kNormal):
      host_advice = POSIX_FADV_NORMAL;
      break;
    case static_cast<uint32_t>(Advice::kSequential):
      host_advice = POSIX_FADV_SEQUENTIAL;
      break;
    case static_cast<uint32_t>(Advice::kRandom):
      host_advice = POSIX_FADV_RANDOM;
      break;
    case static_cast<uint32_t>(Advice::kWillNeed):
      host_advice = POSIX_FADV_WILLNEED;
      break;
    case static_cast<uint32_t>(Advice::kDontNeed):
      host_advice = POSIX_FADV_DONTNEED;
      break;
    case static_cast<uint32_t>(Advice::kNoReuse):
      host_advice = POSIX_FADV_NOREUSE;
      break;
    default:
      return Errno::kInval;
  }
  if (offset > INT64_MAX || length > INT64_MAX) return Errno::kInval;
  return from_host(::posix_fadvise((*entry)->fd.get(), static_cast<off_t>(offset), static_cast<off_t>(length),
                                   host_advice));
}

Errno fd_allocate(WasiContext& context, GuestMemory, uint32_t fd, uint64_t offset, uint64_t length) {
  const auto entry = host_entry(context, fd, rights::kFdAllocate, Errno::kSpipe);
  if (!entry) return entry.error();
  if (length == 0 || length > INT64_MAX || offset > INT64_MAX) return Errno::kInval;
  const FileSizeGuard guard;
  return restarting(context, [&] {
    return ::fallocate((*entry)->fd.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  });
}

Errno fd_datasync(WasiContext& context, GuestMemory, uint32_t fd) {
  const auto entry = host_entry(context, fd, rights::kFdDatasync, Errno::kInval);
  if (!entry) return entry.error();
  return restarting(context, [&] { return ::fdatasync((*entry)->fd.get()); });
}

Errno fd_sync(WasiContext& context, GuestMemory, uint32_t fd) {
  const auto entry = host_entry(context, fd, rights::kFdSync, Errno::kInval);
  if (!entry) return entry.error();
  return restarting(context, [&] { return ::fsync((*entry)->fd.get()); });
}

namespace {

Errno get_filestat(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t stat,
                   const layout::Filestat& to) {
  const auto entry = context.fds().get(fd, rights::kFdFilestatGet);
  if (!entry) return entry.error();
  struct stat status {};
  if ((*entry)->kind == FdEntry::Kind::kHost && ::fstat((*entry)->fd.get(), &status) != 0)
    return last_errno();
  return store_filestat(memory, stat, status, (*entry)->filetype, to);
}

}  // namespace

Errno fd_filestat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t stat) {
  return get_filestat(context, memory, fd, stat, layout::kFilestat);
}

Errno unstable_fd_filestat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t stat) {
  return get_filestat(context, memory, fd, stat, layout::kFilestat0);
}

Errno fd_filestat_set_size(WasiContext& context, GuestMemory, uint32_t fd, uint64_t size) {
  const auto entry = host_entry(context, fd, rights::kFdFilestatSetSize, Errno::kInval);
  if (!entry) return entry.error();
  if (size > INT64_MAX) return Errno::kInval;
  const FileSizeGuard guard;
  return restarting(context, [&] { return ::ftruncate((*entry)->fd.get(), static_cast<off_t>(size)); });
}

Errno fd_filestat_set_times(WasiContext& context, GuestMemory, uint32_t fd, uint64_t atim, uint64_t mtim,
                            uint32_t flags) {
  const auto entry = host_entry(context, fd, rights::kFdFilestatSetTimes, Errno::kNotsup);
  if (!entry) return entry.error();
  const auto times = to_time_pair(atim, mtim, flags);
  if (!times) return times.error();
  return ::futimens((*entry)->fd.get(), times->values) == 0 ? Errno::kSuccess : last_errno();
}

Errno fd_seek(WasiContext& context, GuestMemory memory, uint32_t fd, uint64_t delta, uint32_t whence,
              uint32_t position) {
  // Looking where one is takes no more than the right to tell.
  const bool only_tells = delta == 0 && whence == static_cast<uint32_t>(Whence::kCurrent);
  const auto may_seek = context.fds().get(fd, rights::kFdSeek);
  const auto entry = !may_seek && only_tells ? context.fds().get(fd, rights::kFdTell) : may_seek;
  if (!entry) return entry.error();
  if ((*entry)->kind != FdEntry::Kind::kHost) return Errno::kSpipe;
  int host_whence = 0;
  switch (whence) {
    case static_cast<uint32_t>(Whence::kSet):
      host_whence = SEEK_SET;
      break;
    case static_cast<uint32_t>(Whence::kCurrent):
      host_whence = SEEK_CUR;
      break;
    case static_cast<uint32_t>(Whence::kEnd):
      host_whence = SEEK_END;
      break;
    default:
      return Errno::kInval;
  }
  if (!memory.contains(position, sizeof(uint64_t))) return Errno::kFault;
  const off_t now = ::lseek((*entry)->fd.get(), static_cast<off_t>(delta), host_whence);
  if (now < 0) return last_errno();
  return memory.store(position, static_cast<uint64_t>(now)) ? Errno::kSuccess : Errno::kFault;
}

// wasi_unstable counts from the position, the end and the start; preview 1 from the start, the position and the end.
Errno unstable_fd_seek(WasiContext& context, GuestMemory memory, uint32_t fd, uint64_t delta, uint32_t whence,
                       uint32_t position) {
  return fd_seek(context, memory, fd, delta, whence < 3 ? (whence + 1) % 3 : whence, position);
}

Errno fd_tell(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t position) {
  const auto entry = host_entry(context, fd, rights::kFdTell, Errno::kSpipe);
  if (!entry) return entry.error();
  const off_t now = ::lseek((*entry)->fd.get(), 0, SEEK_CUR);
  if (now < 0) return last_errno();
  return memory.store(position, static_cast<uint64_t>(now)) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace calls
}  // namespace hindsight::wasi
