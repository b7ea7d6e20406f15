// CodeReader's part that reads what follows an instruction's name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "jit/wasm/text/code_reader.h"
#include "jit/wasm/text/literals.h"

namespace hindsight::wasm::text {

bool CodeReader::label(uint32_t& out) {
  if (!in_.at(TokenKind::kId)) {
    uint64_t number = 0;
    if (!in_.unsigned_number(UINT32_MAX, "a label", number)) return false;
    out = static_cast<uint32_t>(number);
    return true;
  }
  const Token id = in_.take();
  const auto found = label_places_.find(in_.id_name(id));
  if (found == label_places_.end()) return in_.fail(id.begin, fmt::format("unknown label {}", id.text));
  out = static_cast<uint32_t>(labels_.size() - 1 - found->second.back());
  return true;
}

bool CodeReader::put_label() {
  uint32_t depth = 0;
  if (!label(depth)) return false;
  waiting_.unsigned_leb(depth);
  return true;
}

bool CodeReader::put_index(Space space) {
  uint32_t index = 0;
  if (!parts_.index(space, index)) return false;
  waiting_.unsigned_leb(index);
  return true;
}

bool CodeReader::put_optional_index(Space space) {
  if (parts_.at_index()) return put_index(space);
  waiting_.unsigned_leb(0);
  return true;
}

bool CodeReader::branch_table() {
  std::vector<uint32_t> labels;
  do {
    if (!label(labels.emplace_back())) return false;
  } while (parts_.at_index());
  waiting_.unsigned_leb(labels.size() - 1);
  for (const uint32_t depth : labels) waiting_.unsigned_leb(depth);
  return true;
}

bool CodeReader::indirect_call() {
  uint32_t table = 0;
  if (parts_.at_index() && !parts_.index(Space::kTable, table)) return false;
  TypeUse use;
  if (!types_.type_use(use, nullptr)) return false;
  waiting_.unsigned_leb(use.index);
  waiting_.unsigned_leb(table);
  return true;
}

// `offset=` and `align=` are part of their number's token.
bool CodeReader::memory_option(std::string_view prefix, uint64_t& out, bool& found) {
  found = in_.at(TokenKind::kWord) && in_.peek().text.starts_with(prefix);
  if (!found) return true;
  const Token token = in_.take();
  const NumberStatus status = parse_unsigned(token.text.substr(prefix.size()), UINT64_MAX, out);
  if (status == NumberStatus::kOutOfRange)
    return in_.fail(token.begin, fmt::format("constant out of range in '{}': 64 bits are the most",
                                             token.text.substr(0, 40)));
  return status == NumberStatus::kOk ||
         in_.fail(token.begin,
                  fmt::format("expected a number after '{}', found '{}'", prefix, token.text.substr(0, 40)));
}

bool CodeReader::memory_argument(Opcode opcode, bool with_lane) {
  uint32_t memory = 0;
  // In front of a lane a number is the memory only if something follows that can be no instruction.
  bool has_memory = parts_.at_index();
  if (has_memory && with_lane && !in_.at(TokenKind::kId)) {
    const Token& second = in_.peek_second();
    has_memory = second.kind == TokenKind::kWord &&
                 ((second.text[0] >= '0' && second.text[0] <= '9') || second.text.starts_with("offset=") ||
                  second.text.starts_with("align="));
  }
  if (has_memory && !parts_.index(Space::kMemory, memory)) return false;
  uint64_t offset = 0;
  uint64_t align = uint64_t{1} << access_log2(opcode);
  bool found = false;
  if (!memory_option("offset=", offset, found)) return false;
  const size_t align_begin = in_.peek().begin;
  if (!memory_option("align=", align, found)) return false;
  if (!std::has_single_bit(align)) return in_.fail(align_begin, "alignment must be a power of two");
  waiting_.unsigned_leb(static_cast<unsigned>(std::countr_zero(align)) |
                        (memory != 0 ? kMemArgHasMemory : 0));
  if (memory != 0) waiting_.unsigned_leb(memory);
  waiting_.unsigned_leb(offset);
  return !with_lane || lane();
}

// memory.init and its kin: the target may be left out, and comes first in the text but last in the code.
bool CodeReader::segment_and(Space segment, Space target) {
  const bool two =
      parts_.at_index() && (in_.peek_second().kind == TokenKind::kId ||
                            (in_.peek_second().kind == TokenKind::kWord && in_.peek_second().text[0] >= '0' &&
                             in_.peek_second().text[0] <= '9'));
  uint32_t target_index = 0;
  uint32_t segment_index = 0;
  if (two && !parts_.index(target, target_index)) return false;
  if (!parts_.index(segment, segment_index)) return false;
  waiting_.unsigned_leb(segment_index);
  waiting_.unsigned_leb(target_index);
  return true;
}

bool CodeReader::two_or_none(Space space) {
  if (parts_.at_index()) return put_index(space) && put_index(space);
  waiting_.unsigned_leb(0);
  waiting_.unsigned_leb(0);
  return true;
}

bool CodeReader::number(unsigned bits) {
  uint64_t value = 0;
  const NumberStatus status =
      in_.at(TokenKind::kWord) ? parse_integer(in_.peek().text, bits, value) : NumberStatus::kNotANumber;
  if (status == NumberStatus::kNotANumber) return in_.fail_expected("an integer");
  if (status == NumberStatus::kOutOfRange)
    return in_.fail(in_.peek().begin, fmt::format("constant out of range: an integer of {} bits", bits));
  in_.take();
  waiting_.signed_leb(bits == 32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value));
  return true;
}

