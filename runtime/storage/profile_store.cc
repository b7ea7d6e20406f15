#include "runtime/storage/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>

#include "feedback/profile/merge.h"
#include "jit/wasm/sha256.h"
#include "runtime/code/machine_identity.h"
#include "runtime/storage/milliseconds_since.h"
#include "runtime/storage/missing_key.h"
#include "runtime/storage/user_key.h"

namespace hindsight::rt {
namespace {

std::string profile_options_of(const EngineConfig& config, const jit::CompileOptions& options) {
  std::vector<std::string> disabled = config.disabled_decisions;
  std::sort(disabled.begin(), disabled.end());
  disabled.erase(std::unique(disabled.begin(), disabled.end()), disabled.end());
  std::string text = fmt::format("feedback {}, bounds {}", config.feedback ? "on" : "off",
                                 options.bounds == jit::BoundsChecks::kGuardPages ? "guarded" : "explicit");
  for (const std::string& decision : disabled) text += ", no " + decision;
  return text + "; processor " + processor_identity();
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::unique_ptr<ProfileStore> ProfileStore::create(const EngineConfig& config, const CodeServices& services) {
  if (config.profile_directory.empty() || config.tier != TierMode::kAuto) return nullptr;
  return std::unique_ptr<ProfileStore>(new ProfileStore(config, services));
}

ProfileStore::ProfileStore(const EngineConfig& config, const CodeServices& services)
    : services_(services),
      directory_(config.profile_directory, services.key, CacheDirectory::kProfileSuffix,
                 config.profile_directory_bytes),
      options_(profile_options_of(config, services.options())) {
  directory_.on_first_failure([this](const std::string& what) {
    services_.say(LogLevel::kWarning, "profile", what + "; more such failures are counted, and not told");
  });
}

std::string ProfileStore::file_name(const std::string& module_hash_hex, const std::string& options) {
  const auto hash = wasm::sha256({reinterpret_cast<const uint8_t*>(options.data()), options.size()});
  std::string name = module_hash_hex + "-";
  for (const uint8_t byte : std::span(hash).first(8)) name += fmt::format("{:02x}", byte);
  return name + std::string(CacheDirectory::kProfileSuffix);
}

Result<feedback::ProfileFile> ProfileStore::parse(std::span<const std::byte> bytes) {
  if (bytes.size() > feedback::kMaxProfileFileBytes)
    return make_error(ErrorKind::kUsage,
                      fmt::format("is larger than {} MiB", feedback::kMaxProfileFileBytes >> 20));
  auto file = feedback::read_profile(std::string(text_of(bytes)));
  if (!file && file.error().kind == ErrorKind::kUnsupported) return file;
  if (!file) return make_error(ErrorKind::kUsage, "is damaged: " + file.error().message);
  return file;
}

Result<feedback::ModuleProfile> ProfileStore::module_in(std::span<const std::byte> bytes,
                                                        const wasm::Module& module) const {
  HINDSIGHT_ASSIGN(feedback::ProfileFile file, parse(bytes));
  if (file.modules.size() != 1 || file.modules[0].hash_hex != module.content_hash_hex() ||
      file.modules[0].options != options_)
    return make_error(ErrorKind::kUsage, "is of another module or of other options than its name says");
  return std::move(file.modules[0]);
}

std::optional<feedback::ModuleProfile> ProfileStore::load(const wasm::Module& module) const {
  const auto begin = std::chrono::steady_clock::now();
  const std::string name = file_name(module.content_hash_hex(), options_);
  const auto profile = [&]() -> Result<std::optional<feedback::ModuleProfile>> {
    HINDSIGHT_ASSIGN(const auto bytes, directory_.read(name));
    if (!bytes) return std::nullopt;
    return module_in(*bytes, module);
  }();
  if (!profile) {
    const Error& error = profile.error();
    if (says_that_no_key_is_there(services_, error)) return std::nullopt;
    const bool folder = error.place == directory_.path();
    services_.say(
        // No defect: so it is after every update.
        error.kind == ErrorKind::kUnsupported ? LogLevel::kInfo : LogLevel::kWarning, "profile",
        fmt::format("{} {}; ignored, and {}", folder ? error.place : directory_.path_of(name), error.message,
                    folder ? "nothing is kept" : "written anew when there are decisions to keep"));
    return std::nullopt;
  }
  if (!*profile) return std::nullopt;
  directory_.touch(name);
  services_.say(LogLevel::kInfo, "profile",
                fmt::format("{}: {} decisions of {} earlier runs, read in {:.2f} ms", module.name,
                            (*profile)->episodes.size(), (*profile)->runs_seen, milliseconds_since(begin)));
  return *profile;
}

Status ProfileStore::add(const wasm::Module& module, feedback::ModuleProfile run,
                         const std::map<std::string, double>& policy) const {
  const auto begin = std::chrono::steady_clock::now();
  // Most programs end before anything is decided about them, and what is kept helps by its decisions alone.
  // So those take no lock and no folder, and do not age what longer runs found out.
  if (run.episodes.empty() && run.page_episodes.empty() && run.layout_episodes.empty()) {
    services_.say(LogLevel::kDebug, "profile",
                  module.name + ": nothing was decided, nothing is kept of this run");
    return {};
  }
  const std::string name = file_name(module.content_hash_hex(), options_);
  run.options = options_;
  size_t written = 0;
  uint64_t runs = 0;
  const Status saved = directory_.update(name, [&](std::optional<CacheDirectory::Bytes> old) {
    feedback::ProfileFile file;
    file.policy = policy;
    // What was wrong with it was said when the module was loaded, or is the doing of somebody else since.
    std::optional<feedback::ModuleProfile> before;
    if (old)
      if (auto known = module_in(*old, module)) before = std::move(*known);
    file.modules.push_back(before ? feedback::merge(std::move(*before), run) : std::move(run));
    runs = file.modules[0].runs_seen;
    const std::string text = feedback::format_profile(file, /*compact=*/true);
    const auto bytes = std::as_bytes(std::span(text));
    written = bytes.size();
    return CacheDirectory::Bytes(bytes.begin(), bytes.end());
  });
  if (!saved) {
    // What is wrong with who may write the folder was said when the module was loaded.
    if (!says_that_no_key_is_there(services_, saved.error()))
      services_.say(saved.error().kind == ErrorKind::kUsage ? LogLevel::kDebug : LogLevel::kWarning,
                    "profile", "this run is not kept: " + saved.error().describe());
  } else if (written > 0) {
    services_.say(LogLevel::kInfo, "profile",
                  fmt::format("{}: kept, of {} runs, {} bytes, in {:.2f} ms", module.name, runs, written,
                              milliseconds_since(begin)));
  }
  return saved;
}

}  // namespace hindsight::rt
