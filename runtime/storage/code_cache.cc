#include "runtime/storage/code_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "jit/code/code_image.h"
#include "runtime/code/charged_version.h"
#include "runtime/code/machine_identity.h"
#include "runtime/code/optimizer_loader.h"
#include "runtime/storage/milliseconds_since.h"
#include "runtime/storage/missing_key.h"
#include "runtime/storage/user_key.h"

namespace hindsight::rt {
namespace {

// Every option that changes code, or which code is worth keeping, in words.
std::string code_options_of(const EngineConfig& config, const jit::CompileOptions& options) {
  const jit::Tuning tuning;  // what all requests have
  std::vector<std::string> disabled = config.disabled_decisions;
  std::sort(disabled.begin(), disabled.end());
  disabled.erase(std::unique(disabled.begin(), disabled.end()), disabled.end());
  std::string text =
      fmt::format("tier {}, feedback {}, bounds {}, counting {}, polls {}",
                  config.tier == TierMode::kAuto ? "auto" : "optimized", config.feedback ? "on" : "off",
                  options.bounds == jit::BoundsChecks::kGuardPages ? "guarded" : "explicit",
                  options.lwp_counting ? "on" : "off", options.osr_polls ? "on" : "off");
  for (const std::string& decision : disabled) text += ", no " + decision;
  text += fmt::format(", tuning {:d}{:d}{:d}{:d}{}", tuning.use_host_features, tuning.vectorize,
                      tuning.inline_functions, tuning.align_loops, tuning.optimization_level);
  if (const char* bits = std::getenv("HINDSIGHT_VECTOR_BITS")) text += std::string(", vectors ") + bits;
  return text;
}

}  // namespace

std::unique_ptr<CodeCache> CodeCache::create(const EngineConfig& config, CodeServices& services) {
  if (config.code_cache_directory.empty() || config.tier == TierMode::kBaseline) return nullptr;
  return std::unique_ptr<CodeCache>(new CodeCache(config, services));
}

CodeCache::CodeCache(const EngineConfig& config, CodeServices& services)
    : services_(services),
      directory_(config.code_cache_directory, services.key, CacheDirectory::kCodeSuffix,
                 config.code_cache_bytes),
      options_(code_options_of(config, services.options())) {
  directory_.on_first_failure([this](const std::string& what) {
    services_.say(LogLevel::kWarning, "cache", what + "; more such failures are counted, and not told");
  });
}

CacheKey CodeCache::key_of(const wasm::Module& module) const {
  CacheKey key;
  key.module = module.content_hash();
  key.options = options_;
  return key;
}

CodeCache::Kept CodeCache::kept_of(const KeptCode& code) {
  Kept kept{code.version, {}};
  for (const auto& [site, known] : code.changes) kept.changes[site] = known.state;
  return kept;
}

bool CodeCache::same(const Kept& a, const Kept& b) {
  return !a.version.owner_before(b.version) && !b.version.owner_before(a.version) && a.changes == b.changes;
}

std::vector<KeptCode> CodeCache::load(const wasm::Module& module) {
  const auto begin = std::chrono::steady_clock::now();
  const CacheKey key = key_of(module);
  auto codes = read(module, key);
  if (!codes) {
    const Error& error = codes.error();
    if (says_that_no_key_is_there(services_, error)) return {};
    const bool folder = error.place == directory_.path();
    services_.say(
        LogLevel::kWarning, "cache",
        fmt::format("{} {}; ignored, and {}", folder ? error.place : directory_.path_of(key.file_name()),
                    error.message, folder ? "nothing is kept" : "written anew when there is code to keep"));
    return {};
  }
  if (codes->empty()) return {};
  directory_.touch(key.file_name());
  size_t bytes = 0;
  for (const KeptCode& code : *codes) bytes += code.version->memory.size();
  services_.say(LogLevel::kInfo, "cache",
                fmt::format("{}: {} functions, {} bytes of code, placed in {:.2f} ms", module.name,
                            codes->size(), bytes, milliseconds_since(begin)));
  const std::lock_guard lock(mutex_);
  KeptFunctions& kept = kept_[key.file_name()];
  for (const KeptCode& code : *codes) kept.insert_or_assign(code.version->function.value, kept_of(code));
  return std::move(*codes);
}

Result<std::vector<KeptCode>> CodeCache::read(const wasm::Module& module, const CacheKey& key) {
  HINDSIGHT_ASSIGN(const auto bytes, directory_.read(key.file_name()));
  std::vector<KeptCode> codes;
  if (!bytes) return codes;
  HINDSIGHT_ASSIGN(const CacheFile file, parse_cache_file(*bytes));
  if (file.key.module != key.module || file.key.options != key.options)
    return make_error(ErrorKind::kUsage, "is of another module or of other options than its name says");
  if (file.key.machine != machine_identity(file_identity(optimizer_file()), file_identity(file.llvm_path))) {
    // No defect: so it is after every update.
    services_.say(
        LogLevel::kInfo, "cache",
        directory_.path_of(key.file_name()) +
            " was made by another build of the compiler or for another processor; ignored, and written anew "
            "when there is code to keep");
    return codes;
  }
  for (const CachedFunction& function : file.functions) {
    if (!services_.may_optimize(function.function)) continue;
    auto version = jit::place_code_image(function.image, module, services_.arena());
    if (!version && version.error().kind == ErrorKind::kResource) {
      services_.say(LogLevel::kWarning, "cache", version.error().describe());
      break;
    }
    if (!version) return make_error(ErrorKind::kUsage, "is damaged: " + version.error().describe());
    if ((*version)->function != function.function)
      return make_error(ErrorKind::kUsage, "is damaged: it has a function under the name of another");
    codes.push_back({chargeable(std::move(*version)), function.reason, function.changes, function.calls});
  }
  const std::lock_guard lock(mutex_);
  llvm_path_ = file.llvm_path;
  return codes;
}

void CodeCache::save(const wasm::Module& module, std::span<const KeptCode> codes) {
  if (codes.empty()) return;
  CacheFile file;
  file.key = key_of(module);
  file.module_name = module.name;
  const std::string name = file.key.file_name();
  KeptFunctions now;
  for (const KeptCode& code : codes) now.emplace(code.version->function.value, kept_of(code));
  {
    const std::lock_guard lock(mutex_);
    const KeptFunctions& before = kept_[name];
    const bool news = std::any_of(now.begin(), now.end(), [&](const auto& entry) {
      const auto known = before.find(entry.first);
      return known == before.end() || !same(known->second, entry.second);
    });
    if (!news) return;
    file.llvm_path = llvm_path_;
  }
  // Who compiled: the optimizing tier as it was opened, or, if it was not, who made the file that was used.
  if (const auto compiler = services_.compiler_files()) {
    file.llvm_path = compiler->llvm_path;
    file.key.machine = machine_identity(compiler->optimizer, compiler->llvm);
  } else {
    file.key.machine = machine_identity(file_identity(optimizer_file()), file_identity(file.llvm_path));
  }
  if (file.key.machine.empty()) return;

  const auto begin = std::chrono::steady_clock::now();
  size_t immovable = 0, written = 0;
  for (const KeptCode& code : codes) {
    auto image = jit::write_code_image(*code.version);
    if (!image) {
      ++immovable;
      services_.say(LogLevel::kDebug, "cache", image.error().describe());
      continue;
    }
    file.functions.push_back(
        {code.version->function, code.reason, code.changes, code.calls, std::move(*image)});
  }
  if (file.functions.empty()) return;
  size_t merged = 0;
  const Status saved = directory_.update(name, [&](std::optional<CacheDirectory::Bytes> old) {
    if (old) {
      if (auto others = parse_cache_file(*old); others && others->key == file.key) {
        for (CachedFunction& function : others->functions) {
          if (now.contains(function.function.value)) continue;
          file.functions.push_back(std::move(function));
          ++merged;
        }
      }
    }
    std::sort(file.functions.begin(), file.functions.end(),
              [](const CachedFunction& a, const CachedFunction& b) { return a.function < b.function; });
    auto bytes = format_cache_file(file);
    written = bytes.size();
    return bytes;
  });
  if (!saved) {
    if (says_that_no_key_is_there(services_, saved.error())) return;
    // What is wrong with who may write the folder was said when the module was loaded. What else may be wrong may be so
    // every few seconds: the first is told.
    const bool first = failed_saves_.fetch_add(1, std::memory_order_relaxed) == 0;
    services_.say(saved.error().kind == ErrorKind::kUsage || !first ? LogLevel::kDebug : LogLevel::kWarning,
                  "cache", "nothing is kept: " + saved.error().describe());
    return;
  }
  services_.say(
      LogLevel::kInfo, "cache",
      fmt::format(
          "{}: {} functions kept ({} of them from before, {} more cannot be moved), {} bytes, in {:.2f} ms",
          module.name, file.functions.size(), merged, immovable, written, milliseconds_since(begin)));
  const std::lock_guard lock(mutex_);
  KeptFunctions& kept = kept_[name];
  for (auto& [function, code] : now) kept.insert_or_assign(function, std::move(code));
}

}  // namespace hindsight::rt
