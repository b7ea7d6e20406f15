// CacheDirectory: a folder of files that anybody may delete and nobody but their owner may have written,
// because code in them will be executed, or what they say will be acted on.
//
//   - A file is read if it is a regular file and no link, and it and the folder belong to the process's user
//   and
//     can be written by nobody else. Contents are read into memory first: a file that changes meanwhile is at
//     worst a wrong checksum, never a fault. That checksum is the caller's; it finds damage, not malice.
//   - Writers work one at a time (flock on ".lock", which the kernel lets go of when its holder dies), each
//   into
//     a temporary file that is then renamed over the old one. Readers never wait: they see the old file or
//     the new one. Nothing is synced: after a power failure a file may be empty or torn, which its checksum
//     tells, and all that is lost is time; a sync would be paid at the end of every program.
//   - Of the folder's files the least recently used go until the rest is within the bound.
//
// Threads and processes: everything may be called at any time by any number of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace hindsight::rt {

class CacheDirectory {
 public:
  // Nothing is touched yet. `owner`: who must own what is read; another one is for tests. `suffix`: of the
  // names of its files; others in the folder are left alone.
  explicit CacheDirectory(std::string path, uint64_t most_bytes = UINT64_MAX, uid_t owner = ::geteuid(),
                          std::string suffix = ".code")
      : path_(std::move(path)), most_bytes_(most_bytes), owner_(owner), suffix_(std::move(suffix)) {}

  using Bytes = std::vector<std::byte>;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // Nothing if there is no such file or folder. Error kUsage: it must not be used, and why; kResource.
  Result<std::optional<Bytes>> read(const std::string& name) const;
  // As of now the most recently used. Errors are of no interest.
  void touch(const std::string& name) const;

  // Replaces the file by what `merge` makes of the one that is there (nothing: none, or none that may be
  // used); empty: leave everything as it is. The folder is made if need be. Then enforces the bound. Errors:
  // kResource (no folder, disk full, larger than the bound, others wrote for longer than a program's end
  // should wait), kUsage (the folder is not ours alone).
  Status update(const std::string& name, const std::function<Bytes(std::optional<Bytes> old)>& merge) const;

  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    int64_t used_ns = 0;  // since the epoch
  };
  // The most recently used first. Error kResource: the folder cannot be read (one that is not there has no
  // entries).
  Result<std::vector<Entry>> entries() const;
  // Removes all entries; how many there were.
  Result<uint64_t> clear() const;

 private:
  Result<int> open_folder() const;
  Result<std::optional<Bytes>> read_at(int folder, const std::string& name) const;
  Status write_at(int folder, const std::string& name, std::span<const std::byte> bytes) const;
  void enforce_bound(int folder, const std::string& keep) const;
  std::vector<Entry> list(int folder) const;

  const std::string path_;
  const uint64_t most_bytes_;
  const uid_t owner_;
  const std::string suffix_;
};

}  // namespace hindsight::rt
