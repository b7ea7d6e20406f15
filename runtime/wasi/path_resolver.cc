#include "runtime/wasi/path_resolver.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "runtime/wasi/path_walk.h"

namespace hindsight::wasi {
namespace {

// The kernel gives EAGAIN where a rename somewhere on the system made a `..` undecidable. Trying again is
// right; trying forever would let a renaming neighbour hold us up.
constexpr int kMaxRetries = 64;

int openat2(int directory, const char* path, int flags, uint32_t mode, uint64_t more = 0) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | more;
  return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}

Answer<OwnedFd> open_by_kernel(int directory, const std::string& path, int flags, uint32_t mode,
                               const OwnFiles* own) {
  for (int tries = 0; tries < kMaxRetries; tries++) {
    OwnedFd opened(openat2(directory, path.c_str(), flags, mode, own ? RESOLVE_NO_XDEV : 0));
    if (opened) return opened;
    if (errno == EAGAIN || errno == EINTR) continue;
    // Opening never crosses devices by itself. EXDEV is how RESOLVE_BENEATH says "outside", and RESOLVE_NO_XDEV that the
    // path comes to another mount, where the embedder's own folders may be met again.
    if (errno == EXDEV && own) break;
    return std::unexpected(errno == EXDEV ? Errno::kNotcapable : last_errno());
  }
  return open_by_walking(directory, path, flags, mode, own);
}

}  // namespace

PathResolver::Strategy PathResolver::best() {
  // The answer cannot change while the process lives: neither the kernel nor a seccomp filter goes away.
  static const bool offered = [] {
    const OwnedFd probe(openat2(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0));
    return static_cast<bool>(probe);
  }();
  return offered ? Strategy::kOpenat2 : Strategy::kWalk;
}

Answer<OwnedFd> PathResolver::resolve(int directory, const std::string& path, int flags,
                                      uint32_t mode) const {
  return strategy_ == Strategy::kOpenat2 && !(own_ && own_->exposed())
             ? open_by_kernel(directory, path, flags, mode, own_)
             : open_by_walking(directory, path, flags, mode, own_);
}

// A file must not be emptied before it is known to be the guest's: modes do not hold a privileged process back from ours.
Answer<OwnedFd> PathResolver::open_and_empty(int directory, const std::string& path, int flags, uint32_t mode,
                                             struct stat* status) const {
  const int keeping = flags & ~O_TRUNC;
  // To be emptied a file has to be writable, as open(2) demands it too.
  const int writing = (flags & O_ACCMODE) == O_RDONLY ? (keeping & ~O_ACCMODE) | O_RDWR : keeping;
  struct stat found {};
  auto opened = open(directory, path, writing, mode, &found);
  // Only of regular files is anything left to do; a pipe's end has to be the one that was asked for.
  if (opened && !S_ISREG(found.st_mode) && writing != keeping)
    opened = open(directory, path, keeping, mode, &found);
  if (!opened) return opened;
  if (S_ISREG(found.st_mode)) {
    int result = 0;
    do result = ::ftruncate(opened->get(), 0);
    while (result != 0 && errno == EINTR);
    if (result != 0) return std::unexpected(last_errno());
    found.st_size = 0;
  }
  if (status) *status = found;
  return opened;
}

Answer<OwnedFd> PathResolver::open(int directory, const std::string& path, int flags, uint32_t mode,
                                   struct stat* status) const {
  if (path.empty()) return std::unexpected(Errno::kNoent);
  if (path.front() == '/') return std::unexpected(Errno::kNotcapable);
  if ((flags & O_CREAT) && (flags & O_DIRECTORY)) return std::unexpected(Errno::kInval);
  if (own_ && (flags & O_TRUNC)) return open_and_empty(directory, path, flags, mode, status);
  auto opened = resolve(directory, path, flags, mode);
  if (!opened || (!own_ && !status)) return opened;
  struct stat found {};
  if (::fstat(opened->get(), &found) != 0) return std::unexpected(last_errno());
  if (own_) {
    const Errno judged = own_->judge(opened->get(), found, flags, [&]() -> OwnedFd {
      if (!(flags & O_PATH)) return {};
      auto readable = resolve(directory, path, (flags & O_NOFOLLOW) | O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
      struct stat again {};
      // Something else by now: then the descriptor that cannot be read is judged.
      if (!readable || ::fstat(readable->get(), &again) != 0 || again.st_ino != found.st_ino ||
          again.st_dev != found.st_dev)
        return {};
      return std::move(*readable);
    });
    if (judged != Errno::kSuccess) return std::unexpected(judged);
  }
  if (status) *status = found;
  return opened;
}

Answer<PathResolver::Parent> PathResolver::parent_of(int directory, const std::string& path,
                                                     Errno special) const {
  if (path.empty()) return std::unexpected(Errno::kNoent);
  if (path.front() == '/') return std::unexpected(Errno::kNotcapable);
  // Not absolute, so there is a character that is not a slash.
  const size_t end = path.find_last_not_of('/') + 1;
  const size_t slash = path.rfind('/', end - 1);
  const size_t start = slash == std::string::npos ? 0 : slash + 1;

  Parent parent;
  parent.name = path.substr(start, end - start);
  parent.trailing_slash = end != path.size();
  if (parent.name == "." || parent.name == "..") {
    // Say first whether the path may be named at all.
    auto whole = open(directory, path, O_PATH | O_DIRECTORY);
    return std::unexpected(whole ? special : whole.error());
  }
  auto opened = open(directory, start == 0 ? std::string(".") : path.substr(0, start), O_PATH | O_DIRECTORY);
  if (!opened) return std::unexpected(opened.error());
  parent.directory = std::move(*opened);
  return parent;
}

Answer<std::string> read_link(int link) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = ::readlinkat(link, "", target.data(), target.size());
  if (length < 0) return std::unexpected(last_errno());
  if (static_cast<size_t>(length) >= target.size()) return std::unexpected(Errno::kNametoolong);
  target.resize(static_cast<size_t>(length));
  return target;
}

}  // namespace hindsight::wasi
