#include "jit/wasm/text/module_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::wasm::text {

bool ModuleReader::fields() {
  const size_t begin = in_.peek().begin;
  if (!declare_fields() || !define_types()) return false;
  in_.seek(begin);
  return define_fields();
}

bool ModuleReader::define_types() {
  for (const size_t begin : type_fields_) {
    in_.seek(begin);
    in_.take();  // '('
    const bool group = in_.accept_word("rec");
    Encoder types;
    uint32_t count = 0;
    uint32_t& next = next_[static_cast<size_t>(Space::kType)];
    // What is alone in a group needs none.
    bool alone = true;
    if (group) {
      const size_t first = in_.peek().begin;
      for (uint32_t members = 0; in_.accept_open("type"); ++members) {
        alone = members == 0;
        if (!in_.skip_list()) return false;
      }
      in_.seek(first);
    }
    while (group ? in_.accept_open("type") : in_.accept_word("type")) {
      (void)in_.optional_id();
      IndexSpace ignored;
      const size_t mark = types.size();
      if (parts_.wants_marks)
        parts_.mark(Section::kType, parts_.section(Section::kType).bytes.size() + mark, in_.peek().begin);
      if (!parts_.optional_name(ignored, 0) || !types_.definition(next++, alone, types) || !in_.close())
        return false;
      ++count;
      if (!group) break;
    }
    if (group && !in_.close()) return false;
    SectionContents& section = parts_.section(Section::kType);
    ++section.items;
    constexpr uint8_t kGroup = 0x4e;
    if (count != 1) {
      section.bytes.u8(kGroup);
      section.bytes.unsigned_leb(count);
    }
    section.bytes.raw(types.bytes());
  }
  return true;
}

bool ModuleReader::define_fields() {
  while (!in_.at(TokenKind::kClose) && !in_.at(TokenKind::kEnd)) {
    if (in_.at_annotation(kCustomAnnotation)) {
      if (!custom_section()) return false;
      continue;
    }
    const size_t begin = in_.peek().begin;
    if (!in_.at(TokenKind::kOpen)) return in_.fail_expected("a field of a module");
    in_.take();
    if (!field(begin)) return false;
  }
  return true;
}

bool ModuleReader::field(size_t begin) {
  if (in_.accept_word("type") || in_.accept_word("rec")) return in_.skip_list();
  if (in_.accept_word("func")) return function(begin);
  if (in_.accept_word("import")) return import();
  if (in_.accept_word("export")) return export_field(begin);
  if (in_.accept_word("global")) return global(begin);
  if (in_.accept_word("data")) return data_segment(begin);
  if (in_.accept_word("elem")) return element_segment(begin);
  if (in_.accept_word("table")) return table(begin);
  if (in_.accept_word("memory")) return memory(begin);
  if (in_.accept_word("tag")) return tag(begin);
  if (in_.accept_word("start")) return start(begin);
  return in_.fail_expected("a field of a module");
}

// --- imports, exports, start

bool ModuleReader::import() {
  const size_t begin = in_.peek().begin;
  std::string module;
  std::string name;
  if (!in_.name(module) || !in_.name(name)) return false;
  in_.take();  // '(' and a kind, as the first time has seen
  const std::optional<Space> kind = extern_kind();
  in_.take();
  (void)in_.optional_id();
  IndexSpace ignored;
  if (!parts_.optional_name(ignored, 0)) return false;
  ++next_[static_cast<size_t>(*kind)];
  return import_description(*kind, module, name, begin) && in_.close() && in_.close();
}

bool ModuleReader::import_description(Space kind, const std::string& module, const std::string& name,
                                      size_t begin) {
  SectionContents& section = parts_.section(Section::kImport);
  parts_.mark(Section::kImport, section.bytes.size(), begin);
  ++section.items;
  section.bytes.counted(module);
  section.bytes.counted(name);
  section.bytes.u8(static_cast<unsigned>(kind));
  switch (kind) {
    case Space::kFunc:
    case Space::kTag: {
      TypeUse use;
      IndexSpace names;
      if (!types_.type_use(use, &names)) return false;
      if (kind == Space::kTag) section.bytes.u8(0);
      section.bytes.unsigned_leb(use.index);
      return true;
    }
    case Space::kTable: {
      Encoder limits;
      ReferenceType type;
      if (!types_.limits(false, limits) || !types_.reference_type(type)) return false;
      encode(type, section.bytes);
      section.bytes.raw(limits.bytes());
      return true;
    }
    case Space::kMemory:
      return types_.limits(true, section.bytes);
    default:
      return types_.global_type(section.bytes);
  }
}

