#include "runtime/wasi/fd_table.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>
#include <utility>

namespace hindsight::wasi {
namespace {

thread_local std::vector<std::shared_ptr<FdEntry>> t_pinned;

}  // namespace

FdPins::FdPins() : before_(t_pinned.size()) {}

FdPins::~FdPins() {
  t_pinned.resize(before_);
}

Answer<FdEntry*> FdTable::get(uint32_t fd, uint64_t wanted) {
  if (fd >= entries_.size() || !entries_[fd]) return std::unexpected(Errno::kBadf);
  FdEntry* entry = t_pinned.emplace_back(entries_[fd]).get();
  const uint64_t missing = wanted & ~entry->rights_base;
  if (missing == 0) return entry;
  if (entry->is_directory() && (missing & rights::kAllFile & ~rights::kAllDirectory))
    return std::unexpected(Errno::kIsdir);
  if (missing & (rights::kFdRead | rights::kFdWrite)) return std::unexpected(Errno::kBadf);
  if (entry->terminal && (missing & (rights::kFdSeek | rights::kFdTell)))
    return std::unexpected(Errno::kSpipe);
  if (!entry->is_directory() && (missing & rights::kFdReaddir)) return std::unexpected(Errno::kNotdir);
  return std::unexpected(Errno::kNotcapable);
}

Answer<FdEntry*> FdTable::get_directory(uint32_t fd, uint64_t wanted) {
  auto entry = get(fd);
  if (!entry) return entry;
  if (!(*entry)->is_directory()) return std::unexpected(Errno::kNotdir);
  return get(fd, wanted);
}

uint32_t FdTable::insert(FdEntry entry) {
  uint32_t fd = 0;
  while (fd < entries_.size() && entries_[fd]) fd++;
  insert_at(fd, std::move(entry));
  return fd;
}

void FdTable::insert_at(uint32_t fd, FdEntry entry) {
  if (fd >= entries_.size()) entries_.resize(fd + 1);
  assert(!entries_[fd] && "insert_at is for free numbers; renumber replaces");
  entries_[fd] = std::make_shared<FdEntry>(std::move(entry));
  ++open_;
}

Errno FdTable::close(uint32_t fd) {
  if (fd >= entries_.size() || !entries_[fd]) return Errno::kBadf;
  const std::shared_ptr<FdEntry> entry = std::move(entries_[fd]);
  --open_;
  // Pins come and go under the context's lock, which the caller holds: the count is exact.
  if (entry.use_count() > 1) return Errno::kSuccess;
  // Linux has released the descriptor even where close says EINTR, so that is no failure.
  if (entry->fd.reset() != 0 && errno != EINTR) return last_errno();
  return Errno::kSuccess;
}

Errno FdTable::renumber(uint32_t from, uint32_t to) {
  if (!get(from) || !get(to)) return Errno::kBadf;
  if (from == to) return Errno::kSuccess;
  entries_[to] = std::move(entries_[from]);
  --open_;
  return Errno::kSuccess;
}

Filetype filetype_of(int fd, uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return Filetype::kRegularFile;
    case S_IFDIR:
      return Filetype::kDirectory;
    case S_IFCHR:
      return Filetype::kCharacterDevice;
    case S_IFBLK:
      return Filetype::kBlockDevice;
    case S_IFLNK:
      return Filetype::kSymbolicLink;
    case S_IFSOCK: {
      int type = SOCK_STREAM;
      socklen_t length = sizeof type;
      if (fd >= 0) (void)::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
      return type == SOCK_DGRAM ? Filetype::kSocketDgram : Filetype::kSocketStream;
    }
    default:
      return Filetype::kUnknown;
  }
}

}  // namespace hindsight::wasi
