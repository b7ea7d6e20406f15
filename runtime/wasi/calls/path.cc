// Operations on names. All of them resolve the directory that holds the name and act on the name in it. See
// path_resolver.h for why that holds against links that change under our hands.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/calls/filestat.h"
#include "runtime/wasi/calls/times.h"
#include "runtime/wasi/guest_path.h"

namespace hindsight::wasi::calls {
namespace {

constexpr uint32_t kDirectoryMode = 0777;  // less the process's umask

// The directory and name that a guest's (descriptor, path) pair means.
Answer<PathResolver::Parent> locate(WasiContext& context, GuestMemory memory, uint32_t fd, uint64_t wanted,
                                    uint32_t path, uint32_t length, Errno special) {
  const auto directory = context.fds().get_directory(fd, wanted);
  if (!directory) return std::unexpected(directory.error());
  const auto name = load_path(memory, path, length);
  if (!name) return std::unexpected(name.error());
  return context.paths().parent_of((*directory)->fd.get(), *name, special);
}

// An O_PATH descriptor of the thing itself, for looking at it.
Answer<OwnedFd> locate_file(WasiContext& context, GuestMemory memory, uint32_t fd, uint64_t wanted,
                            uint32_t path, uint32_t length, bool follow) {
  const auto directory = context.fds().get_directory(fd, wanted);
  if (!directory) return std::unexpected(directory.error());
  const auto name = load_path(memory, path, length);
  if (!name) return std::unexpected(name.error());
  return context.paths().open((*directory)->fd.get(), *name, O_PATH | (follow ? 0 : O_NOFOLLOW));
}

Errno answer(int result) {
  return result == 0 ? Errno::kSuccess : last_errno();
}

}  // namespace

Errno path_create_directory(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t path,
                            uint32_t path_length) {
  const auto parent =
      locate(context, memory, fd, rights::kPathCreateDirectory, path, path_length, Errno::kExist);
  if (!parent) return parent.error();
  return answer(::mkdirat(parent->directory.get(), parent->name_with_slash().c_str(), kDirectoryMode));
}

namespace {

Errno get_path_filestat(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t lookup, uint32_t path,
                        uint32_t path_length, uint32_t stat, const layout::Filestat& to) {
  const auto file = locate_file(context, memory, fd, rights::kPathFilestatGet, path, path_length,
                                lookup & kLookupSymlinkFollow);
  if (!file) return file.error();
  struct stat status;
  if (::fstat(file->get(), &status) != 0) return last_errno();
  return store_filestat(memory, stat, status, filetype_of(-1, status.st_mode), to);
}

}  // namespace

Errno path_filestat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t lookup, uint32_t path,
                        uint32_t path_length, uint32_t stat) {
  return get_path_filestat(context, memory, fd, lookup, path, path_length, stat, layout::kFilestat);
}

Errno unstable_path_filestat_get(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t lookup,
                                 uint32_t path, uint32_t path_length, uint32_t stat) {
  return get_path_filestat(context, memory, fd, lookup, path, path_length, stat, layout::kFilestat0);
}

Errno path_filestat_set_times(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t lookup,
                              uint32_t path, uint32_t path_length, uint64_t atim, uint64_t mtim,
                              uint32_t flags) {
  const auto times = to_time_pair(atim, mtim, flags);
  if (!times) return times.error();
  const auto file = locate_file(context, memory, fd, rights::kPathFilestatSetTimes, path, path_length,
                                lookup & kLookupSymlinkFollow);
  if (!file) return file.error();
  if (::utimensat(file->get(), "", times->values, AT_EMPTY_PATH) == 0) return Errno::kSuccess;
  if (errno != EINVAL && errno != ENOENT) return last_errno();
  // Before Linux 5.8 there is no AT_EMPTY_PATH here. The magic link leads to what the descriptor has opened
  // and not to a path, so it is as good.
  const std::string magic = "/proc/self/fd/" + std::to_string(file->get());
  return answer(::utimensat(AT_FDCWD, magic.c_str(), times->values, 0));
}

