// CacheDirectory: a folder of files that anybody may delete and nobody but this program, for their owner, may have
// written. For code in them will be executed, or what they say will be acted on.
//
//   - A file is read if it is a regular file and no link, it and the folder belong to the process's user and can
//     be written by nobody else, and its seal (sealed_file.h) is right: what was written by somebody else with the
//     user's rights, such as a guest that was given the folder, is not used. Contents are read into memory first: a
//     file that changes meanwhile is at worst a wrong seal, never a fault.
//   - Writers work one at a time (flock on ".lock", which the kernel lets go of when its holder dies), each into
//     a temporary file that is then renamed over the old one. Readers never wait: they see the old file or
//     the new one. Nothing is synced: after a power failure a file may be empty or torn, which its seal
//     tells, and all that is lost is time; a sync would be paid at the end of every program.
//   - The least recently used files of the folder go until the rest is within the bound.
//   - Nothing is removed but files whose names are like ours: hexadecimal digits, a hyphen, more of them, and a suffix
//     of ours. All of them are removed at once only where the folder has our mark (a CACHEDIR.TAG, which programs that
//     make backups know as well), or nothing but files of ours. The mark is set with the first file, unless something
//     else lies there already.
//   - Files have mode 0400: WASI opens no such file that is sealed (runtime/wasi/own_files.h).
//
// System calls that fail are counted (base/system_failures.h), all of them. They are errors. Where nothing depends on
// them, the first of a folder is told instead, by the name of the file and the errno's words. A limit of file sizes makes
// a write one of these.
//
// Threads and processes: everything may be called at any time by any number of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/storage/user_key.h"

namespace hindsight::rt {

class CacheDirectory {
 public:
  static constexpr std::string_view kCodeSuffix = ".code";
  static constexpr std::string_view kProfileSuffix = ".profile";

  // Nothing is touched yet. `owner`: who must own what is read; another one is for tests. `suffix`: one of the two; files
  // of other names are left alone.
  CacheDirectory(std::string path, std::shared_ptr<const UserKey> key, std::string_view suffix = kCodeSuffix,
                 uint64_t most_bytes = UINT64_MAX, uid_t owner = ::geteuid())
      : path_(std::move(path)),
        key_(std::move(key)),
        suffix_(suffix),
        most_bytes_(most_bytes),
        owner_(owner) {}

  using Bytes = std::vector<std::byte>;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // What the file holds, after its seal; nothing if there is no such file or folder. Errors: kUsage (it must not be used,
  // and why), kResource. Their place is path_of(name), the folder, or that of the key.
  Result<std::optional<Bytes>> read(const std::string& name) const;
  // As of now the most recently used.
  void touch(const std::string& name) const;

  // Replaces the file by what `merge` makes of the one that is there (nothing: none, or none that may be used). If that
  // is empty, leaves everything as it is. The folder is made if need be. Then enforces the bound. Errors: kResource (no
  // folder, disk full, larger than the bound, others wrote for longer than a program's end should wait). kUsage (the
  // folder is not ours alone). Those of the key.
  Status update(const std::string& name, const std::function<Bytes(std::optional<Bytes> old)>& merge) const;

  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    int64_t used_ns = 0;  // since the epoch
  };
  // The most recently used first. Error kResource: the folder cannot be read (one that is not there has no
  // entries).
  Result<std::vector<Entry>> entries() const;
  // Removes all entries, and what killed writers left; how many entries there were. Errors: kUsage
  // (no such folder, not ours: nothing was removed), kResource.
  Result<uint64_t> clear() const;

  // Calls of the system that failed without an error of ours.
  uint64_t failed_calls() const { return failed_calls_.load(std::memory_order_relaxed); }
  // Gets the first of them, in words; set before anything else is called.
  void on_first_failure(std::function<void(const std::string&)> hear) { hear_ = std::move(hear); }

 private:
  Result<int> open_folder() const;
  Result<std::optional<Bytes>> read_at(int folder, const std::string& name) const;
  Status write_at(int folder, const std::string& name, std::string_view seal,
                  std::span<const std::byte> contents) const;
  void enforce_bound(int folder, const std::string& keep) const;
  void set_mark(int folder) const;
  bool remove(int folder, const std::string& name) const;
  void remove_left_overs(int folder) const;
  std::vector<Entry> list(int folder) const;
  void note_failure(const std::string& what, int error) const;

  const std::string path_;
  const std::shared_ptr<const UserKey> key_;
  const std::string suffix_;
  const uint64_t most_bytes_;
  const uid_t owner_;
  std::function<void(const std::string&)> hear_;
  mutable std::atomic<uint64_t> failed_calls_{0};  // counts, and orders nothing else
};

}  // namespace hindsight::rt
