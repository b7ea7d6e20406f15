// Guest paths, kept beneath the directory they start from. This is the file-system wall of the sandbox.
//
// A path is resolved from a directory descriptor and may go anywhere below that directory. It may go through `..` as
// long as it does not climb above it. It may go through symbolic links whose targets are relative and stay below.
// Everything else (an absolute path, an absolute link, one `..` too many) is kNotcapable. Nothing is checked first and
// used later. Each step yields a descriptor and the next starts from it, so a link that is swapped in between cannot
// lead out.
//
// Nor does a path lead into the embedder's own folders and files (own_files.h): kNotcapable. Where a preopened directory
// contains such a folder, or a path comes to another mount, each directory on the way is compared. Otherwise only what
// the path ends at has to be.
//
// Operations on a name itself (unlink, rename, mkdir, ...) take the directory that holds it from parent_of
// and use the *at call on that single name, whose last component those calls never follow.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "runtime/wasi/errno.h"
#include "runtime/wasi/own_files.h"
#include "runtime/wasi/owned_fd.h"

namespace hindsight::wasi {

class PathResolver {
 public:
  enum class Strategy : uint8_t {
    kOpenat2,  // the kernel resolves (openat2 with RESOLVE_BENEATH; Linux 5.6 and not filtered by seccomp)
    kWalk,     // one openat(O_NOFOLLOW) a component, links expanded here, at most 40 of them
  };

  // kOpenat2 where this kernel offers it.
  static Strategy best();

  // `own`, if given, outlives it.
  explicit PathResolver(Strategy strategy, const OwnFiles* own = nullptr) : strategy_(strategy), own_(own) {}
  Strategy strategy() const { return strategy_; }

  // Opens `path` below `directory`. `flags` are those of open(2): O_NOFOLLOW keeps the last component from
  // being followed (with O_PATH the link itself is opened). O_CLOEXEC is added. `mode` counts with O_CREAT.
  // `status`, if given, gets what was opened.
  Answer<OwnedFd> open(int directory, const std::string& path, int flags, uint32_t mode = 0,
                       struct stat* status = nullptr) const;

  struct Parent {
    OwnedFd directory;  // O_PATH
    std::string name;   // one component, never empty, `.` or `..`; no slash but for the trailing one
    bool trailing_slash = false;

    // The name with its trailing slash, for calls that only insist on a directory because of it
    // (unlinkat, renameat, mkdirat, symlinkat). Not for calls that would follow a link through it.
    std::string name_with_slash() const { return trailing_slash ? name + "/" : name; }
  };

  // The directory that holds the last component. `special` is the answer for a path that ends in `.` or
  // `..`, of which no operation on a name can make sense.
  Answer<Parent> parent_of(int directory, const std::string& path, Errno special) const;

 private:
  Answer<OwnedFd> open_and_empty(int directory, const std::string& path, int flags, uint32_t mode,
                                 struct stat* status) const;
  Answer<OwnedFd> resolve(int directory, const std::string& path, int flags, uint32_t mode) const;

  Strategy strategy_;
  const OwnFiles* own_;
};

// The target of a symbolic link, given an O_PATH|O_NOFOLLOW descriptor of the link itself.
Answer<std::string> read_link(int link);

}  // namespace hindsight::wasi
