#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/messages.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string counted(const std::map<std::string, size_t>& kinds) {
  std::string out;
  for (const auto& [kind, count] : kinds) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, kind);
  return out.empty() ? "none" : out;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + printable_name(word);
  return out.empty() ? "none" : out;
}

// Lines for what the module's tools wrote about it, if they did.
std::string tools_text(const Module& module) {
  const ModuleTools tools = module.tools();
  std::string out;
  for (const auto& [field, entries] : tools.producers) {
    std::vector<std::string> named;
    for (const auto& [name, version] : entries)
      named.push_back(version.empty() ? name : fmt::format("{} {}", name, version));
    out += fmt::format("  {:<8} {}\n", printable_name(field), list_of(named));
  }
  if (!tools.target_features.empty()) out += fmt::format("  features {}\n", list_of(tools.target_features));
  if (!tools.custom_sections.empty()) out += fmt::format("  custom   {}\n", list_of(tools.custom_sections));
  if (tools.branch_hints > 0) out += fmt::format("  hints    {} branches\n", tools.branch_hints);
  if (tools.malformed > 0)
    out += fmt::format("  ignored  {} malformed in custom sections\n", tools.malformed);
  return out;
}

std::string text_of(const Module& module, const std::string& path, uintmax_t bytes) {
  std::map<std::string, size_t> imports, exports;
  report::TextTable import_table("lll"), export_table("lll");
  import_table.add({"import", "kind", "type"});
  export_table.add({"export", "kind", "type"});
  for (const auto& entry : module.imports()) {
    ++imports[entry.kind];
    import_table.add(
        {printable_name(entry.module) + "." + printable_name(entry.name), printable(entry.kind), entry.type});
  }
  for (const auto& entry : module.exports()) {
    ++exports[entry.kind];
    export_table.add({printable_name(entry.name), printable(entry.kind), entry.type});
  }
  std::string out =
      fmt::format("{}\n  name     {}\n  size     {} bytes\n  hash     {}\n  imports  {}\n  exports  {}\n",
                  printable(path), module.name().empty() ? std::string("-") : printable_name(module.name()),
                  bytes, module.content_hash_hex(), counted(imports), counted(exports));
  out += tools_text(module);
  if (!imports.empty()) out += fmt::format("\n{}", import_table.text());
  if (!exports.empty()) out += fmt::format("\n{}", export_table.text());
  return out;
}

std::string module_json(const Module& module, const std::string& path, uintmax_t bytes) {
  OrderedJson imports = OrderedJson::array(), exports = OrderedJson::array();
  for (const auto& entry : module.imports()) {
    OrderedJson json{{"module", entry.module}, {"name", entry.name}, {"kind", entry.kind}};
    if (!entry.type.empty()) json["type"] = entry.type;
    imports.push_back(std::move(json));
  }
  for (const auto& entry : module.exports()) {
    OrderedJson json{{"name", entry.name}, {"kind", entry.kind}};
    if (!entry.type.empty()) json["type"] = entry.type;
    exports.push_back(std::move(json));
  }
  const ModuleTools tools = module.tools();
  OrderedJson producers = OrderedJson::array();
  for (const auto& [field, entries] : tools.producers)
    for (const auto& [name, version] : entries)
      producers.push_back({{"field", field}, {"name", name}, {"version", version}});
  const OrderedJson all{{"path", path},
                        {"name", module.name()},
                        {"bytes", bytes},
                        {"hash", module.content_hash_hex()},
                        {"imports", imports},
                        {"exports", exports},
                        {"producers", producers},
                        {"target_features", tools.target_features},
                        {"custom_sections", tools.custom_sections},
                        {"branch_hints", tools.branch_hints},
                        {"malformed", tools.malformed}};
  return all.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

int inspect_command(const std::string& path, bool json) {
  EngineConfig config;
  config.tier = TierMode::kBaseline;  // nothing runs: no unit, no monitor thread
  config.profiling = false;
  config.feedback = false;
  auto engine = Engine::create(std::move(config));
  if (!engine) return fail(engine.error());
  auto module = load_module(**engine, path);
  if (!module) return fail(module.error());
  std::error_code ignored;
  const uintmax_t bytes = std::filesystem::file_size(path, ignored);
  fmt::print("{}", json ? module_json(**module, path, bytes) : text_of(**module, path, bytes));
  return kOk;
}

int lwp_info_command(bool json, bool calibrate) {
  std::string text = lwp_info(json, calibrate);
  while (text.ends_with('\n')) text.pop_back();
  fmt::print("{}\n", text);
  return kOk;
}

}  // namespace hindsight::cli
