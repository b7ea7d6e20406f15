#include "runtime/cli/bench/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace hindsight::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Result<std::string> text_member(const Json& entry, const char* key, const std::string& place, bool required) {
  const auto found = entry.find(key);
  if (found == entry.end() && !required) return std::string();
  if (found == entry.end() || !found->is_string()) {
    return make_error(ErrorKind::kUsage, fmt::format("a workload needs \"{}\", a string", key), place);
  }
  return found->get<std::string>();
}

Result<std::vector<std::string>> list_member(const Json& entry, const char* key, const std::string& place) {
  std::vector<std::string> out;
  const auto found = entry.find(key);
  if (found == entry.end()) return out;
  const auto bad = [&] {
    return make_error(ErrorKind::kUsage, fmt::format("\"{}\" must be an array of strings", key), place);
  };
  if (!found->is_array()) return bad();
  for (const Json& item : *found) {
    if (item.is_string()) {
      out.push_back(item.get<std::string>());
    } else if (item.is_number_integer()) {
      out.push_back(std::to_string(item.get<int64_t>()));
    } else {
      return bad();
    }
  }
  return out;
}

bool is_module_file(const std::string& word) {
  std::error_code ignored;
  return word.ends_with(".wasm") || word.ends_with(".wat") || fs::is_regular_file(word, ignored);
}

}  // namespace

Result<std::vector<Workload>> parse_manifest(const std::string& json, const std::string& path) {
  const Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) return make_error(ErrorKind::kUsage, "not JSON", path);
  const Json* list = root.is_array() ? &root : nullptr;
  if (root.is_object() && root.contains("workloads")) list = &root["workloads"];
  if (list == nullptr || !list->is_array()) {
    return make_error(ErrorKind::kUsage, "a manifest is an object with an array \"workloads\"", path);
  }
  const fs::path folder = fs::path(path).parent_path();
  std::vector<Workload> out;
  for (const Json& entry : *list) {
    const std::string place = fmt::format("{}: workload {}", path, out.size() + 1);
    if (!entry.is_object()) return make_error(ErrorKind::kUsage, "a workload is an object", place);
    Workload workload;
    HINDSIGHT_ASSIGN(workload.name, text_member(entry, "name", place, true));
    HINDSIGHT_ASSIGN(workload.suite, text_member(entry, "suite", place, true));
    HINDSIGHT_ASSIGN(workload.description, text_member(entry, "description", place, false));
    HINDSIGHT_ASSIGN(const std::string wasm, text_member(entry, "wasm", place, true));
    workload.wasm = (folder / wasm).lexically_normal().string();
    HINDSIGHT_ASSIGN(workload.args, list_member(entry, "args", place));
    HINDSIGHT_ASSIGN(workload.quick_args, list_member(entry, "quick_args", place));
    HINDSIGHT_ASSIGN(workload.expected, text_member(entry, "expected", place, true));
    if (entry.contains("quick_args")) {
      HINDSIGHT_ASSIGN(workload.quick_expected, text_member(entry, "quick_expected", place, true));
    } else {
      workload.quick_args = workload.args;
      workload.quick_expected = workload.expected;
    }
    if (const auto length = entry.find("length_argument"); length != entry.end()) {
      if (!length->is_number_unsigned() || length->get<uint64_t>() >= workload.args.size())
        return make_error(ErrorKind::kUsage, "\"length_argument\" must be the place of one of \"args\"",
                          place);
      workload.length_argument = length->get<size_t>();
    }
    out.push_back(std::move(workload));
  }
  return out;
}

Result<std::vector<Workload>> load_manifest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorKind::kUsage, "the workloads' manifest cannot be read", path);
  std::ostringstream text;
  text << file.rdbuf();
  return parse_manifest(text.str(), path);
}

Result<std::string> find_manifest(const std::string& explicit_path) {
  if (!explicit_path.empty()) return explicit_path;
  std::vector<fs::path> tried;
  if (const char* folder = std::getenv("HINDSIGHT_SAMPLES"); folder != nullptr && *folder != '\0') {
    tried.push_back(fs::path(folder) / "manifest.json");
  } else {
    std::error_code failed;
    const fs::path self = fs::read_symlink("/proc/self/exe", failed);
    fs::path folder_above = self.parent_path();
    for (int level = 0; !failed && level < 6 && folder_above.has_relative_path(); ++level) {
      tried.push_back(folder_above / "share/hindsight/samples/manifest.json");
      tried.push_back(folder_above / "samples/manifest.json");
      folder_above = folder_above.parent_path();
    }
  }
  for (const auto& path : tried) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path.string();
  }
  return make_error(
      ErrorKind::kUsage,
      fmt::format("the bundled workloads were not found{}; name their manifest with --manifest FILE, or "
                  "a .wasm file to measure",
                  tried.empty() ? ""
                                : fmt::format(" (tried {} places, the first was {})", tried.size(),
                                              tried.front().string())));
}

Result<std::vector<Workload>> select_workloads(std::span<const Workload> all,
                                               std::span<const std::string> words) {
  if (words.empty()) return std::vector<Workload>(all.begin(), all.end());
  std::set<size_t> chosen;
  std::vector<Workload> files;
  for (const auto& word : words) {
    bool found = false;
    for (size_t k = 0; k < all.size(); ++k) {
      const bool matches =
          all[k].suite == word || all[k].name == word || all[k].suite + "/" + all[k].name == word;
      if (matches) chosen.insert(k);
      found = found || matches;
    }
    if (found) continue;
    if (is_module_file(word)) {
      Workload workload;
      workload.name = fs::path(word).stem().string();
      workload.suite = "file";
      workload.wasm = word;
      files.push_back(std::move(workload));
      continue;
    }
    std::set<std::string> suites;
    for (const auto& workload : all) suites.insert(workload.suite);
    std::string known;
    for (const auto& suite : suites) known += (known.empty() ? "" : ", ") + suite;
    return make_error(
        ErrorKind::kUsage,
        fmt::format("'{}' is no suite, workload or .wasm file; suites: {} (`hindsight bench --list` "
                    "shows all workloads)",
                    word, known.empty() ? "none" : known));
  }
  std::vector<Workload> out;
  for (const size_t k : chosen) out.push_back(all[k]);
  out.insert(out.end(), std::make_move_iterator(files.begin()), std::make_move_iterator(files.end()));
  return out;
}

}  // namespace hindsight::cli
