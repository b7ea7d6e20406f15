// `hindsight profile ...` and `hindsight explain`: words to the library, its texts to stdout.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

// An input that cannot be used, not a wrong use of the command.
int refuse(const Error& error) {
  say(error.describe());
  return kCannotLoad;
}

int print(const Result<std::string>& text) {
  if (!text) return refuse(text.error());
  std::string_view rest = *text;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  fmt::print("{}\n", printable(rest, true));
  return kOk;
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view parts[] = {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  const auto replaced = replace_file(AT_FDCWD, path, {.parts = parts, .mode = 0666});
  if (replaced) return {};
  const auto& [step, error] = replaced.error();
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return make_error(ErrorKind::kResource, fmt::format("cannot be {}: {}", step, std::strerror(error)),
                      path);
  return make_error(ErrorKind::kUsage,
                    fmt::format("cannot be {}: {}; name another file with -o", step, std::strerror(error)),
                    path);
}

Status check_profiles_named(const std::string& directory) {
  if (!directory.empty()) return {};
  return make_error(ErrorKind::kUsage,
                    "there is no folder of profiles: keeping them is off, or no home is set; name one with "
                    "--profile-dir");
}

}  // namespace

int explain_command(const std::string& profile, const std::string& directory) {
  return print(explain_profile({profile, directory}));
}

int profile_show_command(const std::string& profile, const std::string& directory) {
  return print(show_profile({profile, directory}));
}

int profile_diff_command(const std::string& before, const std::string& after, const std::string& directory) {
  return print(diff_profiles({before, directory}, {after, directory}));
}

int profile_merge_command(const std::vector<std::string>& profiles, const std::string& out,
                          const std::string& directory) {
  std::vector<ProfileSource> sources;
  for (const std::string& profile : profiles) sources.push_back({profile, directory});
  if (const Status merged = merge_profiles(sources, out); !merged) return refuse(merged.error());
  fmt::print("{}: {} profiles put together\n", printable(out), profiles.size());
  return kOk;
}

int profile_export_command(const ExportOptions& options) {
  ProfileFormat format = ProfileFormat::kPprof;
  if (options.format == "llvm") format = ProfileFormat::kLlvm;
  if (options.format == "branch-hints") format = ProfileFormat::kBranchHints;
  const auto exported = export_profile({options.profile, options.directory}, format, options.module);
  if (!exported) return refuse(exported.error());
  if (options.out == "-") {
    std::fwrite(exported->bytes.data(), 1, exported->bytes.size(), stdout);
    return std::fflush(stdout) == 0 ? kOk : kCannotLoad;
  }
  if (const Status written = write_file(options.out, exported->bytes); !written)
    return refuse(written.error());
  fmt::print("{}: {} bytes; {}\n", printable(options.out), exported->bytes.size(),
             printable(exported->summary));
  return kOk;
}

int profile_list_command(const std::string& directory) {
  if (const Status named = check_profiles_named(directory); !named) return fail(named.error());
  const auto kept = kept_profiles(directory);
  if (!kept) return fail(kept.error());
  fmt::print("{}: {} files, {} bytes\n", printable(kept->directory), kept->files.size(), kept->bytes);
  for (const KeptProfiles::File& file : kept->files) {
    fmt::print("  {}  {} bytes, used {} ago\n", printable(file.name), file.bytes,
               report::age_text(file.age_seconds));
    if (!file.module_hash.empty())
      fmt::print("      {}, {} decisions of {} runs\n", printable_name(file.module), file.decisions,
                 file.runs);
    if (!file.defect.empty()) fmt::print("      not used: {}\n", printable(file.defect));
  }
  return kOk;
}

int profile_clear_command(const std::string& directory) {
  if (const Status named = check_profiles_named(directory); !named) return fail(named.error());
  const auto removed = clear_kept_profiles(directory);
  if (!removed) return fail(removed.error());
  fmt::print("{}: {} files removed\n", printable(directory), *removed);
  return kOk;
}

}  // namespace hindsight::cli
