#include "feedback/profile/profile_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/files.h"
#include "feedback/profile/json_archive.h"

namespace hindsight::feedback {

namespace {

using nlohmann::json;

constexpr const char* kFormatName = "hindsight-profile";
// How the line in front of kept profiles begins, which the engine writes and checks.
constexpr std::string_view kSealStart = "hindsight-";

std::string_view after_seal(std::string_view text) {
  if (text.starts_with(kSealStart)) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// Nesting is bounded before parsing: the parser and the tree's destructor are recursive in it.
bool is_nested_too_deeply(const std::string& text) {
  constexpr size_t kMostDepth = 32;
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

// A file: its head, and what describe.h says.
template <typename A>
void describe(A& a, ProfileFile& file) {
  a.list("modules", file.modules);
}

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::kDecided:
      return "decided";
    case Origin::kProfile:
      return "earlier runs";
    case Origin::kCodeCache:
      return "code cache";
  }
  return "unknown";
}

std::string state_text(const Episode& episode) {
  return hindsight::state_text(episode.state, episode.state_why);
}

std::vector<WasmOffset> Episode::asked_for(jit::ChangeKind kind) const {
  std::vector<WasmOffset> sites;
  for (const jit::Site& site : changes)
    if (site.kind == kind) sites.push_back(site.at);
  return sites;
}

const ModuleProfile* ProfileFile::find(const std::string& hash_hex) const {
  for (const ModuleProfile& module : modules) {
    if (module.hash_hex == hash_hex) return &module;
  }
  return nullptr;
}

std::string format_profile(const ProfileFile& file, bool compact) {
  json root;
  JsonWriter writer(root);
  describe(writer, const_cast<ProfileFile&>(file));  // what writes changes nothing
  root["format"] = kFormatName;
  root["version"] = kProfileVersion;
  root["policy"] = file.policy;
  // Names come from modules and may be any bytes: what is not UTF-8 is replaced, never an exception.
  return root.dump(compact ? -1 : 1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<ProfileFile> read_profile(const std::string& text) {
  const auto bad = [](const std::string& why) { return make_error(ErrorKind::kUsage, why); };
  if (is_nested_too_deeply(text)) return bad("nested too deeply");
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return bad("the text is not JSON (truncated or damaged?)");
  std::string defect;
  JsonReader reader(root, "profile", defect);
  std::string format;
  reader.text("format", format);
  if (format != kFormatName) return bad("'format' is not 'hindsight-profile'");
  double version = 0;
  reader.number("version", version);
  if (version != std::clamp(std::floor(version), double{kOldestProfileVersion}, double{kProfileVersion})) {
    return make_error(ErrorKind::kUnsupported,
                      fmt::format("is of version {}, and this program's is {}", version, kProfileVersion));
  }
  ProfileFile file;
  if (const json* policy = reader.field("policy")) {
    if (!policy->is_object()) return bad("policy: is not an object");
    JsonReader parameters(*policy, "policy", defect);
    for (const auto& [name, value] : policy->items()) parameters.number(name.c_str(), file.policy[name]);
  }
  describe(reader, file);
  if (reader.failed()) return bad(defect);
  return file;
}

Result<ProfileFile> parse_profile(const std::string& text, const std::string& name) {
  auto file = read_profile(text);
  if (!file && file.error().kind == ErrorKind::kUnsupported) {
    return make_error(ErrorKind::kUsage,
                      "not a usable profile: it " + file.error().message +
                          "; make a new one with `hindsight run --profile-out`",
                      name);
  }
  if (!file) {
    return make_error(ErrorKind::kUsage,
                      "not a usable profile: " + file.error().message + "; delete it or name another", name);
  }
  return file;
}

Result<ProfileFile> load_profile(const std::string& path) {
  auto bytes = read_file(path, kMaxProfileFileBytes);
  if (!bytes) return make_error(ErrorKind::kUsage, "the profile " + bytes.error().message, path);
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return parse_profile(std::string(after_seal(text)), path);
}

Status save_profile(const ProfileFile& file, const std::string& path) {
  const std::string text = format_profile(file);
  const std::string_view parts[] = {text};
  if (const auto replaced = replace_file(AT_FDCWD, path, {.parts = parts, .mode = 0644, .synced = true});
      !replaced) {
    return make_error(ErrorKind::kResource,
                      fmt::format("the profile cannot be {}: {}", replaced.error().step,
                                  std::strerror(replaced.error().error)),
                      path);
  }
  return {};
}

}  // namespace hindsight::feedback
