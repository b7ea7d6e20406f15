// What can be done with saved profiles beside running with them: put together, export, list.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "feedback/profile/branch_hint_section.h"
#include "feedback/profile/llvm_sample_profile.h"
#include "feedback/profile/merge.h"
#include "feedback/profile/pprof.h"
#include "runtime/storage/cache_directory.h"
#include "runtime/storage/list_files.h"
#include "runtime/storage/profile_store.h"
#include "runtime/tools/profile_sources.h"

namespace hindsight {
namespace {

std::vector<std::byte> bytes_of(const auto& container) {
  const auto bytes = std::as_bytes(std::span(container.data(), container.size()));
  return {bytes.begin(), bytes.end()};
}

// The one module that is to be exported: the named one, else the only one there is.
Result<const feedback::ModuleProfile*> module_to_export(const rt::FoundProfile& found,
                                                        const wasm::Module* module) {
  const auto& modules = found.file.modules;
  if (module == nullptr) {
    if (modules.size() == 1) return &modules[0];
    return make_error(ErrorKind::kUsage,
                      fmt::format("the profile has {} modules; say which with --module", modules.size()),
                      found.path);
  }
  if (const feedback::ModuleProfile* profile = found.file.find(module->content_hash_hex())) return profile;
  return make_error(ErrorKind::kUsage,
                    fmt::format("the profile {} is of other modules than this one (by its SHA-256, {})",
                                found.path, module->content_hash_hex().substr(0, 16)),
                    module->name);
}

}  // namespace

Status merge_profiles(std::span<const ProfileSource> profiles, const std::string& out) {
  std::optional<feedback::ProfileFile> all;
  for (const ProfileSource& source : profiles) {
    HINDSIGHT_ASSIGN(rt::FoundProfile found, rt::find_profile(source));
    all = all ? feedback::merge(std::move(*all), found.file) : std::move(found.file);
  }
  if (!all) return make_error(ErrorKind::kUsage, "no profile to merge is named");
  return feedback::save_profile(*all, out);
}

Result<ExportedProfile> export_profile(const ProfileSource& profile, ProfileFormat format,
                                       const std::string& module_path) {
  HINDSIGHT_ASSIGN(rt::FoundProfile found, rt::find_profile(profile));
  if (!module_path.empty()) {
    HINDSIGHT_ASSIGN(found.module, rt::read_module(module_path));
  }
  if (format == ProfileFormat::kPprof) {
    size_t functions = 0;
    double samples = 0;
    for (const feedback::ModuleProfile& m : found.file.modules) {
      functions += m.samples.size();
      for (const feedback::FunctionSamples& s : m.samples) samples += s.samples;
    }
    HINDSIGHT_ASSIGN(std::vector<std::byte> bytes, feedback::to_pprof(found.file));
    return ExportedProfile{std::move(bytes), fmt::format("{:.0f} samples in {} functions of {} modules",
                                                         samples, functions, found.file.modules.size())};
  }
  if (format == ProfileFormat::kBranchHints && found.module == nullptr) {
    return make_error(ErrorKind::kUsage, "branch hints go into a copy of the module; name it with --module",
                      profile.path);
  }
  HINDSIGHT_ASSIGN(const feedback::ModuleProfile* of, module_to_export(found, found.module.get()));
  if (format == ProfileFormat::kLlvm) {
    const std::string text = feedback::to_llvm_sample_profile(*of, found.module.get());
    return ExportedProfile{bytes_of(text),
                           fmt::format("{} functions{}", of->samples.size(),
                                       found.module ? "" : ", without targets of calls (--module)")};
  }
  HINDSIGHT_ASSIGN(const feedback::HintedModule hinted, feedback::with_branch_hints(*of, *found.module));
  return ExportedProfile{
      bytes_of(hinted.bytes),
      fmt::format("{} branches likely, {} unlikely, {} without a hint, as they go both ways or were seen "
                  "less than {} "
                  "times; kept {} hints of the module",
                  hinted.likely, hinted.unlikely, hinted.unclear, feedback::kMinHintOutcomes, hinted.kept)};
}

Result<KeptProfiles> kept_profiles(const std::string& directory) {
  const rt::CacheDirectory folder(directory, std::make_shared<const rt::UserKey>(default_key_directory()),
                                  rt::CacheDirectory::kProfileSuffix);
  return rt::list_files<KeptProfiles>(folder, [](const auto& bytes, KeptProfiles::File& file) {
    const auto parsed = rt::ProfileStore::parse(bytes);
    if (!parsed) {
      file.defect = parsed.error().message;
      return;
    }
    if (parsed->modules.size() != 1) {
      file.defect = "is not of one module";
      return;
    }
    const feedback::ModuleProfile& module = parsed->modules[0];
    file.module = module.name;
    file.module_hash = module.hash_hex;
    file.options = module.options;
    file.runs = module.runs_seen;
    file.decisions = module.episodes.size() + module.page_episodes.size() + module.layout_episodes.size();
    if (rt::ProfileStore::file_name(module.hash_hex, module.options) != file.name)
      file.defect = "is of another module or of other options than its name says";
  });
}

Result<uint64_t> clear_kept_profiles(const std::string& directory) {
  return rt::CacheDirectory(directory, nullptr, rt::CacheDirectory::kProfileSuffix).clear();
}

}  // namespace hindsight
