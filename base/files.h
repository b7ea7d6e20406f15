// Whole files: read up to a bound, and replaced so that nobody ever finds half of one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hindsight {

// All bytes of a file that somebody named: links are followed, pipes and devices are read to their end. Errors, all
// kUsage with the path as their place: "cannot be opened: ...", "cannot be read: ...", "is larger than 64 MiB".
Result<std::vector<std::byte>> read_file(const std::string& path, uint64_t most_bytes);

// Writes all of it, in as many calls as it takes. False: errno has the reason.
bool write_all(int descriptor, std::string_view bytes);

struct NewFile {
  std::span<const std::string_view> parts;  // the contents, one part after the other
  mode_t mode = 0600;
  // What it is called until it is whole, in the same folder. Whatever has this name is removed first, so no two
  // writers may use it at a time. Empty: a name that nobody has.
  std::string temporary = {};
  bool synced = false;  // on the disk before it is put in place
};

struct FileFailure {
  const char* step;  // "created", "written", "synced", "put in place"
  int error;         // errno
};

// Makes the file under its temporary name and renames it over `name`, which is relative to the descriptor `folder`
// (AT_FDCWD: to the working directory). After a failure nothing is left and `name` is what it was. Stays within a
// limit of file sizes (file_size_guard.h).
std::expected<void, FileFailure> replace_file(int folder, const std::string& name, const NewFile& file);

}  // namespace hindsight
