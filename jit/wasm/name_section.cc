#include "jit/wasm/name_section.h"

#include <algorithm>

#include "jit/wasm/byte_reader.h"

namespace hindsight::wasm {

namespace {

constexpr uint8_t kModuleName = 0;
constexpr uint8_t kFunctionNames = 1;
constexpr uint8_t kTagNames = 11;
constexpr uint8_t kTagNamesOfWabt = 10;  // the names of fields, which no module here has

bool read_module_name(Module& module, ByteReader& reader) {
  std::string_view name;
  if (!reader.name(name)) return false;
  if (module.name.empty()) module.name = name;
  return true;
}

using Entry = std::pair<uint32_t, std::string>;

bool read_names(Module& module, ByteReader& reader, std::vector<Entry>& out) {
  uint32_t count = 0;
  if (!reader.u32(count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t index = 0;
    std::string_view name;
    ++module.decode_stats.steps;
    if (!reader.u32(index) || !reader.name(name)) return false;
    out.emplace_back(index, name);
  }
  return true;
}

}  // namespace

void read_name_section(Module& module, uint32_t begin, uint32_t end) {
  const uint8_t* base = module.bytes.data();
  ByteReader reader(base, base + begin, base + end);
  while (!reader.at_end()) {
    uint8_t id = 0;
    uint32_t size = 0;
    if (!reader.u8(id) || !reader.u32(size) || size > reader.remaining()) {
      ++module.decode_stats.name_errors;
      return;
    }
    const uint32_t start = reader.offset();
    // A reader of its own: a failure in one subsection does not end the others.
    ByteReader part(base, base + start, base + start + size);
    bool ok = true;
    if (id == kModuleName) ok = read_module_name(module, part);
    if (id == kFunctionNames) ok = read_names(module, part, module.function_names);
    if (id == kTagNames || id == kTagNamesOfWabt) ok = read_names(module, part, module.tag_names);
    if (!ok) ++module.decode_stats.name_errors;
    reader.skip(size);
  }
}

namespace {

void finish(Module& module, std::vector<Entry>& names, size_t count) {
  const size_t found = names.size();
  std::erase_if(names, [&](const Entry& entry) { return entry.first >= count; });
  if (!std::ranges::is_sorted(names, {}, &Entry::first)) std::ranges::stable_sort(names, {}, &Entry::first);
  const auto repeated = std::ranges::unique(names, {}, &Entry::first);
  names.erase(repeated.begin(), repeated.end());
  module.decode_stats.name_errors += static_cast<uint32_t>(found - names.size());
}

}  // namespace

void finish_names(Module& module) {
  finish(module, module.function_names, module.functions.size());
  finish(module, module.tag_names, module.tags.size());
}

}  // namespace hindsight::wasm
