// ModuleReader's first time through the fields: what there is, under which names.
#include <fmt/format.h>

#include "jit/wasm/text/module_reader.h"

namespace hindsight::wasm::text {

bool ModuleReader::declare_fields() {
  while (!in_.at(TokenKind::kClose) && !in_.at(TokenKind::kEnd)) {
    if (in_.at(TokenKind::kAnnotation)) {  // read the second time
      in_.take();
      if (!in_.skip_list()) return false;
      continue;
    }
    if (!declare_field()) return false;
  }
  return true;
}

std::optional<Space> ModuleReader::extern_kind() {
  for (size_t i = 0; i < kExternSpaces; ++i)
    if (in_.at_word(to_string(static_cast<Space>(i)))) return static_cast<Space>(i);
  return std::nullopt;
}

bool ModuleReader::open_extern(Space& kind) {
  if (!in_.at(TokenKind::kOpen))
    return in_.fail_expected("'(func', '(table', '(memory', '(global' or '(tag'");
  in_.take();
  const std::optional<Space> found = extern_kind();
  if (!found) return in_.fail_expected("'func', 'table', 'memory', 'global' or 'tag'");
  in_.take();
  kind = *found;
  return true;
}

bool ModuleReader::declare_field() {
  const size_t begin = in_.peek().begin;
  if (!in_.at(TokenKind::kOpen))
    return in_.fail_expected("a field of a module: '(func', '(type' or the like");
  in_.take();
  if (in_.accept_word("type")) {
    type_fields_.push_back(begin);
    return declare_type();
  }
  if (in_.accept_word("rec")) return declare_group(begin);
  if (in_.accept_word("import")) return declare_import();
  if (in_.accept_word("elem")) return declare(Space::kElem) && in_.skip_list();
  if (in_.accept_word("data")) return declare(Space::kData) && in_.skip_list();
  if (in_.accept_word("export") || in_.accept_word("start")) return in_.skip_list();
  const std::optional<Space> kind = extern_kind();
  if (!kind) return in_.fail_expected("a field of a module: 'func', 'type' or the like");
  in_.take();
  return declare_definition(*kind);
}

// An identifier or none, then a (@name).
bool ModuleReader::declare(Space kind) {
  IndexSpace& space = parts_.space(kind);
  const size_t begin = in_.peek().begin;
  const bool named = in_.at(TokenKind::kId);
  const std::string_view text = named ? in_.peek().text : std::string_view();
  if (!space.add(in_.optional_id()))
    return in_.fail(begin, fmt::format("duplicate {} {}", to_string(kind), text));
  return parts_.optional_name(space, space.size() - 1);
}

bool ModuleReader::declare_type() {
  return declare(Space::kType) && in_.skip_list();
}

bool ModuleReader::declare_group(size_t begin) {
  type_fields_.push_back(begin);
  while (!in_.at(TokenKind::kClose))
    if (!in_.open("type") || !declare_type()) return false;
  in_.take();
  return true;
}

bool ModuleReader::add_import(Space kind, size_t at) {
  if (first_definition_ == nullptr) return true;
  return in_.fail(
      at, fmt::format("import after {}: imports stand in front of all definitions", first_definition_));
}

bool ModuleReader::declare_import() {
  const size_t begin = in_.peek().begin;
  std::string ignored;
  Space kind{};
  if (!in_.name(ignored) || !in_.name(ignored) || !open_extern(kind)) return false;
  return add_import(kind, begin) && declare(kind) && in_.skip_list() && in_.close();
}

bool ModuleReader::declare_definition(Space kind) {
  static constexpr const char* kWords[kExternSpaces] = {"function", "table", "memory", "global", "tag"};
  const size_t begin = in_.peek().begin;
  if (!declare(kind)) return false;
  while (in_.accept_open("export"))
    if (!in_.skip_list()) return false;
  if (in_.at_open("import")) {
    if (!add_import(kind, begin)) return false;
  } else if (first_definition_ == nullptr) {
    first_definition_ = kWords[static_cast<size_t>(kind)];
  }
  // A segment inside of a table or memory has an index, too.
  if (kind != Space::kTable && kind != Space::kMemory) return in_.skip_list();
  const Space segment = kind == Space::kTable ? Space::kElem : Space::kData;
  while (!in_.at(TokenKind::kClose)) {
    if (in_.at_open(to_string(segment))) (void)parts_.space(segment).add({});
    if (in_.at(TokenKind::kEnd) || in_.at(TokenKind::kError)) return in_.fail_expected("')'");
    const bool list = in_.at(TokenKind::kOpen) || in_.at(TokenKind::kAnnotation);
    in_.take();
    if (list && !in_.skip_list()) return false;
  }
  in_.take();
  return true;
}

}  // namespace hindsight::wasm::text
