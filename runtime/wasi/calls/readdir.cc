// Directory listings.
//
// Problem: the guest reads a directory in pieces and may remove what it has read between two of them. Host
// positions (d_off) are not stable under that on every file system: where they count entries, `rm -r` would
// skip names.
//
// Idea: read all names when the guest starts from cookie 0 and keep them with the descriptor. A cookie is the
// number of entries before it. Costs memory in proportion to the directory, once per listing.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "runtime/wasi/calls/calls.h"

namespace hindsight::wasi::calls {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

Filetype type_of(int directory, const dirent& found) {
  switch (found.d_type) {
    case DT_REG:
      return Filetype::kRegularFile;
    case DT_DIR:
      return Filetype::kDirectory;
    case DT_LNK:
      return Filetype::kSymbolicLink;
    case DT_CHR:
      return Filetype::kCharacterDevice;
    case DT_BLK:
      return Filetype::kBlockDevice;
    case DT_SOCK:
      return Filetype::kSocketStream;
    case DT_FIFO:
      return Filetype::kUnknown;
    default: {  // the file system does not say
      struct stat status;
      if (::fstatat(directory, found.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return Filetype::kUnknown;
      return filetype_of(-1, status.st_mode);
    }
  }
}

Answer<std::vector<DirectoryEntry>> list(int directory) {
  struct stat self;
  if (::fstat(directory, &self) != 0) return std::unexpected(last_errno());
  // A description of its own: its position is not the guest's.
  OwnedFd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return std::unexpected(last_errno());
  const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(own.get()));
  if (!stream) return std::unexpected(last_errno());
  own.release();  // the stream closes it

  // `..` is told with the inode of the directory itself: what is above may be outside the sandbox.
  std::vector<DirectoryEntry> entries;
  entries.push_back({self.st_ino, Filetype::kDirectory, "."});
  entries.push_back({self.st_ino, Filetype::kDirectory, ".."});
  while (true) {
    errno = 0;
    const dirent* found = ::readdir(stream.get());
    if (!found) {
      if (errno != 0) return std::unexpected(last_errno());
      return entries;
    }
    std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({found->d_ino, type_of(directory, *found), std::move(name)});
  }
}

}  // namespace

// Fills the buffer to its last byte while there are entries, cutting the last one where it does not fit. A
// buffer that is not full is how the guest knows that it has seen the end.
Errno fd_readdir(WasiContext& context, GuestMemory memory, uint32_t fd, uint32_t buffer, uint32_t length,
                 uint64_t cookie, uint32_t used) {
  namespace field = layout::dirent;
  const auto found = context.fds().get(fd, rights::kFdReaddir);
  if (!found) return found.error();
  FdEntry& entry = **found;
  if (!entry.is_directory()) return Errno::kNotdir;
  if (!memory.contains(buffer, length) || !memory.contains(used, sizeof(uint32_t))) return Errno::kFault;
  if (cookie == 0 || !entry.listing) {
    auto listed = list(entry.fd.get());
    if (!listed) return listed.error();
    entry.listing = std::move(*listed);
  }

  uint64_t at = buffer;
  const uint64_t end = at + length;
  const std::vector<DirectoryEntry>& entries = *entry.listing;
  for (uint64_t next = cookie; next < entries.size() && at < end; next++) {
    const DirectoryEntry& name = entries[next];
    uint8_t head[field::kSize] = {};
    const GuestMemory fields{head, sizeof head};
    const bool stored = fields.store(field::kNext, next + 1) && fields.store(field::kIno, name.inode) &&
                        fields.store(field::kNamlen, static_cast<uint32_t>(name.name.size())) &&
                        fields.store(field::kType, name.type);
    if (!stored) return Errno::kFault;
    const uint64_t head_size = std::min<uint64_t>(sizeof head, end - at);
    if (!memory.store_bytes(at, head, head_size)) return Errno::kFault;
    at += head_size;
    const uint64_t name_size = std::min<uint64_t>(name.name.size(), end - at);
    if (!memory.store_bytes(at, name.name.data(), name_size)) return Errno::kFault;
    at += name_size;
  }
  return memory.store(used, static_cast<uint32_t>(at - buffer)) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace hindsight::wasi::calls
