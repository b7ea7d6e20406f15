// What the code cache's folder holds, for people.
#include <fmt/format.h>
#include <stdlib.h>

#include <memory>

#include "feedback/lwp/calibration/calibration_cache.h"
#include "runtime/code/machine_identity.h"
#include "runtime/code/optimizer_loader.h"
#include "runtime/engine/hindsight.h"
#include "runtime/storage/cache_directory.h"
#include "runtime/storage/code_cache_file.h"
#include "runtime/storage/list_files.h"

namespace hindsight {

std::string default_code_cache_directory() {
  const std::string folder = lwp::calibration_folder();
  return folder.empty() ? folder : folder + "/code";
}

std::string default_profile_directory() {
  const std::string folder = lwp::calibration_folder();
  return folder.empty() ? folder : folder + "/profiles";
}

std::string default_key_directory() {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = ::secure_getenv(name);
    return value ? value : "";
  };
  if (std::string folder = variable("HINDSIGHT_KEY_DIR"); !folder.empty()) return folder;
  if (const std::string folder = variable("HINDSIGHT_CACHE_DIR"); !folder.empty()) return folder + "/key";
  // Relative ones are to be ignored (XDG Base Directory Specification).
  if (const std::string folder = variable("XDG_STATE_HOME"); folder.starts_with('/'))
    return folder + "/hindsight";
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.local/state/hindsight";
  return {};
}

Result<CodeCacheInfo> code_cache_info(const std::string& directory) {
  const rt::CacheDirectory folder(directory, std::make_shared<const rt::UserKey>(default_key_directory()));
  return rt::list_files<CodeCacheInfo>(folder, [](const auto& bytes, CodeCacheInfo::File& file) {
    const auto parsed = rt::parse_cache_file(bytes);
    if (!parsed) {
      file.defect = parsed.error().message;
      return;
    }
    file.module = parsed->module_name;
    for (const uint8_t byte : parsed->key.module) file.module_hash += fmt::format("{:02x}", byte);
    file.options = parsed->key.options;
    file.functions = parsed->functions.size();
    if (parsed->key.machine !=
        rt::machine_identity(rt::file_identity(rt::optimizer_file()), rt::file_identity(parsed->llvm_path)))
      file.defect = "was made by another build of the compiler or for another processor";
  });
}

Result<uint64_t> clear_code_cache(const std::string& directory) {
  return rt::CacheDirectory(directory, nullptr).clear();
}

}  // namespace hindsight
