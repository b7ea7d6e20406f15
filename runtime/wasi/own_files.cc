#include "runtime/wasi/own_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/wasi/path_resolver.h"

namespace hindsight::wasi {
namespace {

constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kMostLinks = 40;    // as Linux
constexpr int kMostDepth = 4096;  // of `..`; more than any path has

// In reverse, so that the next one is the last.
void push_components(std::vector<std::string>& pending, std::string_view path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  pending.insert(pending.end(), parts.rbegin(), parts.rend());
}

// Every directory from this one to the root, by `..`.
template <typename Each>
void walk_up(int directory, Each each) {
  OwnedFd here(::openat(directory, ".", kDirectoryFlags));
  struct stat status {};
  if (!here || ::fstat(here.get(), &status) != 0) return;
  for (int depth = 0; depth < kMostDepth; ++depth) {
    each(status);
    OwnedFd above(::openat(here.get(), "..", kDirectoryFlags));
    struct stat next {};
    if (!above || ::fstat(above.get(), &next) != 0) return;
    if (next.st_dev == status.st_dev && next.st_ino == status.st_ino) return;
    here = std::move(above);
    status = next;
  }
}

}  // namespace

OwnFiles::OwnFiles(const std::vector<OwnFolder>& folders, std::vector<std::string> file_starts)
    : file_starts_(std::move(file_starts)) {
  for (const OwnFolder& folder : folders) {
    if (!folder.path.empty()) folders_.push_back(look_for(folder));
  }
}

// Goes the way that the kernel would, and notes where it leads through. What is not there yet ends it.
OwnFiles::Folder OwnFiles::look_for(const OwnFolder& folder) {
  Folder found;
  found.is = folder;
  std::vector<std::string> pending;
  push_components(pending, folder.path);
  OwnedFd here(::open(folder.path.starts_with('/') ? "/" : ".", kDirectoryFlags));
  const auto note = [&](const struct stat& status) { found.around.insert(id_of(status)); };
  if (here) walk_up(here.get(), note);
  int links = 0;
  while (here && !pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    OwnedFd next(::openat(here.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!next || ::fstat(next.get(), &status) != 0) break;
    if (S_ISLNK(status.st_mode)) {
      const auto target = read_link(next.get());
      if (!target || ++links > kMostLinks) break;
      push_components(pending, *target);
      if (target->starts_with('/')) here = OwnedFd(::open("/", kDirectoryFlags));
      if (here && pending.empty()) found.there = true;  // a link to the root
      continue;
    }
    if (!S_ISDIR(status.st_mode)) break;
    here = std::move(next);
    note(status);
    found.there = pending.empty();
  }
  if (here) walk_up(here.get(), note);  // where links or mounts have led elsewhere
  struct stat status {};
  if (found.there && here && ::fstat(here.get(), &status) == 0) {
    found.id = id_of(status);
    found.pinned = std::move(here);
  } else {
    found.there = false;
  }
  return found;
}

Status OwnFiles::check_preopen(int directory, const std::string& path) {
  struct stat status {};
  if (::fstat(directory, &status) != 0)
    return make_error(ErrorKind::kResource, "cannot be looked at: " + std::string(std::strerror(errno)),
                      path);
  std::vector<const Folder*> around;
  for (const Folder& folder : folders_) {
    bool inside = false;
    if (folder.there)
      walk_up(directory, [&](const struct stat& above) { inside |= id_of(above) == folder.id; });
    if (inside) {
      return make_error(
          ErrorKind::kUsage,
          "cannot be given to a guest: it lies in " + folder.is.what + ", " + folder.is.path +
              ". Who writes there could run code outside of the sandbox; give it another directory",
          path);
    }
    if (!folder.around.contains(id_of(status))) continue;
    if (folder.is.in_use) around.push_back(&folder);
    exposed_ |= folder.there;
  }
  if (around.empty()) return {};
  std::string what, remedies;
  for (const Folder* folder : around) {
    what += (what.empty() ? "" : ", ") + folder->is.what + " (" + folder->is.path + ")";
    remedies += (remedies.empty() ? "" : ", ") + folder->is.remedy;
  }
  return make_error(
      ErrorKind::kUsage,
      "cannot be given to a guest: it contains " + what +
          ". Who writes there could run code outside of the sandbox; give it a narrower directory, or have "
          "these elsewhere, or do without: " +
          remedies,
      path);
}

bool OwnFiles::is_own_folder(const struct stat& status) const {
  return std::any_of(folders_.begin(), folders_.end(),
                     [&](const Folder& folder) { return folder.there && folder.id == id_of(status); });
}

bool OwnFiles::leads_to_own_folder(const struct stat& status) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const Folder& folder) {
    return folder.there && folder.around.contains(id_of(status));
  });
}

// Mode 0 is that of a key that is being written.
bool OwnFiles::may_be_ours(const struct stat& status) {
  const mode_t mode = status.st_mode & 07777;
  return S_ISREG(status.st_mode) && (mode == 0400 || mode == 0) && status.st_uid == ::geteuid();
}

bool OwnFiles::can_be_written(int flags) const {
  return !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
}

bool OwnFiles::begins_as_ours(int file, bool in_doubt) const {
  char start[32];
  const ssize_t length = ::pread(file, start, sizeof start, 0);
  if (length <= 0) return in_doubt;
  const std::string_view text(start, static_cast<size_t>(length));
  return std::any_of(file_starts_.begin(), file_starts_.end(), [&](const std::string& ours) {
    const size_t known = std::min(ours.size(), text.size());
    return text.substr(0, known) == std::string_view(ours).substr(0, known);
  });
}

bool OwnFiles::keeps(int directory, const std::string& name) const {
  if (!any()) return false;
  // Without the slash that would have a link followed.
  const std::string plain = name.substr(0, name.find('/'));
  struct stat status {};
  if (::fstatat(directory, plain.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (S_ISDIR(status.st_mode)) return leads_to_own_folder(status);
  if (file_starts_.empty() || !may_be_ours(status)) return false;
  const OwnedFd file(
      ::openat(directory, plain.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return begins_as_ours(file.get(), false);
}

}  // namespace hindsight::wasi
