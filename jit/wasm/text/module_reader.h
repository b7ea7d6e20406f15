// Reads the fields of a module in text, twice. The first time it reads the names and kinds of everything (a name may be
// used before its definition). Then it reads all types, then field by field into the sections of ModuleParts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/wasm/text/code_reader.h"
#include "jit/wasm/text/module_parts.h"
#include "jit/wasm/text/type_reader.h"

namespace hindsight::wasm::text {

class ModuleReader {
 public:
  explicit ModuleReader(ModuleParts& parts) : parts_(parts), in_(parts.in), types_(parts), code_(parts) {}

  // The fields from the next token on, to the module's closing parenthesis or the end of the text, which is left.
  bool fields();

 private:
  // The first time: declarations.cc.
  bool declare_fields();
  bool declare_field();
  bool declare_type();
  bool declare_group(size_t begin);
  bool declare_import();
  bool declare_definition(Space kind);
  bool declare(Space kind);
  bool add_import(Space kind, size_t at);
  std::optional<Space> extern_kind();
  // "(func" or the like, of an import or export.
  bool open_extern(Space& kind);

  // The second time: module_reader.cc.
  bool define_types();
  bool define_fields();
  bool field(size_t begin);
  bool import();
  bool import_description(Space kind, const std::string& module, const std::string& name, size_t begin);
  bool export_field(size_t begin);
  bool start(size_t begin);
  // Identifier, exports and, if there is one, import at the beginning of a definition.
  bool head(Space kind, uint32_t& index, bool& imported);
  bool inline_exports(Space kind, uint32_t index);
  bool function(size_t begin);
  bool body(uint32_t index, const TypeUse& use, IndexSpace& locals, size_t begin);
  bool memory(size_t begin);
  bool table(size_t begin);
  bool global(size_t begin);
  bool tag(size_t begin);

  // segments.cc
  // What stands in front of each segment; where it is written. Null: the cursor has failed.
  Encoder* begin_segment(Space space, Section section, size_t begin);
  bool element_segment(size_t begin);
  bool element_list(Encoder& items, uint32_t& count, bool& expressions, ReferenceType& type);
  bool element_expressions(Encoder& items, uint32_t& count);
  bool function_indices(Encoder& items, uint32_t& count);
  bool inline_elements(uint32_t table, bool is64, const ReferenceType& type, uint32_t& count);
  bool data_segment(size_t begin);
  bool offset(Encoder& out);
  static void put_zero(bool is64, Encoder& out);  // the offset 0
  bool strings(std::string& out);

  bool custom_section();  // annotations.cc

  ModuleParts& parts_;
  Cursor& in_;
  TypeReader types_;
  CodeReader code_;
  std::vector<size_t> type_fields_;         // where in the text the fields that define types begin
  std::array<uint32_t, kSpaces> next_{};    // the second time: the index of what is defined next
  const char* first_definition_ = nullptr;  // what kind of thing was defined, rather than imported, first
  bool has_start_ = false;
  Encoder body_;
  Encoder local_groups_;
};

}  // namespace hindsight::wasm::text
