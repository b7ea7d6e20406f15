#include "jit/wasm/tool_sections.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/values.h"

namespace hindsight::rt {
namespace {

// The text format's words, which are the API's (messages speak of functions).
const char* public_kind(wasm::ExternKind kind) {
  return kind == wasm::ExternKind::kFunc ? "func" : wasm::to_string(kind);
}

std::string memory_text(const wasm::MemoryType& type) {
  std::string text = std::to_string(type.limits.min) + "..";
  if (type.limits.max) text += std::to_string(*type.limits.max);
  text += " pages";
  if (type.is64) text += ", 64-bit addresses";
  if (type.shared) text += ", shared";
  return text;
}

std::string words_of(const std::vector<wasm::ValType>& types) {
  std::string out;
  for (const wasm::ValType type : types) out += (out.empty() ? "" : ", ") + wasm::to_string(type);
  return out;
}

std::string words_of(const wasm::FuncType& type) {
  const std::string results = words_of(type.results);
  return "(" + words_of(type.params) + ") -> " + (type.results.size() == 1 ? results : "(" + results + ")");
}

}  // namespace

std::vector<ImportType> ModuleHandle::imports() const {
  std::vector<ImportType> result;
  for (const wasm::Import& import : wasm().imports) {
    ImportType type{import.module, import.name, public_kind(import.kind), std::nullopt, {}};
    if (import.kind == wasm::ExternKind::kMemory) type.type = memory_text(import.memory);
    if (import.kind == wasm::ExternKind::kFunc || import.kind == wasm::ExternKind::kTag) {
      const wasm::FuncType& function = wasm().types[import.func_type.value];
      type.function = to_public(function);
      type.type = words_of(function);
    }
    result.push_back(std::move(type));
  }
  return result;
}

std::vector<ExportType> ModuleHandle::exports() const {
  std::vector<ExportType> result;
  for (const wasm::Export& e : wasm().exports) {
    ExportType type{e.name, public_kind(e.kind), std::nullopt, {}};
    if (e.kind == wasm::ExternKind::kMemory) type.type = memory_text(wasm().memories[e.index]);
    if (e.kind == wasm::ExternKind::kFunc || e.kind == wasm::ExternKind::kTag) {
      const wasm::FuncType& function = e.kind == wasm::ExternKind::kFunc ? wasm().type_of(FuncIndex(e.index))
                                                                         : wasm().type_of_tag(e.index);
      type.function = to_public(function);
      type.type = words_of(function);
    }
    result.push_back(std::move(type));
  }
  return result;
}

std::string ModuleHandle::content_hash_hex() const {
  return wasm().content_hash_hex();
}

ModuleTools ModuleHandle::tools() const {
  const wasm::ToolSections sections = wasm::read_tool_sections(wasm());
  ModuleTools result;
  for (const wasm::Producers& from : sections.producers) {
    ModuleTools::Producers& to = result.producers.emplace_back();
    to.field = from.field;
    for (const auto& tool : from.tools) to.tools.push_back({tool.name, tool.version});
  }
  for (const wasm::TargetFeature& feature : sections.target_features)
    result.target_features.push_back(feature.prefix + feature.name);
  for (const wasm::CustomSection& section : wasm().custom_sections)
    result.custom_sections.push_back(section.name);
  result.branch_hints = static_cast<uint32_t>(wasm().branch_hints.size());
  result.malformed = sections.errors + wasm().decode_stats.branch_hint_errors;
  return result;
}

}  // namespace hindsight::rt
