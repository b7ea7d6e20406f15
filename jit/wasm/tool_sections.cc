#include "jit/wasm/tool_sections.h"

#include "jit/wasm/byte_reader.h"

namespace hindsight::wasm {

namespace {

bool read_producers(ByteReader& reader, std::vector<Producers>& out) {
  uint32_t fields = 0;
  if (!reader.count(fields, UINT32_MAX, "fields", 2)) return false;
  for (uint32_t i = 0; i < fields; ++i) {
    std::string_view field;
    uint32_t values = 0;
    if (!reader.name(field) || !reader.count(values, UINT32_MAX, "producers", 2)) return false;
    Producers& producers = out.emplace_back();
    producers.field = field;
    for (uint32_t k = 0; k < values; ++k) {
      std::string_view name, version;
      if (!reader.name(name) || !reader.name(version)) return false;
      producers.tools.push_back({std::string(name), std::string(version)});
    }
  }
  return reader.at_end();
}

bool read_target_features(ByteReader& reader, std::vector<TargetFeature>& out) {
  uint32_t count = 0;
  if (!reader.count(count, UINT32_MAX, "features", 2)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t prefix = 0;
    std::string_view name;
    if (!reader.u8(prefix) || (prefix != '+' && prefix != '-' && prefix != '=') || !reader.name(name))
      return false;
    out.push_back({static_cast<char>(prefix), std::string(name)});
  }
  return reader.at_end();
}

}  // namespace

ToolSections read_tool_sections(const Module& module) {
  ToolSections out;
  const uint8_t* base = module.bytes.data();
  for (const CustomSection& section : module.custom_sections) {
    ByteReader reader(base, base + section.begin.value, base + section.begin.value + section.size);
    bool ok = true;
    if (section.name == "producers") ok = read_producers(reader, out.producers);
    if (section.name == "target_features") ok = read_target_features(reader, out.target_features);
    if (!ok) ++out.errors;
  }
  return out;
}

}  // namespace hindsight::wasm
