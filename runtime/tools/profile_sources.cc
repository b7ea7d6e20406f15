#include "runtime/tools/profile_sources.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/files.h"
#include "runtime/storage/profile_store.h"

namespace hindsight::rt {
namespace {

// A profile or a module, as somebody named it.
Result<std::vector<std::byte>> read_named(const std::string& path) {
  auto bytes = read_file(path, feedback::kMaxProfileFileBytes);
  if (bytes) return bytes;
  Error error = bytes.error();
  error.message += "; name a saved profile, or a module that was run";
  return std::unexpected(std::move(error));
}

std::span<const uint8_t> view(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// The profile of the module that was used last.
Result<FoundProfile> kept_profile_of(std::shared_ptr<const wasm::Module> module,
                                     const ProfileSource& source) {
  if (source.directory.empty()) {
    return make_error(
        ErrorKind::kUsage,
        "is a module, and there is no folder of profiles to look for it in. Keeping profiles is off, "
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
  HINDSIGHT_ASSIGN(const std::vector<std::byte> bytes, read_named(path));
  return wasm::read_module(view(bytes), path);
}

Result<FoundProfile> find_profile(const ProfileSource& source) {
  HINDSIGHT_ASSIGN(const std::vector<std::byte> bytes, read_named(source.path));
  if (wasm::is_binary_module(view(bytes)) || wasm::is_text_module(view(bytes))) {
    HINDSIGHT_ASSIGN(std::shared_ptr<const wasm::Module> module, wasm::read_module(view(bytes), source.path));
    return kept_profile_of(std::move(module), source);
  }
  HINDSIGHT_ASSIGN(feedback::ProfileFile file, feedback::load_profile(source.path));
  return FoundProfile{std::move(file), source.path, nullptr};
}

}  // namespace hindsight::rt
