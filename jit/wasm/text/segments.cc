// ModuleReader's part for element and data segments.
#include <fmt/format.h>

#include "jit/wasm/text/literals.h"
#include "jit/wasm/text/module_reader.h"

namespace hindsight::wasm::text {

namespace {

// Flags of the binary format.
constexpr unsigned kPassiveOrDeclared = 1;
constexpr unsigned kExplicitIndex = 2;  // of an active segment; of another: declared
constexpr unsigned kExpressions = 4;
constexpr uint8_t kFunctionKind = 0;

// The rest of an element segment after its place: its type, which the short form leaves out, and what it holds.
void put_items(bool short_form, bool expressions, const ReferenceType& type, uint32_t count,
               const Encoder& items, Encoder& out) {
  if (!short_form) {
    if (expressions)
      encode(type, out);
    else
      out.u8(kFunctionKind);
  }
  out.unsigned_leb(count);
  out.raw(items.bytes());
}

}  // namespace

void ModuleReader::put_zero(bool is64, Encoder& out) {
  encode_opcode(static_cast<uint16_t>(is64 ? Opcode::kI64Const : Opcode::kI32Const), out);
  out.signed_leb(0);
  encode_opcode(static_cast<uint16_t>(Opcode::kEnd), out);
}

// (offset instructions), or one instruction in parentheses.
bool ModuleReader::offset(Encoder& out) {
  if (in_.accept_open("offset")) return code_.expression(IndexSpace(), std::nullopt, out) && in_.close();
  return code_.folded_expression(IndexSpace(), out);
}

bool ModuleReader::strings(std::string& out) {
  while (in_.at(TokenKind::kString)) out += decode_string(in_.take().text);
  return in_.close();
}

Encoder* ModuleReader::begin_segment(Space space, Section section, size_t begin) {
  ++next_[static_cast<size_t>(space)];
  (void)in_.optional_id();
  IndexSpace ignored;
  return parts_.optional_name(ignored, 0) ? &parts_.item(section, begin) : nullptr;
}

bool ModuleReader::data_segment(size_t begin) {
  Encoder* const to = begin_segment(Space::kData, Section::kData, begin);
  if (to == nullptr) return false;
  Encoder& out = *to;
  uint32_t memory = 0;
  const bool bare_number = in_.at(TokenKind::kWord) && parts_.at_index();  // as WebAssembly 1.0 wrote it
  const bool names_memory = bare_number || in_.accept_open("memory");
  if (names_memory && (!parts_.index(Space::kMemory, memory) || (!bare_number && !in_.close()))) return false;
  if (!names_memory && !in_.at(TokenKind::kOpen)) {
    out.u8(kPassiveOrDeclared);
  } else {
    out.u8(memory != 0 ? kExplicitIndex : 0);
    if (memory != 0) out.unsigned_leb(memory);
    if (!offset(out)) return false;
  }
  std::string bytes;
  if (!strings(bytes)) return false;
  out.counted(bytes);
  return true;
}

bool ModuleReader::function_indices(Encoder& items, uint32_t& count) {
  for (; !in_.at(TokenKind::kClose); ++count) {
    uint32_t index = 0;
    if (!parts_.index(Space::kFunc, index)) return false;
    items.unsigned_leb(index);
  }
  return true;
}

bool ModuleReader::element_expressions(Encoder& items, uint32_t& count) {
  for (; !in_.at(TokenKind::kClose); ++count) {
    if (in_.accept_open("item")) {
      if (!code_.expression(IndexSpace(), std::nullopt, items) || !in_.close()) return false;
    } else if (!code_.folded_expression(IndexSpace(), items)) {
      return false;
    }
  }
  return true;
}

bool ModuleReader::element_list(Encoder& items, uint32_t& count, bool& expressions, ReferenceType& type) {
  expressions = types_.at_reference_type();
  if (expressions) return types_.reference_type(type) && element_expressions(items, count);
  if (!in_.accept_word("func")) return in_.fail_expected("'func' or a reference type");
  return function_indices(items, count);
}

bool ModuleReader::element_segment(size_t begin) {
  Encoder* const to = begin_segment(Space::kElem, Section::kElem, begin);
  if (to == nullptr) return false;
  Encoder& out = *to;

  unsigned flags = 0;
  uint32_t table = 0;
  Encoder place;
  bool bare = false;  // active, its table not named: a list of functions needs no word in front
  if (in_.accept_word("declare")) {
    flags = kPassiveOrDeclared | kExplicitIndex;
  } else if (in_.accept_open("table")) {
    if (!parts_.index(Space::kTable, table) || !in_.close() || !offset(place)) return false;
  } else if (in_.at(TokenKind::kWord) && parts_.at_index()) {  // as WebAssembly 1.0 wrote it
    bare = true;
    if (!parts_.index(Space::kTable, table) || !offset(place)) return false;
  } else if (in_.at(TokenKind::kOpen) && !types_.at_reference_type()) {
    bare = true;
    if (!offset(place)) return false;
  } else {
    flags = kPassiveOrDeclared;
  }

  Encoder items;
  uint32_t count = 0;
  bool expressions = false;
  ReferenceType type{.nullable = true, .heap = {false, kFuncCode}};
  if (bare && (parts_.at_index() || in_.at(TokenKind::kClose))) {
    if (!function_indices(items, count)) return false;
  } else if (!element_list(items, count, expressions, type)) {
    return false;
  }
  const bool active = (flags & kPassiveOrDeclared) == 0;
  // An active segment of table 0 has no place for a type: it is funcref, or functions.
  const bool short_form = active && table == 0 && (!expressions || type.is(kFuncCode));
  if (active && !short_form) flags |= kExplicitIndex;
  if (expressions) flags |= kExpressions;
  out.u8(flags);
  if (active && !short_form) out.unsigned_leb(table);
  out.raw(place.bytes());
  put_items(short_form, expressions, type, count, items, out);
  return in_.close();
}

// After `(elem` of a table: functions or expressions that fill it.
bool ModuleReader::inline_elements(uint32_t table, bool is64, const ReferenceType& type, uint32_t& count) {
  ++next_[static_cast<size_t>(Space::kElem)];
  bool expressions = in_.at(TokenKind::kOpen);
  Encoder& out = parts_.item(Section::kElem);
  Encoder items;
  if (!expressions && !type.is(kFuncCode)) {
    // References to functions of one type, or that are never null: their type stands at expressions only.
    expressions = true;
    for (; !in_.at(TokenKind::kClose); ++count) {
      uint32_t index = 0;
      if (!parts_.index(Space::kFunc, index)) return false;
      encode_opcode(static_cast<uint16_t>(Opcode::kRefFunc), items);
      items.unsigned_leb(index);
      encode_opcode(static_cast<uint16_t>(Opcode::kEnd), items);
    }
  } else if (expressions ? !element_expressions(items, count) : !function_indices(items, count)) {
    return false;
  }
  const bool short_form = table == 0 && type.is(kFuncCode);
  out.u8((short_form ? 0u : kExplicitIndex) | (expressions ? kExpressions : 0u));
  if (!short_form) out.unsigned_leb(table);
  put_zero(is64, out);
  put_items(short_form, expressions, type, count, items, out);
  return in_.close();
}

}  // namespace hindsight::wasm::text
