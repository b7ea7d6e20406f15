// The guest's descriptors: a small number for each open thing, with what the guest may do with it. A guest
// number never is a host number; the table is the only way from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/wasi/abi.h"
#include "runtime/wasi/errno.h"
#include "runtime/wasi/owned_fd.h"

namespace hindsight::wasi {

// One name of a directory, as fd_readdir tells it.
struct DirectoryEntry {
  uint64_t inode = 0;
  Filetype type = Filetype::kUnknown;
  std::string name;
};

struct FdEntry {
  enum class Kind : uint8_t {
    kHost,  // a host descriptor
    kSink,  // written bytes go to a function of the embedder
    kText,  // read bytes come from a string
  };

  Kind kind = Kind::kHost;
  Filetype filetype = Filetype::kUnknown;
  bool terminal = false;
  bool shared = false;  // kHost: a standard stream, whose open file others use as well
  uint16_t flags = 0;   // fdflags as the guest set them; kNonblock lives only here, never on the host
  uint64_t rights_base = 0;
  uint64_t rights_inheriting = 0;
  OwnedFd fd;                               // kHost
  std::optional<std::string> preopen_name;  // the guest's path of a preopened directory
  // A directory's names as of the last fd_readdir from the start; cookies are positions in it.
  std::optional<std::vector<DirectoryEntry>> listing;
  std::function<void(std::span<const std::byte>)> sink;  // kSink
  std::string text;                                      // kText
  size_t text_position = 0;                              // kText: bytes already read

  bool is_directory() const { return filetype == Filetype::kDirectory; }
  // Reads and writes never wait, so nothing has to be polled before them.
  bool always_ready() const {
    return kind != Kind::kHost || filetype == Filetype::kRegularFile || filetype == Filetype::kDirectory ||
           filetype == Filetype::kBlockDevice;
  }
};

// Keeps the entries that the calling thread got from a table alive until the end of the call that it makes. That holds
// also if another thread closes their numbers meanwhile. One a call, on its stack.
class FdPins {
 public:
  FdPins();
  ~FdPins();
  FdPins(const FdPins&) = delete;
  FdPins& operator=(const FdPins&) = delete;

 private:
  size_t before_;  // calls may nest
};

// Not synchronized: calls use it under the lock of their context.
class FdTable {
 public:
  // The entry, pinned (FdPins), that has all of `rights`; kBadf for a closed number. Where a right is missing the errno
  // is the one that POSIX programs know for that mistake. It is kIsdir for file operations on a directory, kBadf for
  // reading or writing against the access mode, and else kNotcapable.
  Answer<FdEntry*> get(uint32_t fd, uint64_t rights = 0);

  // As get, for the base of a path: kNotdir where the entry is no directory.
  Answer<FdEntry*> get_directory(uint32_t fd, uint64_t rights);

  // Open numbers.
  size_t open_count() const { return open_; }
  // Lowest free number.
  uint32_t insert(FdEntry entry);
  // At exactly this number, which must be free.
  void insert_at(uint32_t fd, FdEntry entry);

  // What another thread's call is waiting for is closed when that ends, as a kernel does it.
  Errno close(uint32_t fd);
  // Moves `from` onto `to`, closing what was there. Both must be open.
  Errno renumber(uint32_t from, uint32_t to);

 private:
  std::vector<std::shared_ptr<FdEntry>> entries_;
  size_t open_ = 0;  // entries that are not null
};

// What a host descriptor is, from its mode (and for sockets its type).
Filetype filetype_of(int fd, uint32_t mode);

}  // namespace hindsight::wasi