bool CodeReader::float_number(unsigned bits) {
  uint64_t value = 0;
  const NumberStatus status =
      in_.at(TokenKind::kWord) ? parse_float(in_.peek().text, bits, value) : NumberStatus::kNotANumber;
  if (status == NumberStatus::kNotANumber) return in_.fail_expected("a floating-point number");
  if (status == NumberStatus::kOutOfRange)
    return in_.fail(in_.peek().begin,
                    fmt::format("constant out of range: a floating-point number of {} bits", bits));
  in_.take();
  waiting_.little_endian(value, bits / 8);
  return true;
}

bool CodeReader::vector_constant() {
  struct Shape {
    std::string_view name;
    unsigned lanes;
    unsigned bits;
    bool is_float;
  };
  static constexpr Shape kShapes[] = {{"i8x16", 16, 8, false}, {"i16x8", 8, 16, false},
                                      {"i32x4", 4, 32, false}, {"i64x2", 2, 64, false},
                                      {"f32x4", 4, 32, true},  {"f64x2", 2, 64, true}};
  const auto shape = in_.at(TokenKind::kWord) ? std::ranges::find(kShapes, in_.peek().text, &Shape::name)
                                              : std::end(kShapes);
  if (shape == std::end(kShapes))
    return in_.fail_expected("the shape of a vector: i8x16, i16x8, i32x4, i64x2, f32x4 or f64x2");
  in_.take();
  for (unsigned i = 0; i < shape->lanes; ++i) {
    if (shape->is_float) {
      if (!float_number(shape->bits)) return false;
      continue;
    }
    uint64_t value = 0;
    const NumberStatus status = in_.at(TokenKind::kWord) ? parse_integer(in_.peek().text, shape->bits, value)
                                                         : NumberStatus::kNotANumber;
    if (status == NumberStatus::kNotANumber)
      return in_.fail_expected(fmt::format("{} integers (wrong number of lane literals)", shape->lanes));
    if (status == NumberStatus::kOutOfRange)
      return in_.fail(in_.peek().begin,
                      fmt::format("constant out of range: an integer of {} bits", shape->bits));
    in_.take();
    waiting_.little_endian(value, shape->bits / 8);
  }
  return true;
}

bool CodeReader::lane() {
  uint64_t value = 0;
  if (!in_.unsigned_number(UINT8_MAX, "the number of a lane", value)) return false;
  waiting_.u8(static_cast<unsigned>(value));
  return true;
}

bool CodeReader::shuffle() {
  constexpr unsigned kLanes = 16;
  for (unsigned i = 0; i < kLanes; ++i)
    if (!lane()) return false;
  return true;
}

bool CodeReader::catch_clauses() {
  static constexpr std::string_view kKinds[CatchClause::kKinds] = {"catch", "catch_ref", "catch_all",
                                                                   "catch_all_ref"};
  Encoder clauses;
  uint32_t count = 0;
  for (;; ++count) {
    uint8_t kind = 0;
    while (kind < CatchClause::kKinds && !in_.accept_open(kKinds[kind])) ++kind;
    if (kind == CatchClause::kKinds) break;
    clauses.u8(kind);
    uint32_t index = 0;
    if ((kind & CatchClause::kAny) == 0) {
      if (!parts_.index(Space::kTag, index)) return false;
      clauses.unsigned_leb(index);
    }
    if (!label(index) || !in_.close()) return false;
    clauses.unsigned_leb(index);
  }
  waiting_.unsigned_leb(count);
  waiting_.raw(clauses.bytes());
  return true;
}

bool CodeReader::branch_cast() {
  uint32_t depth = 0;
  ReferenceType from;
  ReferenceType to;
  if (!label(depth) || !types_.reference_type(from) || !types_.reference_type(to)) return false;
  waiting_.u8((from.nullable ? 1u : 0u) | (to.nullable ? 2u : 0u));
  waiting_.unsigned_leb(depth);
  wasm::text::encode(from.heap, waiting_);
  wasm::text::encode(to.heap, waiting_);
  return true;
}

