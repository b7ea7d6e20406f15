#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/file_size_guard.h"

namespace hindsight {
namespace {

constexpr size_t kFirstBlock = 64 * 1024;
constexpr int kMostTemporaries = 1000;  // that dead writers of our process id may have left

// Its name goes to `temporary`. Negative: errno has the reason.
int create_unnamed(int folder, const std::string& name, mode_t mode, std::string& temporary) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  for (int i = 0; i < kMostTemporaries; ++i) {
    temporary = fmt::format("{}.{}.{}.tmp", name, ::getpid(), i);
    const int descriptor = ::openat(folder, temporary.c_str(), kFlags, mode);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

int create_as(int folder, const std::string& temporary, mode_t mode) {
  (void)::unlinkat(folder, temporary.c_str(), 0);  // where it stays, it is in the way of the next line
  return ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
}

}  // namespace

// With C streams, because C++ ones throw where a read fails (a folder opens but cannot be read).
Result<std::vector<std::byte>> read_file(const std::string& path, uint64_t most_bytes) {
  const auto failed = [&](const char* what) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: {}", what, std::strerror(errno)), path);
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return failed("cannot be opened");
  std::vector<std::byte> bytes;
  for (size_t used = 0;;) {
    bytes.resize(std::max(2 * used, kFirstBlock));
    used += std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    if (std::ferror(file.get())) return failed("cannot be read");
    if (used > most_bytes)
      return make_error(ErrorKind::kUsage, fmt::format("is larger than {} MiB", most_bytes >> 20), path);
    if (used < bytes.size()) {
      bytes.resize(used);
      return bytes;
    }
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::expected<void, FileFailure> replace_file(int folder, const std::string& name, const NewFile& file) {
  const FileSizeGuard guard;
  std::string temporary = file.temporary;
  const int descriptor = temporary.empty() ? create_unnamed(folder, name, file.mode, temporary)
                                           : create_as(folder, temporary, file.mode);
  if (descriptor < 0) return std::unexpected(FileFailure{"created", errno});
  const auto failed = [&](const char* step) {
    const FileFailure failure{step, errno};
    (void)::unlinkat(folder, temporary.c_str(), 0);
    return std::unexpected(failure);
  };
  const bool written =
      std::ranges::all_of(file.parts, [&](std::string_view part) { return write_all(descriptor, part); });
  const bool synced = written && (!file.synced || ::fsync(descriptor) == 0);
  const int error = errno;
  const bool closed = ::close(descriptor) == 0;  // where a disk of a network says that it is full
  if (!written || !synced) errno = error;
  if (!written || (synced && !closed)) return failed("written");
  if (!synced) return failed("synced");
  if (::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) return failed("put in place");
  return {};
}

}  // namespace hindsight
