#include "runtime/engine/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

namespace hindsight::rt {
namespace {

constexpr const char* kLockName = ".lock";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr auto kLockPatience = std::chrono::milliseconds(300);
constexpr auto kLockNap = std::chrono::milliseconds(2);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

std::string reason(int error) {
  return std::strerror(error);
}

// What is wrong with who may write this; empty: nothing.
std::string too_open(const struct stat& status, uid_t owner) {
  if (status.st_uid != owner) return fmt::format("belongs to user {}, not to {}", status.st_uid, owner);
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format("can be written by others (mode {:o})", status.st_mode & 07777);
  return {};
}

// Every folder on the way, the missing ones for their owner alone. The next step tells whether it worked.
void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    (void)::mkdir(path.substr(0, slash).c_str(), 0700);
  (void)::mkdir(path.c_str(), 0700);
}

// Held until the result goes.
Result<Descriptor> lock(int folder, const std::string& path) {
  Descriptor file(::openat(folder, kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) return make_error(ErrorKind::kResource, "the lock cannot be opened: " + reason(errno), path);
  for (const auto end = std::chrono::steady_clock::now() + kLockPatience;;) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return make_error(ErrorKind::kResource, "cannot be locked: " + reason(errno), path);
    if (std::chrono::steady_clock::now() >= end)
      return make_error(ErrorKind::kResource, "another process keeps it locked", path);
    std::this_thread::sleep_for(kLockNap);
  }
}

template <typename Each>
bool visit(int folder, Each each) {
  // A descriptor of its own: reading moves it.
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return false;
  DIR* const listing = ::fdopendir(own);
  if (listing == nullptr) {
    ::close(own);
    return false;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closing(listing, &::closedir);
  while (const dirent* entry = ::readdir(listing)) each(std::string_view(entry->d_name));
  return true;
}

}  // namespace

std::vector<CacheDirectory::Entry> CacheDirectory::list(int folder) const {
  std::vector<Entry> entries;
  visit(folder, [&](std::string_view name) {
    struct stat status {};
    if (!name.ends_with(suffix_) ||
        ::fstatat(folder, std::string(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISDIR(status.st_mode))
      return;
    entries.push_back({std::string(name), static_cast<uint64_t>(status.st_size),
                       int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
  });
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(b.used_ns, a.name) < std::tie(a.used_ns, b.name);
  });
  return entries;
}

Result<int> CacheDirectory::open_folder() const {
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    if (errno == ENOENT) return -1;
    return make_error(ErrorKind::kResource, "the folder cannot be opened: " + reason(errno), path_);
  }
  struct stat status {};
  std::string defect;
  if (::fstat(folder, &status) != 0)
    defect = reason(errno);
  else
    defect = too_open(status, owner_);
  if (defect.empty()) return folder;
  ::close(folder);
  return make_error(ErrorKind::kUsage, defect, path_);
}

Result<std::optional<CacheDirectory::Bytes>> CacheDirectory::read(const std::string& name) const {
  HINDSIGHT_ASSIGN(const int opened, open_folder());
  if (opened < 0) return std::nullopt;
  const Descriptor folder(opened);
  return read_at(folder.get(), name);
}

Result<std::optional<CacheDirectory::Bytes>> CacheDirectory::read_at(int folder,
                                                                     const std::string& name) const {
  const auto unusable = [&](ErrorKind kind, const std::string& why) {
    return make_error(kind, why, path_of(name));
  };
  // Not blocking, so that a pipe in a file's place holds nobody up.
  const Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) return unusable(ErrorKind::kUsage, "is a link");
    return unusable(ErrorKind::kResource, "cannot be opened: " + reason(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return unusable(ErrorKind::kResource, "cannot be looked at: " + reason(errno));
  if (!S_ISREG(status.st_mode)) return unusable(ErrorKind::kUsage, "is no regular file");
  if (const std::string defect = too_open(status, owner_); !defect.empty())
    return unusable(ErrorKind::kUsage, defect);
  if (static_cast<uint64_t>(status.st_size) > kMostFileBytes)
    return unusable(ErrorKind::kUsage, "is too large");
  Bytes bytes(static_cast<size_t>(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unusable(ErrorKind::kResource, "cannot be read: " + reason(errno));
    if (n == 0) {
      bytes.resize(done);
      break;
    }
    done += static_cast<size_t>(n);
  }
  return bytes;
}

void CacheDirectory::touch(const std::string& name) const {
  (void)::utimensat(AT_FDCWD, path_of(name).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Status CacheDirectory::update(const std::string& name,
                              const std::function<Bytes(std::optional<Bytes> old)>& merge) const {
  HINDSIGHT_ASSIGN(int opened, open_folder());
  if (opened < 0) {
    make_folders(path_);
    HINDSIGHT_ASSIGN(opened, open_folder());
    if (opened < 0)
      return make_error(ErrorKind::kResource, "the folder cannot be made: " + reason(errno), path_);
  }
  const Descriptor folder(opened);
  HINDSIGHT_ASSIGN(const Descriptor locked, lock(folder.get(), path_));
  auto old = read_at(folder.get(), name);
  const Bytes bytes = merge(old ? std::move(*old) : std::nullopt);
  if (bytes.empty()) return {};
  if (bytes.size() > std::min(most_bytes_, kMostFileBytes)) {
    return make_error(ErrorKind::kResource,
                      fmt::format("{} bytes are more than the folder may hold", bytes.size()),
                      path_of(name));
  }
  HINDSIGHT_TRY(write_at(folder.get(), name, bytes));
  enforce_bound(folder.get(), name);
  return {};
}

Status CacheDirectory::write_at(int folder, const std::string& name, std::span<const std::byte> bytes) const {
  const std::string temporary = name + std::string(kTemporarySuffix);
  const auto failed = [&](const char* step) {
    const int error = errno;
    ::unlinkat(folder, temporary.c_str(), 0);
    return make_error(ErrorKind::kResource, fmt::format("cannot {}: {}", step, reason(error)), path_of(name));
  };
  // Invariant: we hold the lock, so that one of this name is left over from somebody who is gone.
  ::unlinkat(folder, temporary.c_str(), 0);
  Descriptor file(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return failed("be created");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("be written");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  if (::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) return failed("be put in place");
  return {};
}

void CacheDirectory::enforce_bound(int folder, const std::string& keep) const {
  std::vector<std::string> left_over;
  visit(folder, [&](std::string_view name) {
    if (name.ends_with(kTemporarySuffix)) left_over.emplace_back(name);
  });
  for (const std::string& name : left_over) ::unlinkat(folder, name.c_str(), 0);
  std::vector<Entry> entries = list(folder);
  std::stable_partition(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return entry.name == keep; });
  uint64_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes;
    // Whoever reads it at this moment has it open.
    if (total > most_bytes_ && ::unlinkat(folder, entry.name.c_str(), 0) == 0) total -= entry.bytes;
  }
}

Result<std::vector<CacheDirectory::Entry>> CacheDirectory::entries() const {
  HINDSIGHT_ASSIGN(const int opened, open_folder());
  if (opened < 0) return std::vector<Entry>{};
  const Descriptor folder(opened);
  return list(folder.get());
}

Result<uint64_t> CacheDirectory::clear() const {
  HINDSIGHT_ASSIGN(const int opened, open_folder());
  if (opened < 0) return uint64_t{0};
  const Descriptor folder(opened);
  HINDSIGHT_ASSIGN(const Descriptor locked, lock(folder.get(), path_));
  uint64_t removed = 0;
  for (const Entry& entry : list(folder.get())) {
    if (::unlinkat(folder.get(), entry.name.c_str(), 0) != 0)
      return make_error(ErrorKind::kResource, "cannot be removed: " + reason(errno), path_of(entry.name));
    ++removed;
  }
  return removed;
}

}  // namespace hindsight::rt
