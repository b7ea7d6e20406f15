#include "jit/wasm/text/module_parts.h"

#include <fmt/format.h>

#include "jit/wasm/text/literals.h"

namespace hindsight::wasm::text {

std::string_view to_string(Space space) {
  constexpr std::string_view kNames[kSpaces] = {"func", "table", "memory", "global",
                                                "tag",  "type",  "elem",   "data"};
  return kNames[static_cast<size_t>(space)];
}

NameList name_list(const IndexSpace& space) {
  NameList list;
  auto called = space.called().begin();
  const auto add_called = [&](uint32_t below) {
    for (; called != space.called().end() && called->first < below; ++called) list.emplace_back(*called);
  };
  for (const auto& [index, name] : space.names()) {
    add_called(index);
    if (called == space.called().end() || called->first != index) list.emplace_back(index, name);
  }
  add_called(UINT32_MAX);
  return list;
}

bool ModuleParts::at_index() {
  if (in.at(TokenKind::kId)) return true;
  return in.at(TokenKind::kWord) && in.peek().text[0] >= '0' && in.peek().text[0] <= '9';
}

bool ModuleParts::index(const IndexSpace& names, std::string_view what, uint32_t& out) {
  if (in.at(TokenKind::kId)) {
    const Token id = in.take();
    const std::optional<uint32_t> found = names.find(in.id_name(id));
    if (!found) return in.fail(id.begin, fmt::format("unknown {} {}", what, id.text));
    out = *found;
    return true;
  }
  uint64_t number = 0;
  if (!in.unsigned_number(UINT32_MAX, fmt::format("the index or name of a {}", what), number)) return false;
  out = static_cast<uint32_t>(number);
  return true;
}

bool ModuleParts::optional_name(IndexSpace& names, uint32_t index) {
  if (!in.at_annotation(kNameAnnotation)) return true;
  in.take();
  std::string name;
  if (!in.name(name) || !in.close()) return false;
  names.call(index, std::move(name));
  return true;
}

}  // namespace hindsight::wasm::text