bool CodeReader::gc_immediates(const Instruction& instruction) {
  switch (instruction.gc) {
    case GcImmediates::kNone:
      return true;
    case GcImmediates::kType:
      return put_index(Space::kType);
    case GcImmediates::kField: {
      uint32_t type = 0;
      uint32_t field = 0;
      if (!parts_.index(Space::kType, type)) return false;
      const auto names = parts_.types.fields().find(type);
      if (!parts_.index(names != parts_.types.fields().end() ? names->second : IndexSpace(), "field", field))
        return false;
      waiting_.unsigned_leb(type);
      waiting_.unsigned_leb(field);
      return true;
    }
    case GcImmediates::kTypeCount: {
      uint64_t count = 0;
      if (!put_index(Space::kType) || !in_.unsigned_number(UINT32_MAX, "the number of elements", count))
        return false;
      waiting_.unsigned_leb(count);
      return true;
    }
    case GcImmediates::kTypeData:
      parts_.needs_data_count = true;
      return put_index(Space::kType) && put_index(Space::kData);
    case GcImmediates::kTypeElem:
      return put_index(Space::kType) && put_index(Space::kElem);
    case GcImmediates::kTypeType:
      return put_index(Space::kType) && put_index(Space::kType);
    case GcImmediates::kBranchCast:
      return branch_cast();
    case GcImmediates::kRefType:
      break;  // its code depends on the type: see encode
  }
  return true;
}

bool CodeReader::immediates(const Instruction& instruction, const Token& keyword) {
  const auto opcode = static_cast<Opcode>(instruction.code);
  switch (instruction.immediates) {
    case ImmKind::kNone:
    case ImmKind::kBlock:        // start_block
    case ImmKind::kTryTable:     // start_block
    case ImmKind::kSelectTypes:  // encode
      return true;
    case ImmKind::kLabel:
      return put_label();
    case ImmKind::kBrTable:
      return branch_table();
    case ImmKind::kFunc:
      return put_index(Space::kFunc);
    case ImmKind::kIndirect:
      return indirect_call();
    case ImmKind::kType:
      return put_index(Space::kType);
    case ImmKind::kLocal: {
      uint32_t index = 0;
      if (!parts_.index(*locals_, "local", index)) return false;
      waiting_.unsigned_leb(index);
      return true;
    }
    case ImmKind::kGlobal:
      return put_index(Space::kGlobal);
    case ImmKind::kTable:
      return put_optional_index(Space::kTable);
    case ImmKind::kMemArg:
      return memory_argument(opcode, false);
    case ImmKind::kMemArgLane:
      return memory_argument(opcode, true);
    case ImmKind::kMemory:
      return put_optional_index(Space::kMemory);
    case ImmKind::kI32:
      return number(32);
    case ImmKind::kI64:
      return number(64);
    case ImmKind::kF32:
      return float_number(32);
    case ImmKind::kF64:
      return float_number(64);
    case ImmKind::kRefType: {
      HeapType type;
      if (!types_.heap_type(type)) return false;
      wasm::text::encode(type, waiting_);
      return true;
    }
    case ImmKind::kMemoryInit:
      parts_.needs_data_count = true;
      return segment_and(Space::kData, Space::kMemory);
    case ImmKind::kData:
      parts_.needs_data_count = true;
      return put_index(Space::kData);
    case ImmKind::kMemoryCopy:
      return two_or_none(Space::kMemory);
    case ImmKind::kTableInit:
      return segment_and(Space::kElem, Space::kTable);
    case ImmKind::kElem:
      return put_index(Space::kElem);
    case ImmKind::kTableCopy:
      return two_or_none(Space::kTable);
    case ImmKind::kFence:
      waiting_.u8(0);
      return true;
    case ImmKind::kV128:
      return vector_constant();
    case ImmKind::kShuffle:
      return shuffle();
    case ImmKind::kLane:
      return lane();
    case ImmKind::kTag:
      return put_index(Space::kTag);
  }
  return in_.fail(keyword.begin, "an instruction without a reader");
}

bool CodeReader::encode(const Instruction& instruction, const Token& keyword) {
  if (instruction.gc == GcImmediates::kRefType) {
    ReferenceType type;
    if (!types_.reference_type(type)) return false;
    encode_opcode(static_cast<uint16_t>(instruction.code + (type.nullable ? 1 : 0)), waiting_);
    wasm::text::encode(type.heap, waiting_);
    return true;
  }
  if (instruction.is(Opcode::kSelect) && in_.at_open("result")) {
    Signature results;
    if (!types_.results(results)) return false;
    encode_opcode(static_cast<uint16_t>(Opcode::kSelectT), waiting_);
    waiting_.unsigned_leb(results.result_count);
    waiting_.raw(results.results.bytes());
    return true;
  }
  encode_opcode(instruction.code, waiting_);
  return gc_immediates(instruction) && immediates(instruction, keyword);
}

}  // namespace hindsight::wasm::text