bool ModuleReader::inline_exports(Space kind, uint32_t index) {
  while (in_.at_open("export")) {
    Encoder& out = parts_.item(Section::kExport);
    std::string name;
    if (!in_.open("export") || !in_.name(name) || !in_.close()) return false;
    out.counted(name);
    out.u8(static_cast<unsigned>(kind));
    out.unsigned_leb(index);
  }
  return true;
}

bool ModuleReader::head(Space kind, uint32_t& index, bool& imported) {
  const size_t begin = in_.peek().begin;
  index = next_[static_cast<size_t>(kind)]++;
  (void)in_.optional_id();
  IndexSpace ignored;
  if (!parts_.optional_name(ignored, 0) || !inline_exports(kind, index)) return false;
  imported = in_.accept_open("import");
  if (!imported) return true;
  std::string module;
  std::string name;
  return in_.name(module) && in_.name(name) && in_.close() && import_description(kind, module, name, begin) &&
         in_.close();
}

bool ModuleReader::export_field(size_t begin) {
  Encoder& out = parts_.item(Section::kExport, begin);
  std::string name;
  Space kind{};
  if (!in_.name(name) || !open_extern(kind)) return false;
  uint32_t index = 0;
  if (!parts_.index(kind, index)) return false;
  out.counted(name);
  out.u8(static_cast<unsigned>(kind));
  out.unsigned_leb(index);
  return in_.close() && in_.close();
}

bool ModuleReader::start(size_t begin) {
  if (has_start_) return in_.fail(begin, "multiple start sections: a second (start ...)");
  has_start_ = true;
  SectionContents& section = parts_.section(Section::kStart);
  parts_.mark(Section::kStart, 0, begin);
  section.items = 1;
  uint32_t index = 0;
  if (!parts_.index(Space::kFunc, index)) return false;
  section.bytes.unsigned_leb(index);
  return in_.close();
}

// --- definitions

bool ModuleReader::function(size_t begin) {
  uint32_t index = 0;
  bool imported = false;
  if (!head(Space::kFunc, index, imported)) return false;
  if (imported) return true;
  TypeUse use;
  IndexSpace locals;
  SectionContents& section = parts_.section(Section::kFunc);
  parts_.mark(Section::kFunc, section.bytes.size(), begin);
  ++section.items;
  if (!types_.type_use(use, &locals)) return false;
  section.bytes.unsigned_leb(use.index);
  return body(index, use, locals, begin);
}

bool ModuleReader::body(uint32_t index, const TypeUse& use, IndexSpace& locals, size_t begin) {
  // Locals in a row that have one type are one group.
  local_groups_.clear();
  uint32_t groups = 0;
  uint64_t group_size = 0;
  Encoder group_type;
  const auto end_group = [&] {
    if (group_size == 0) return;
    local_groups_.unsigned_leb(group_size);
    local_groups_.raw(group_type.bytes());
    ++groups;
    group_size = 0;
  };
  Encoder type;
  const auto add_local = [&] {
    type.clear();
    if (!types_.value_type(type)) return false;
    if (group_size != 0 && type.view() != group_type.view()) end_group();
    if (group_size == 0) std::swap(type, group_type);
    ++group_size;
    return true;
  };
  while (in_.accept_open("local")) {
    if (in_.at(TokenKind::kId)) {
      const Token id = in_.take();
      if (!locals.add(in_.id_name(id))) return in_.fail(id.begin, fmt::format("duplicate local {}", id.text));
      if (!parts_.optional_name(locals, locals.size() - 1) || !add_local() || !in_.close()) return false;
      continue;
    }
    while (!in_.at(TokenKind::kClose)) {
      locals.add_unnamed(1);
      if (!parts_.optional_name(locals, locals.size() - 1) || !add_local()) return false;
    }
    in_.take();
  }
  end_group();

  body_.clear();
  body_.unsigned_leb(groups);
  body_.raw(local_groups_.bytes());
  const size_t first_mark = parts_.marks.size();
  if (!code_.expression(locals, index, body_) || !in_.close()) return false;
  SectionContents& section = parts_.section(Section::kCode);
  const size_t at = section.bytes.size();
  ++section.items;
  section.bytes.counted(body_);
  // Marks so far count from the body's first byte.
  for (size_t i = first_mark; i < parts_.marks.size(); ++i)
    if (parts_.marks[i].section == Section::kCode)
      parts_.marks[i].offset += section.bytes.size() - body_.size();
  if (parts_.wants_marks)
    parts_.marks.insert(parts_.marks.begin() + static_cast<std::ptrdiff_t>(first_mark),
                        SourceMark{Section::kCode, at, begin});
  if (!locals.names().empty() || !locals.called().empty())
    parts_.locals.push_back({index, name_list(locals)});
  return true;
}

