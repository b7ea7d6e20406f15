// What of the embedder's own no guest may reach. That is folders of kept code and profiles, the key that these are sealed
// with, and their files, wherever they lie. Who could write them could have code of their own run outside of the sandbox.
//
//   - A preopened directory that contains a folder which is in use, or lies in one, is refused. Contains: the way to the
//     folder leads through it, be it by its links or by `..` from where it ends, or from the deepest part of it that is there.
//     Directories are compared by device and inode, so that names, links and bind mounts make no difference.
//   - One that contains a folder which only may be in use by others is given, but the folder is shut: no call enters it, and
//     none moves or removes it or a directory that leads to it.
//   - A file of the embedder's has mode 0400 and a certain beginning, which no guest can make: preview 1 sets no modes. It is
//     not opened, emptied, linked, renamed, replaced or removed, by whichever name, also where the process is root's, whom modes
//     do not stop.
//
// What is left to a guest is to make files of its own in a folder that nobody told of. That is one that another run
// named, or one that came into being later. Or it is a mount of a part of a folder, which does not lead to the folder.
// Such files have no seal, and so are not accepted as kept code or profiles (runtime/storage/sealed_file.h).
// tests/runtime/cli/cache_attack_test.cc plays all of this.
//
// Threads: the calls of one context, one at a time.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/wasi/errno.h"
#include "runtime/wasi/owned_fd.h"

namespace hindsight::wasi {

struct OwnFolder {
  std::string path;  // need not be there
  std::string what;  // "the code cache"
  bool in_use = false;
  std::string remedy;  // what to do where a guest is to have a directory around it
};

class OwnFiles {
 public:
  OwnFiles() = default;
  // Looks where the folders are now.
  OwnFiles(const std::vector<OwnFolder>& folders, std::vector<std::string> file_starts);

  bool any() const { return !folders_.empty() || !file_starts_.empty(); }

  // Error kUsage, with `path` as its place.
  Status check_preopen(int directory, const std::string& path);
  // Some preopened directory contains a folder of these: every directory of a path has to be looked at.
  bool exposed() const { return exposed_; }

  bool is_own_folder(const struct stat& status) const;
  // Moving or removing it would move one of the folders.
  bool leads_to_own_folder(const struct stat& status) const;
  // Whether what `name` means in `directory` must stay where and as it is: for calls on names.
  bool keeps(int directory, const std::string& name) const;
  // The answer for an open file or directory: kSuccess, or why the guest must not have it. `flags` are those it was
  // opened with; `reopen()` gives a descriptor of the same for reading, where this one is O_PATH.
  template <typename Reopen>
  Errno judge(int opened, const struct stat& status, int flags, Reopen reopen) const;

 private:
  using Id = std::pair<dev_t, ino_t>;
  static Id id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }
  struct Folder {
    OwnFolder is;
    bool there = false;
    Id id{};
    OwnedFd pinned;       // so that its inode number stays its own
    std::set<Id> around;  // directories through which one comes to it
  };
  static Folder look_for(const OwnFolder& folder);
  static bool may_be_ours(const struct stat& status);
  // `in_doubt`: what is said of a file that cannot be read, or has nothing in it yet.
  bool begins_as_ours(int file, bool in_doubt) const;
  bool can_be_written(int flags) const;

  std::vector<Folder> folders_;
  std::vector<std::string> file_starts_;
  bool exposed_ = false;
};

template <typename Reopen>
Errno OwnFiles::judge(int opened, const struct stat& status, int flags, Reopen reopen) const {
  if (S_ISDIR(status.st_mode)) return is_own_folder(status) ? Errno::kNotcapable : Errno::kSuccess;
  if (file_starts_.empty() || !may_be_ours(status)) return Errno::kSuccess;
  if ((flags & O_PATH) && (status.st_mode & 07777) == 0) return Errno::kSuccess;  // only looked at
  // Nobody may write a file of this mode; only the kernel makes an exception for root, and we do not.
  if (can_be_written(flags)) return Errno::kAcces;
  const OwnedFd readable = reopen();
  return begins_as_ours(readable ? readable.get() : opened, true) ? Errno::kNotcapable : Errno::kSuccess;
}

}  // namespace hindsight::wasi
