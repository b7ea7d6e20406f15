// What lies in a folder of kept files, for people: CodeCacheInfo or KeptProfiles, but for what is in each
// file.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "runtime/storage/cache_directory.h"

namespace hindsight::rt {

// `describe(bytes, file)` is called for each file that can be read. Errors: those of CacheDirectory::entries.
template <typename Info, typename Describe>
Result<Info> list_files(const CacheDirectory& folder, Describe describe) {
  HINDSIGHT_ASSIGN(const auto entries, folder.entries());
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Info info;
  info.directory = folder.path();
  for (const CacheDirectory::Entry& entry : entries) {
    typename Info::File file;
    file.name = entry.name;
    file.bytes = entry.bytes;
    file.age_seconds = std::max(0.0, now - 1e-9 * static_cast<double>(entry.used_ns));
    info.bytes += entry.bytes;
    const auto bytes = folder.read(entry.name);
    if (!bytes) {
      file.defect = bytes.error().message;
    } else if (*bytes) {
      describe(**bytes, file);
    }
    info.files.push_back(std::move(file));
  }
  return info;
}

}  // namespace hindsight::rt
