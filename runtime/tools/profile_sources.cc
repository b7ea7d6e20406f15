#include "runtime/tools/profile_sources.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "runtime/storage/profile_store.h"

namespace hindsight::rt {
namespace {

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  const auto failed = [&](const std::string& why) { return make_error(ErrorKind::kUsage, why, path); };
  // With C streams, because C++ ones throw where a read fails (a directory opens but cannot be read).
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) {
    return failed(fmt::format("cannot be read: {}; name a saved profile, or a module that was run",
                              std::strerror(errno)));
  }
  std::vector<uint8_t> bytes;
  for (size_t used = 0;;) {
    bytes.resize(used + 64 * 1024 + used / 2);
    used += std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    if (std::ferror(file.get())) return failed(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (used > feedback::kMaxProfileFileBytes)
      return failed(fmt::format("is larger than {} MiB: no profile and no module that has one",
                                feedback::kMaxProfileFileBytes >> 20));
    if (used < bytes.size()) {
      bytes.resize(used);
      return bytes;
    }
  }
}

// The profile of the module that was used last.
Result<FoundProfile> kept_profile_of(std::shared_ptr<const wasm::Module> module,
                                     const ProfileSource& source) {
  if (source.directory.empty()) {
    return make_error(
        ErrorKind::kUsage,
        "is a module, and there is no folder of profiles to look for it in: keeping profiles is off, "
        "or no home is set; name a saved profile, or a folder with --profile-dir",
        source.path);
  }
  const CacheDirectory folder(source.directory, std::make_shared<const UserKey>(default_key_directory()),
                              CacheDirectory::kProfileSuffix);
  HINDSIGHT_ASSIGN(const auto entries, folder.entries());
  const std::string hash = module->content_hash_hex();
  std::string defect;
  for (const CacheDirectory::Entry& entry : entries) {
    if (!entry.name.starts_with(hash)) continue;
    const auto bytes = folder.read(entry.name);
    const auto file = !bytes   ? Result<feedback::ProfileFile>(std::unexpected(bytes.error()))
                      : *bytes ? ProfileStore::parse(**bytes)
                               : make_error(ErrorKind::kUsage, "is gone");
    if (file) return FoundProfile{*file, folder.path_of(entry.name), std::move(module)};
    if (defect.empty()) defect = fmt::format("; {} {}", folder.path_of(entry.name), file.error().message);
  }
  return make_error(
      ErrorKind::kUsage,
      fmt::format("no profile of this module is kept in {}{}; `hindsight run` it first, for as long "
                  "as it takes to get hot",
                  source.directory, defect),
      source.path);
}

}  // namespace

Result<std::shared_ptr<const wasm::Module>> read_module(const std::string& path) {
  HINDSIGHT_ASSIGN(const std::vector<uint8_t> bytes, read_file(path));
  return wasm::read_module(bytes, path);
}

Result<FoundProfile> find_profile(const ProfileSource& source) {
  HINDSIGHT_ASSIGN(const std::vector<uint8_t> bytes, read_file(source.path));
  if (wasm::is_binary_module(bytes) || wasm::is_text_module(bytes)) {
    HINDSIGHT_ASSIGN(std::shared_ptr<const wasm::Module> module, wasm::read_module(bytes, source.path));
    return kept_profile_of(std::move(module), source);
  }
  HINDSIGHT_ASSIGN(feedback::ProfileFile file, feedback::load_profile(source.path));
  return FoundProfile{std::move(file), source.path, nullptr};
}

}  // namespace hindsight::rt
