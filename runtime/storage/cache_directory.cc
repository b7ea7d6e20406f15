#include "runtime/storage/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file_size_guard.h"
#include "base/files.h"
#include "base/system_failures.h"
#include "runtime/storage/descriptor.h"
#include "runtime/storage/sealed_file.h"

namespace hindsight::rt {
namespace {

constexpr const char* kLockName = ".lock";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr mode_t kFileMode = 0400;
// As the Cache Directory Tagging Specification has it: the first line is the same everywhere. The second one is ours.
constexpr const char* kMarkName = "CACHEDIR.TAG";
constexpr std::string_view kMark =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# A folder of Hindsight's, which keeps code or profiles here; `hindsight cache clear` and `profile "
    "clear` empty it.\n";
constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr auto kLockPatience = std::chrono::milliseconds(300);
constexpr auto kLockNap = std::chrono::milliseconds(2);

// What is wrong with who may write this; empty: nothing.
std::string too_open(const struct stat& status, uid_t owner) {
  if (status.st_uid != owner) return fmt::format("belongs to user {}, not to {}", status.st_uid, owner);
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format("can be written by others (mode {:o})", status.st_mode & 07777);
  return {};
}

bool is_hex(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_named_like_ours(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  const size_t hyphen = name.find('-');
  return hyphen != std::string_view::npos && is_hex(name.substr(0, hyphen)) &&
         is_hex(name.substr(hyphen + 1));
}

bool is_named_like_ours(std::string_view name) {
  return is_named_like_ours(name, CacheDirectory::kCodeSuffix) ||
         is_named_like_ours(name, CacheDirectory::kProfileSuffix);
}

// What a writer left who was killed.
bool is_left_over(std::string_view name) {
  return name.ends_with(kTemporarySuffix) &&
         is_named_like_ours(name.substr(0, name.size() - kTemporarySuffix.size()));
}

// A call of the system that failed: counted, and an error for whoever says it.
std::unexpected<Error> failed_call(const std::string& what, int error, std::string place) {
  count_system_failure(SystemFailure::kKeptFiles, error);
  return make_error(ErrorKind::kResource, what + ": " + std::strerror(error), std::move(place));
}

// Held until the result goes.
Result<Descriptor> lock(int folder, const std::string& path) {
  Descriptor file(::openat(folder, kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) return failed_call("the lock cannot be opened", errno, path);
  for (const auto end = std::chrono::steady_clock::now() + kLockPatience;;) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK && errno != EINTR) return failed_call("cannot be locked", errno, path);
    if (std::chrono::steady_clock::now() >= end)
      return make_error(ErrorKind::kResource, "another process keeps it locked", path);
    std::this_thread::sleep_for(kLockNap);
  }
}

// 0, or why the folder cannot be read to its end.
template <typename Each>
int visit(int folder, Each each) {
  // A descriptor of its own: reading moves it.
  Descriptor own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return errno;
  DIR* const listing = ::fdopendir(own.get());
  if (listing == nullptr) return errno;
  own.release();
  const std::unique_ptr<DIR, int (*)(DIR*)> closing(listing, &::closedir);
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(listing);
    if (entry == nullptr) return errno;
    each(std::string_view(entry->d_name));
  }
}

// One that cannot be read is none: then nothing is removed that is not known by its name.
bool has_mark(int folder) {
  const Descriptor file(::openat(folder, kMarkName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, kMark.size()> text;
  return file && ::read(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         std::string_view(text.data(), text.size()) == kMark;
}

struct Contents {
  int error = 0;  // why it cannot be read
  bool any_of_ours = false;
  std::string foreign;  // one that is not; empty: there is none
};

Contents contents_of(int folder) {
  Contents contents;
  contents.error = visit(folder, [&](std::string_view name) {
    if (name == "." || name == ".." || name == kLockName || name == kMarkName) return;
    if (is_named_like_ours(name) || is_left_over(name))
      contents.any_of_ours = true;
    else if (contents.foreign.empty())
      contents.foreign = name;
  });
  return contents;
}

}  // namespace

void CacheDirectory::note_failure(const std::string& what, int error) const {
  count_system_failure(SystemFailure::kKeptFiles, error);
  if (failed_calls_.fetch_add(1, std::memory_order_relaxed) == 0 && hear_)
    hear_(fmt::format("{}: {}: {}", path_, what, std::strerror(error)));
}

std::vector<CacheDirectory::Entry> CacheDirectory::list(int folder) const {
  std::vector<Entry> entries;
  const int error = visit(folder, [&](std::string_view name) {
    if (!is_named_like_ours(name, suffix_)) return;
    struct stat status {};
    if (::fstatat(folder, std::string(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      // Removed meanwhile, most of the time.
      if (errno != ENOENT) note_failure(fmt::format("{} cannot be looked at", name), errno);
      return;
    }
    if (S_ISDIR(status.st_mode)) return;
    entries.push_back({std::string(name), static_cast<uint64_t>(status.st_size),
                       int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
  });
  if (error != 0) note_failure("the folder cannot be listed", error);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(b.used_ns, a.name) < std::tie(a.used_ns, b.name);
  });
  return entries;
}

Result<int> CacheDirectory::open_folder() const {
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    if (errno == ENOENT) return -1;
    if (errno == ENOTDIR) return make_error(ErrorKind::kUsage, "is no folder", path_);
    return failed_call("the folder cannot be opened", errno, path_);
  }
  Descriptor opened(folder);
  struct stat status {};
  if (::fstat(folder, &status) != 0) return failed_call("the folder cannot be looked at", errno, path_);
  if (const std::string defect = too_open(status, owner_); !defect.empty())
    return make_error(ErrorKind::kUsage, defect, path_);
  return opened.release();
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
    return failed_call("cannot be opened", errno, path_of(name));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed_call("cannot be looked at", errno, path_of(name));
  if (!S_ISREG(status.st_mode)) return unusable(ErrorKind::kUsage, "is no regular file");
  if (const std::string defect = too_open(status, owner_); !defect.empty())
    return unusable(ErrorKind::kUsage, defect);
  if (static_cast<uint64_t>(status.st_size) > kMostFileBytes)
    return unusable(ErrorKind::kUsage, "is too large");
  const auto from = [&](std::span<std::byte> into, uint64_t at) -> Result<size_t> {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t n =
          ::pread(file.get(), into.data() + done, into.size() - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed_call("cannot be read", errno, path_of(name));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  };
  std::array<std::byte, kMostSealBytes> start;
  HINDSIGHT_ASSIGN(const size_t started, from(start, 0));
  const auto seal = parse_seal({reinterpret_cast<const char*>(start.data()), started});
  if (!seal) return unusable(seal.error().kind, seal.error().message);
  Bytes contents(static_cast<size_t>(status.st_size) - std::min<size_t>(seal->line_bytes, status.st_size));
  HINDSIGHT_ASSIGN(const size_t length, from(contents, seal->line_bytes));
  contents.resize(length);
  if (const Status right = check_seal(*key_, name, *seal, contents); !right) {
    if (!right.error().place.empty()) return std::unexpected(right.error());  // the key's
    return unusable(right.error().kind, right.error().message);
  }
  return contents;
}

void CacheDirectory::touch(const std::string& name) const {
  // One that was removed meanwhile is no failure.
  if (::utimensat(AT_FDCWD, path_of(name).c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)
    note_failure("that " + name + " was used cannot be noted", errno);
}

Status CacheDirectory::update(const std::string& name,
                              const std::function<Bytes(std::optional<Bytes> old)>& merge) const {
  HINDSIGHT_ASSIGN(int opened, open_folder());
  if (opened < 0) {
    const int error = make_folders(path_);
    HINDSIGHT_ASSIGN(opened, open_folder());
    if (opened < 0) return failed_call("the folder cannot be made", error, path_);
  }
  const Descriptor folder(opened);
  HINDSIGHT_ASSIGN(const Descriptor locked, lock(folder.get(), path_));
  auto old = read_at(folder.get(), name);
  const Bytes bytes = merge(old ? std::move(*old) : std::nullopt);
  if (bytes.empty()) return {};
  HINDSIGHT_ASSIGN(const std::string seal, seal_line(*key_, name, bytes));
  if (seal.size() + bytes.size() > std::min(most_bytes_, kMostFileBytes)) {
    return make_error(ErrorKind::kResource,
                      fmt::format("{} bytes are more than the folder may hold", seal.size() + bytes.size()),
                      path_of(name));
  }
  set_mark(folder.get());
  HINDSIGHT_TRY(write_at(folder.get(), name, seal, bytes));
  enforce_bound(folder.get(), name);
  return {};
}

Status CacheDirectory::write_at(int folder, const std::string& name, std::string_view seal,
                                std::span<const std::byte> contents) const {
  const std::string_view parts[] = {seal, {reinterpret_cast<const char*>(contents.data()), contents.size()}};
  const std::string temporary = name + std::string(kTemporarySuffix);
  // Invariant: we hold the lock, so that one of this name is left over from somebody who is gone.
  remove(folder, temporary);
  const NewFile file{.parts = parts, .mode = kFileMode, .temporary = temporary};
  if (const auto replaced = replace_file(folder, name, file); !replaced)
    return failed_call(fmt::format("cannot be {}", replaced.error().step), replaced.error().error,
                       path_of(name));
  return {};
}

bool CacheDirectory::remove(int folder, const std::string& name) const {
  if (::unlinkat(folder, name.c_str(), 0) == 0) return true;
  if (errno != ENOENT) note_failure(name + " cannot be removed", errno);
  return false;
}

// A folder that holds something else already may be anybody's, and stays without.
void CacheDirectory::set_mark(int folder) const {
  struct stat status {};
  if (::fstatat(folder, kMarkName, &status, AT_SYMLINK_NOFOLLOW) == 0) return;
  const Contents contents = contents_of(folder);
  if (contents.error != 0) return note_failure("the folder cannot be listed", contents.error);
  if (!contents.foreign.empty()) return;
  const FileSizeGuard guard;
  const Descriptor file(
      ::openat(folder, kMarkName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file && write_all(file.get(), kMark)) return;
  // Another one has made it meanwhile.
  if (!file && errno == EEXIST) return;
  note_failure("the folder cannot be marked", errno);
  if (file) remove(folder, kMarkName);  // half a mark would be none for ever
}

void CacheDirectory::remove_left_overs(int folder) const {
  std::vector<std::string> left_over;
  const int error = visit(folder, [&](std::string_view name) {
    if (is_left_over(name)) left_over.emplace_back(name);
  });
  if (error != 0) note_failure("the folder cannot be listed", error);
  for (const std::string& name : left_over) remove(folder, name);
}

void CacheDirectory::enforce_bound(int folder, const std::string& keep) const {
  remove_left_overs(folder);
  std::vector<Entry> entries = list(folder);
  std::stable_partition(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return entry.name == keep; });
  uint64_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes;
    // Whoever reads it at this moment has it open.
    if (total > most_bytes_ && remove(folder, entry.name)) total -= entry.bytes;
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
  if (opened < 0) return make_error(ErrorKind::kUsage, "there is no such folder; nothing was removed", path_);
  const Descriptor folder(opened);
  if (!has_mark(folder.get())) {
    const Contents contents = contents_of(folder.get());
    if (contents.error != 0) return failed_call("the folder cannot be listed", contents.error, path_);
    if (!contents.foreign.empty()) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("is no folder of Hindsight's: it has no mark ({}) and holds other things, such as {}. "
                      "Nothing was removed; remove by hand what you know to be kept code or profiles",
                      kMarkName, contents.foreign),
          path_);
    }
    if (!contents.any_of_ours)
      return make_error(
          ErrorKind::kUsage,
          fmt::format("is no folder of Hindsight's: it has no mark ({}), and nothing that was kept; nothing "
                      "was removed",
                      kMarkName),
          path_);
  }
  HINDSIGHT_ASSIGN(const Descriptor locked, lock(folder.get(), path_));
  uint64_t removed = 0;
  for (const Entry& entry : list(folder.get())) {
    if (::unlinkat(folder.get(), entry.name.c_str(), 0) != 0)
      return failed_call("cannot be removed", errno, path_of(entry.name));
    ++removed;
  }
  remove_left_overs(folder.get());
  return removed;
}

}  // namespace hindsight::rt
