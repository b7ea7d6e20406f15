#include "jit/wasm/module.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/wasm/sha256.h"

namespace hindsight::wasm {

const Export* Module::find_export(std::string_view export_name) const {
  const auto it = std::ranges::lower_bound(exports_by_name, export_name, {},
                                           [&](uint32_t i) { return std::string_view(exports[i].name); });
  if (it == exports_by_name.end() || exports[*it].name != export_name) return nullptr;
  return &exports[*it];
}

const std::array<uint8_t, 32>& Module::content_hash() const {
  std::call_once(hashed_, [this] { content_hash_ = sha256(bytes); });
  return content_hash_;
}

std::string Module::content_hash_hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : content_hash()) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string Module::function_name(FuncIndex f) const {
  const auto named =
      std::ranges::lower_bound(function_names, f.value, {}, &std::pair<uint32_t, std::string>::first);
  if (named != function_names.end() && named->first == f.value && !named->second.empty())
    return named->second;
  const auto exported =
      std::ranges::lower_bound(function_exports, f.value, {}, [&](uint32_t i) { return exports[i].index; });
  if (exported != function_exports.end() && exports[*exported].index == f.value &&
      !exports[*exported].name.empty())
    return exports[*exported].name;
  return fmt::format("func[{}]", f.value);
}

std::optional<FuncIndex> Module::initial_element(uint32_t table, uint32_t element) const {
  std::optional<FuncIndex> found;
  for (const ElementSegment& segment : elements) {
    if (segment.mode != ElementSegment::Mode::kActive || segment.table != table) continue;
    if (segment.offset.kind != ConstExpr::Kind::kI32) continue;
    const auto begin = static_cast<uint32_t>(segment.offset.bits);
    if (element < begin || element - begin >= segment.items.size()) continue;
    const ConstExpr& item = segment.items[element - begin];
    found.reset();  // later segments overwrite earlier ones
    if (item.kind == ConstExpr::Kind::kRefFunc) found = FuncIndex(item.index);
  }
  return found;
}

std::string Module::tag_name(uint32_t tag) const {
  const auto named = std::ranges::lower_bound(tag_names, tag, {}, &std::pair<uint32_t, std::string>::first);
  if (named != tag_names.end() && named->first == tag && !named->second.empty()) return named->second;
  // Only asked for when a program has failed: modules have few exports of tags.
  for (const Export& e : exports)
    if (e.kind == ExternKind::kTag && e.index == tag && !e.name.empty()) return e.name;
  uint32_t next = 0;
  for (const Import& import : imports)
    if (import.kind == ExternKind::kTag && next++ == tag && !import.name.empty()) return import.name;
  return fmt::format("tag[{}]", tag);
}

std::optional<FuncIndex> Module::function_at(WasmOffset offset) const {
  auto it = std::ranges::upper_bound(bodies, offset, {}, &FunctionBody::begin);
  if (it == bodies.begin()) return std::nullopt;
  --it;
  if (offset >= it->end) return std::nullopt;
  return FuncIndex(imported_functions + static_cast<uint32_t>(it - bodies.begin()));
}

std::optional<bool> Module::branch_hint(WasmOffset offset) const {
  const auto found = std::ranges::lower_bound(branch_hints, offset, {}, &BranchHint::offset);
  if (found == branch_hints.end() || found->offset != offset) return std::nullopt;
  return found->likely;
}

}  // namespace hindsight::wasm
