#include "jit/wasm/text/module_writer.h"

#include <algorithm>

namespace hindsight::wasm::text {

namespace {

constexpr uint8_t kSectionIds[kSections] = {1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11};

void write_custom(std::string_view name, std::string_view contents, Encoder& out) {
  Encoder body;
  body.counted(name);
  body.raw(contents);
  out.u8(0);
  out.counted(body);
}

// Hints of one function stand together, in the order of its code.
void write_hints(const std::vector<HintEntry>& hints, Encoder& out) {
  if (hints.empty()) return;
  Encoder body;
  uint32_t functions = 0;
  for (size_t i = 0; i < hints.size(); ++functions) {
    size_t end = i;
    while (end < hints.size() && hints[end].function == hints[i].function) ++end;
    body.unsigned_leb(hints[i].function);
    body.unsigned_leb(end - i);
    for (; i < end; ++i) {
      body.unsigned_leb(hints[i].offset);
      body.unsigned_leb(1);
      body.u8(hints[i].likely ? 1 : 0);
    }
  }
  Encoder contents;
  contents.unsigned_leb(functions);
  contents.raw(body.bytes());
  write_custom(kBranchHintAnnotation, contents.view(), out);
}

void write_customs(const ModuleParts& parts, Section place, bool after, Encoder& out) {
  for (const CustomContents& custom : parts.customs)
    if (custom.place == place && custom.after == after) write_custom(custom.name, custom.bytes, out);
}

// --- names

enum NameSubsection : uint8_t {
  kModuleName = 0,
  kFunctions = 1,
  kLocals = 2,
  kTypes = 4,
  kTables = 5,
  kMemories = 6,
  kGlobals = 7,
  kElements = 8,
  kData = 9,
  kFields = 10,
  kTags = 11,
};

void put_names(const NameList& names, Encoder& out) {
  out.unsigned_leb(names.size());
  for (const auto& [index, name] : names) {
    out.unsigned_leb(index);
    out.counted(name);
  }
}

void write_names(ModuleParts& parts, Encoder& out) {
  Encoder contents;
  const auto subsection = [&](NameSubsection id, const Encoder& body) {
    contents.u8(id);
    contents.counted(body);
  };
  const auto space = [&](NameSubsection id, Space kind) {
    const NameList names = name_list(parts.space(kind));
    if (names.empty()) return;
    Encoder body;
    put_names(names, body);
    subsection(id, body);
  };
  if (!parts.name.empty()) {
    Encoder body;
    body.counted(parts.name);
    subsection(kModuleName, body);
  }
  space(kFunctions, Space::kFunc);
  if (!parts.locals.empty()) {
    Encoder body;
    body.unsigned_leb(parts.locals.size());
    for (const LocalNames& locals : parts.locals) {
      body.unsigned_leb(locals.function);
      put_names(locals.names, body);
    }
    subsection(kLocals, body);
  }
  space(kTypes, Space::kType);
  space(kTables, Space::kTable);
  space(kMemories, Space::kMemory);
  space(kGlobals, Space::kGlobal);
  space(kElements, Space::kElem);
  space(kData, Space::kData);
  Encoder fields;
  uint32_t structures = 0;
  for (const auto& [type, names] : parts.types.fields()) {
    const NameList list = name_list(names);
    if (list.empty()) continue;
    ++structures;
    fields.unsigned_leb(type);
    put_names(list, fields);
  }
  if (structures != 0) {
    Encoder body;
    body.unsigned_leb(structures);
    body.raw(fields.bytes());
    subsection(kFields, body);
  }
  space(kTags, Space::kTag);
  if (!contents.empty()) write_custom("name", contents.view(), out);
}

}  // namespace

std::vector<uint8_t> write_module(ModuleParts& parts, std::vector<SourcePlace>* places) {
  SectionContents& types = parts.section(Section::kType);
  types.bytes.raw(parts.types.added().bytes());
  types.items += parts.types.added_count();
  if (parts.needs_data_count) {
    SectionContents& count = parts.section(Section::kDataCount);
    count.items = 1;
    count.bytes.unsigned_leb(parts.section(Section::kData).items);
  }
  std::ranges::stable_sort(parts.marks, {}, [](const SourceMark& mark) { return mark.section; });

  Encoder out;
  out.raw(std::string_view("\0asm\1\0\0\0", 8));
  auto mark = parts.marks.begin();
  for (size_t i = 0; i < kSections; ++i) {
    const auto id = static_cast<Section>(i);
    write_customs(parts, id, false, out);
    if (id == Section::kCode) write_hints(parts.hints, out);
    const SectionContents& section = parts.section(id);
    if (section.items != 0) {
      const bool counted = id != Section::kStart && id != Section::kDataCount;
      Encoder count;
      if (counted) count.unsigned_leb(section.items);
      out.u8(kSectionIds[i]);
      out.unsigned_leb(count.size() + section.bytes.size());
      out.raw(count.bytes());
      for (; places != nullptr && mark != parts.marks.end() && mark->section == id; ++mark)
        places->push_back({out.size() + mark->offset, mark->text});
      out.raw(section.bytes.bytes());
    }
    write_customs(parts, id, true, out);
  }
  write_names(parts, out);
  if (places != nullptr) std::ranges::stable_sort(*places, {}, &SourcePlace::offset);
  return out.take();
}

}  // namespace hindsight::wasm::text