bool ModuleReader::memory(size_t begin) {
  uint32_t index = 0;
  bool imported = false;
  if (!head(Space::kMemory, index, imported)) return false;
  if (imported) return true;
  SectionContents& section = parts_.section(Section::kMemory);
  parts_.mark(Section::kMemory, section.bytes.size(), begin);
  ++section.items;
  // An address type decides nothing about what follows, but (data comes only after it or at once.
  const size_t limits_begin = in_.peek().begin;
  const bool is64 = types_.optional_address_type();
  if (!in_.accept_open("data")) {
    in_.seek(limits_begin);
    return types_.limits(true, section.bytes) && in_.close();
  }
  std::string bytes;
  if (!strings(bytes) || !in_.close()) return false;
  constexpr uint64_t kPage = 65536;
  TypeReader::fixed_limits(is64, (bytes.size() + kPage - 1) / kPage, section.bytes);
  ++next_[static_cast<size_t>(Space::kData)];
  Encoder& out = parts_.item(Section::kData, begin);
  out.u8(index == 0 ? 0 : 2);
  if (index != 0) out.unsigned_leb(index);
  put_zero(is64, out);
  out.counted(bytes);
  return true;
}

bool ModuleReader::table(size_t begin) {
  uint32_t index = 0;
  bool imported = false;
  if (!head(Space::kTable, index, imported)) return false;
  if (imported) return true;
  SectionContents& section = parts_.section(Section::kTable);
  parts_.mark(Section::kTable, section.bytes.size(), begin);
  ++section.items;
  const size_t limits_begin = in_.peek().begin;
  const bool is64 = types_.optional_address_type();
  ReferenceType type;
  if (types_.at_reference_type()) {
    uint32_t count = 0;
    if (!types_.reference_type(type) || !in_.open("elem") || !inline_elements(index, is64, type, count))
      return false;
    encode(type, section.bytes);
    TypeReader::fixed_limits(is64, count, section.bytes);
    return in_.close();
  }
  in_.seek(limits_begin);
  Encoder limits;
  if (!types_.limits(false, limits) || !types_.reference_type(type)) return false;
  const bool has_value = !in_.at(TokenKind::kClose);
  constexpr uint8_t kHasValue = 0x40;
  if (has_value) {
    section.bytes.u8(kHasValue);
    section.bytes.u8(0);
  }
  encode(type, section.bytes);
  section.bytes.raw(limits.bytes());
  if (has_value && !code_.expression(IndexSpace(), std::nullopt, section.bytes)) return false;
  return in_.close();
}

bool ModuleReader::global(size_t begin) {
  uint32_t index = 0;
  bool imported = false;
  if (!head(Space::kGlobal, index, imported)) return false;
  if (imported) return true;
  SectionContents& section = parts_.section(Section::kGlobal);
  parts_.mark(Section::kGlobal, section.bytes.size(), begin);
  ++section.items;
  return types_.global_type(section.bytes) && code_.expression(IndexSpace(), std::nullopt, section.bytes) &&
         in_.close();
}

bool ModuleReader::tag(size_t begin) {
  uint32_t index = 0;
  bool imported = false;
  if (!head(Space::kTag, index, imported)) return false;
  if (imported) return true;
  SectionContents& section = parts_.section(Section::kTag);
  parts_.mark(Section::kTag, section.bytes.size(), begin);
  ++section.items;
  TypeUse use;
  IndexSpace names;
  if (!types_.type_use(use, &names)) return false;
  section.bytes.u8(0);
  section.bytes.unsigned_leb(use.index);
  return in_.close();
}

}  // namespace hindsight::wasm::text
