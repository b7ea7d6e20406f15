#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/guest_path.h"

namespace hindsight::wasi::calls {
namespace {

constexpr uint32_t kCreationMode = 0666;  // less the process's umask

// The rights that the directory must have for what is asked of the path.
uint64_t needed_rights(uint32_t open_flags) {
  uint64_t needed = rights::kPathOpen;
  if (open_flags & oflags::kCreat) needed |= rights::kPathCreateFile;
  if (open_flags & oflags::kTrunc) needed |= rights::kPathFilestatSetSize;
  return needed;
}

int host_flags(uint32_t lookup, uint32_t open_flags, uint64_t base, uint32_t fd_flags) {
  const bool write = base & rights::kFdWrite;
  const bool read = base & (rights::kFdRead | rights::kFdReaddir);
  int flags = write ? (read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (open_flags & oflags::kCreat) flags |= O_CREAT;
  if (open_flags & oflags::kExcl) flags |= O_EXCL;
  if (open_flags & oflags::kTrunc) flags |= O_TRUNC;
  if (open_flags & oflags::kDirectory) flags |= O_DIRECTORY;
  if (!(lookup & kLookupSymlinkFollow)) flags |= O_NOFOLLOW;
  if (fd_flags & fdflags::kAppend) flags |= O_APPEND;
  if (fd_flags & fdflags::kDsync) flags |= O_DSYNC;
  if (fd_flags & (fdflags::kSync | fdflags::kRsync)) flags |= O_SYNC;
  // Always: opening a pipe must not block where nothing can interrupt it. Whether reads and writes wait is
  // decided in transfer.cc by the guest's own flag. And no terminal becomes ours by being opened.
  return flags | O_NONBLOCK | O_NOCTTY;
}

}  // namespace

Errno path_open(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t lookup, uint32_t path,
                uint32_t path_length, uint32_t open_flags, uint64_t base, uint64_t inheriting,
                uint32_t fd_flags, uint32_t opened) {
  const auto directory = context.fds().get_directory(fd, needed_rights(open_flags));
  if (!directory) return directory.error();
  if ((open_flags & ~uint32_t{oflags::kAll}) || (fd_flags & ~uint32_t{fdflags::kAll}) ||
      (lookup & ~kLookupSymlinkFollow))
    return Errno::kInval;
  if (!memory.contains(opened, sizeof(uint32_t))) return Errno::kFault;
  if (!context.may_open()) return Errno::kMfile;  // before anything is created
  // Other rights that the directory cannot give are left out silently, because wasi-libc asks for all of
  // them always. Writing is asked for only where it is meant, and is refused now, not at the first write.
  const uint64_t granted_inheriting = (*directory)->rights_inheriting;
  if ((base & rights::kFdWrite) && !(granted_inheriting & rights::kFdWrite)) return Errno::kNotcapable;
  const auto name = load_path(memory, path, path_length);
  if (!name) return name.error();

  struct stat status {};
  auto resolved = context.paths().open(
      (*directory)->fd.get(), *name, host_flags(lookup, open_flags, base, fd_flags), kCreationMode, &status);
  if (!resolved) return resolved.error();

  FdEntry entry;
  entry.filetype = filetype_of(resolved->get(), status.st_mode);
  entry.terminal = entry.filetype == Filetype::kCharacterDevice && ::isatty(resolved->get()) == 1;
  entry.flags = static_cast<uint16_t>(fd_flags);
  const uint64_t sensible = entry.is_directory() ? rights::kAllDirectory : rights::kAllFile;
  entry.rights_base = base & granted_inheriting & sensible;
  entry.rights_inheriting = entry.is_directory() ? inheriting & granted_inheriting : 0;
  if (entry.terminal) entry.rights_base &= ~(rights::kFdSeek | rights::kFdTell);
  entry.fd = std::move(*resolved);
  const uint32_t number = context.fds().insert(std::move(entry));
  return memory.store(opened, number) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace hindsight::wasi::calls