// Following the source is refused, as in other runtimes. The kernel offers no way to link what a descriptor
// refers to without privileges, and resolving the name a second time would be a race.
Errno path_link(WasiContext& context, GuestMemory memory, uint32_t old_fd, uint32_t old_lookup,
                uint32_t old_path, uint32_t old_length, uint32_t new_fd, uint32_t new_path,
                uint32_t new_length) {
  if (old_lookup & kLookupSymlinkFollow) return Errno::kInval;
  const auto source =
      locate(context, memory, old_fd, rights::kPathLinkSource, old_path, old_length, Errno::kPerm);
  if (!source) return source.error();
  const auto target =
      locate(context, memory, new_fd, rights::kPathLinkTarget, new_path, new_length, Errno::kExist);
  if (!target) return target.error();
  if (source->trailing_slash) {
    // Only directories may be named like this, and those cannot be linked. The slash must not reach linkat,
    // which would follow a link through it.
    struct stat status;
    if (::fstatat(source->directory.get(), source->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return last_errno();
    return S_ISDIR(status.st_mode) ? Errno::kPerm : Errno::kNotdir;
  }
  if (context.own().keeps(source->directory.get(), source->name)) return Errno::kNotcapable;
  return answer(::linkat(source->directory.get(), source->name.c_str(), target->directory.get(),
                         target->name_with_slash().c_str(), 0));
}

// A target longer than the buffer is cut, as readlink does.
Errno path_readlink(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t path,
                    uint32_t path_length, uint32_t buffer, uint32_t buffer_length, uint32_t used) {
  if (!memory.contains(buffer, buffer_length) || !memory.contains(used, sizeof(uint32_t)))
    return Errno::kFault;
  const auto link = locate_file(context, memory, fd, rights::kPathReadlink, path, path_length, false);
  if (!link) return link.error();
  struct stat status;
  if (::fstat(link->get(), &status) != 0) return last_errno();
  if (!S_ISLNK(status.st_mode)) return Errno::kInval;
  const auto target = read_link(link->get());
  if (!target) return target.error();
  const uint64_t length = std::min<uint64_t>(target->size(), buffer_length);
  if (!memory.store_bytes(buffer, target->data(), length)) return Errno::kFault;
  return memory.store(used, static_cast<uint32_t>(length)) ? Errno::kSuccess : Errno::kFault;
}

Errno path_remove_directory(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t path,
                            uint32_t path_length) {
  const auto parent =
      locate(context, memory, fd, rights::kPathRemoveDirectory, path, path_length, Errno::kInval);
  if (!parent) return parent.error();
  if (context.own().keeps(parent->directory.get(), parent->name)) return Errno::kNotcapable;
  return answer(::unlinkat(parent->directory.get(), parent->name_with_slash().c_str(), AT_REMOVEDIR));
}

Errno path_rename(WasiContext& context, GuestMemory memory, uint32_t old_fd, uint32_t old_path,
                  uint32_t old_length, uint32_t new_fd, uint32_t new_path, uint32_t new_length) {
  const auto source =
      locate(context, memory, old_fd, rights::kPathRenameSource, old_path, old_length, Errno::kBusy);
  if (!source) return source.error();
  const auto target =
      locate(context, memory, new_fd, rights::kPathRenameTarget, new_path, new_length, Errno::kBusy);
  if (!target) return target.error();
  if (context.own().keeps(source->directory.get(), source->name) ||
      context.own().keeps(target->directory.get(), target->name))
    return Errno::kNotcapable;
  return answer(::renameat(source->directory.get(), source->name_with_slash().c_str(),
                           target->directory.get(), target->name_with_slash().c_str()));
}

// An absolute target is refused although following it would be refused as well. The link would be a trap for
// programs outside of the sandbox that come across it.
Errno path_symlink(WasiContext& context, GuestMemory memory, uint32_t old_path, uint32_t old_length,
                   uint32_t fd, uint32_t new_path, uint32_t new_length) {
  const auto target = load_path(memory, old_path, old_length);
  if (!target) return target.error();
  if (target->starts_with('/')) return Errno::kNotcapable;
  const auto parent = locate(context, memory, fd, rights::kPathSymlink, new_path, new_length, Errno::kExist);
  if (!parent) return parent.error();
  return answer(::symlinkat(target->c_str(), parent->directory.get(), parent->name_with_slash().c_str()));
}

Errno path_unlink_file(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t path,
                       uint32_t path_length) {
  const auto parent = locate(context, memory, fd, rights::kPathUnlinkFile, path, path_length, Errno::kIsdir);
  if (!parent) return parent.error();
  if (context.own().keeps(parent->directory.get(), parent->name)) return Errno::kNotcapable;
  return answer(::unlinkat(parent->directory.get(), parent->name_with_slash().c_str(), 0));
}

}  // namespace hindsight::wasi::calls
