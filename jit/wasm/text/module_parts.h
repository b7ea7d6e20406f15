// What the readers of a module's parts share. That is where they are in the text, the names of everything,
// and the sections as far as they are written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/wasm/text/cursor.h"
#include "jit/wasm/text/encoder.h"
#include "jit/wasm/text/index_space.h"
#include "jit/wasm/text/type_table.h"

namespace hindsight::wasm::text {

enum class Space : uint8_t { kFunc, kTable, kMemory, kGlobal, kTag, kType, kElem, kData };
inline constexpr size_t kSpaces = 8;
// The first five are kinds of imports and exports, with these codes.
inline constexpr size_t kExternSpaces = 5;
// "func", "table" ...: the keyword.
std::string_view to_string(Space space);

// Sections of the binary format, in the order in which they stand in a module, which is not that of their
// codes.
enum class Section : uint8_t {
  kType,
  kImport,
  kFunc,
  kTable,
  kMemory,
  kTag,
  kGlobal,
  kExport,
  kStart,
  kElem,
  kDataCount,
  kCode,
  kData,
};
inline constexpr size_t kSections = 13;

// What a section holds so far; `items` of a start or data count section is not written.
struct SectionContents {
  uint32_t items = 0;
  Encoder bytes;
};

// A custom section, and where it goes.
struct CustomContents {
  std::string name;
  std::string bytes;
  // Before or after the place of a section, whether there is that section or not.
  Section place = Section::kData;
  bool after = true;
};

// What a branch hint says of the instruction at `offset` from the first byte of its function's body.
struct HintEntry {
  uint32_t function = 0;
  uint32_t offset = 0;
  bool likely = false;
};

// Where in the text the bytes from some place in a section on come from.
struct SourceMark {
  Section section = Section::kCode;
  size_t offset = 0;  // in SectionContents::bytes
  size_t text = 0;
};

// Ascending by index.
using NameList = std::vector<std::pair<uint32_t, std::string>>;
// What the name section calls the things of a space.
NameList name_list(const IndexSpace& space);

struct LocalNames {
  uint32_t function = 0;
  NameList names;
};

struct ModuleParts {
  explicit ModuleParts(Cursor& cursor) : in(cursor) {}

  Cursor& in;
  std::string name;  // of the module
  std::array<IndexSpace, kSpaces> spaces;
  TypeTable types;
  std::array<SectionContents, kSections> sections;
  std::vector<CustomContents> customs;
  std::vector<HintEntry> hints;
  std::vector<LocalNames> locals;
  bool needs_data_count = false;
  bool wants_marks = false;
  std::vector<SourceMark> marks;  // empty unless wanted

  IndexSpace& space(Space kind) { return spaces[static_cast<size_t>(kind)]; }
  SectionContents& section(Section kind) { return sections[static_cast<size_t>(kind)]; }
  // Where the next item of a section is written, which comes from there in the text, or from here.
  Encoder& item(Section kind, size_t text) {
    SectionContents& contents = section(kind);
    mark(kind, contents.bytes.size(), text);
    ++contents.items;
    return contents.bytes;
  }
  Encoder& item(Section kind) { return item(kind, in.peek().begin); }
  void mark(Section kind, size_t offset, size_t text) {
    if (wants_marks) marks.push_back({kind, offset, text});
  }

  // Reads an index: a number, or an identifier of the space. False: the cursor has failed.
  bool index(const IndexSpace& names, std::string_view what, uint32_t& out);
  bool index(Space kind, uint32_t& out) { return index(space(kind), to_string(kind), out); }
  // Whether the next token can be an index.
  bool at_index();
  // Reads a (@name "...") if there is one, which names thing `index` of the space.
  bool optional_name(IndexSpace& names, uint32_t index);
};

}  // namespace hindsight::wasm::text
