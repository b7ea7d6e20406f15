#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

Status check_cache_named(const std::string& directory) {
  if (!directory.empty()) return {};
  return make_error(ErrorKind::kUsage,
                    "there is no code cache: it is off, or no home is set; name one with --code-cache");
}

}  // namespace

std::string code_cache_of_environment() {
  const char* const given = ::secure_getenv("HINDSIGHT_CODE_CACHE");
  if (given == nullptr || *given == '\0') return default_code_cache_directory();
  return std::string_view(given) == "off" ? "" : given;
}

std::string profile_directory_of_environment() {
  const char* const given = ::secure_getenv("HINDSIGHT_PROFILE_DIR");
  if (given == nullptr || *given == '\0') return default_profile_directory();
  return std::string_view(given) == "off" ? "" : given;
}

int cache_info_command(const std::string& directory, bool json) {
  if (const Status named = check_cache_named(directory); !named) return fail(named.error());
  const auto info = code_cache_info(directory);
  if (!info) return fail(info.error());
  if (json) {
    auto files = nlohmann::json::array();
    for (const CodeCacheInfo::File& file : info->files) {
      files.push_back({{"name", file.name},
                       {"bytes", file.bytes},
                       {"defect", file.defect},
                       {"module", file.module},
                       {"module_hash", file.module_hash},
                       {"options", file.options},
                       {"functions", file.functions},
                       {"age_seconds", file.age_seconds}});
    }
    const nlohmann::json root = {{"directory", info->directory}, {"bytes", info->bytes}, {"files", files}};
    fmt::print("{}\n", root.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
    return kOk;
  }
  fmt::print("{}: {} files, {} bytes\n", printable(info->directory), info->files.size(), info->bytes);
  for (const CodeCacheInfo::File& file : info->files) {
    fmt::print("  {}  {} bytes, used {} ago", printable(file.name), file.bytes,
               report::age_text(file.age_seconds));
    if (!file.module_hash.empty()) {
      fmt::print("\n      {}, {} functions; {}", printable_name(file.module), file.functions,
                 printable(file.options));
    }
    if (!file.defect.empty()) fmt::print("\n      not used: {}", printable(file.defect));
    fmt::print("\n");
  }
  return kOk;
}

int cache_clear_command(const std::string& directory) {
  if (const Status named = check_cache_named(directory); !named) return fail(named.error());
  const auto removed = clear_code_cache(directory);
  if (!removed) return fail(removed.error());
  fmt::print("{}: {} files removed\n", printable(directory), *removed);
  return kOk;
}

}  // namespace hindsight::cli
