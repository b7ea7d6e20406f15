#include "jit/wasm/text/type_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "jit/wasm/opcodes.h"
#include "jit/wasm/types.h"

namespace hindsight::wasm::text {

namespace {

struct NamedCode {
  std::string_view name;
  uint8_t code = 0;
};

constexpr NamedCode kHeapTypes[] = {
    {"func", kFuncCode}, {"extern", 0x6f}, {"any", 0x6e},      {"eq", 0x6d},
    {"i31", 0x6c},       {"struct", 0x6b}, {"array", 0x6a},    {"exn", 0x69},
    {"noexn", 0x74},     {"nofunc", 0x73}, {"noextern", 0x72}, {"none", 0x71},
};

// (ref null ...) of one of the above, in one word.
constexpr NamedCode kReferenceWords[] = {
    {"funcref", kFuncCode}, {"externref", 0x6f},   {"anyref", 0x6e},        {"eqref", 0x6d},
    {"i31ref", 0x6c},       {"structref", 0x6b},   {"arrayref", 0x6a},      {"exnref", 0x69},
    {"nullexnref", 0x74},   {"nullfuncref", 0x73}, {"nullexternref", 0x72}, {"nullref", 0x71},
};

constexpr NamedCode kNumberTypes[] = {
    {"i32", 0x7f}, {"i64", 0x7e}, {"f32", 0x7d}, {"f64", 0x7c}, {"v128", 0x7b}};

constexpr NamedCode kPackedTypes[] = {{"i8", 0x78}, {"i16", 0x77}};

constexpr uint8_t kFunction = 0x60;
constexpr uint8_t kStructure = 0x5f;
constexpr uint8_t kArray = 0x5e;
constexpr uint8_t kSub = 0x50;
constexpr uint8_t kSubFinal = 0x4f;
constexpr uint8_t kEmptyBlock = 0x40;

constexpr uint8_t kHasMaximum = 1;  // flags of limits
constexpr uint8_t kShared = 2;
constexpr uint8_t kIs64 = 4;

template <size_t n>
const NamedCode* find(const NamedCode (&table)[n], const Token& token) {
  if (token.kind != TokenKind::kWord) return nullptr;
  const auto found = std::ranges::find(table, token.text, &NamedCode::name);
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

void encode(HeapType type, Encoder& out) {
  if (type.concrete)
    out.signed_leb(type.value);
  else
    out.u8(type.value);
}

void encode(const ReferenceType& type, Encoder& out) {
  // (ref null func) and its kin are a byte each.
  if (!type.nullable || type.heap.concrete) out.u8(type.nullable ? kNullableRef : kNonNullRef);
  encode(type.heap, out);
}

bool TypeReader::heap_type(HeapType& out) {
  if (const NamedCode* found = find(kHeapTypes, in_.peek())) {
    in_.take();
    out = {false, found->code};
    return true;
  }
  out.concrete = true;
  if (!parts_.at_index()) return in_.fail_expected("a heap type");
  return parts_.index(Space::kType, out.value);
}

bool TypeReader::at_reference_type() {
  return in_.at_open("ref") || find(kReferenceWords, in_.peek()) != nullptr;
}

bool TypeReader::reference_type(ReferenceType& out) {
  if (const NamedCode* found = find(kReferenceWords, in_.peek())) {
    in_.take();
    out = {true, {false, found->code}};
    return true;
  }
  if (!in_.accept_open("ref")) return in_.fail_expected("a reference type");
  out.nullable = in_.accept_word("null");
  return heap_type(out.heap) && in_.close();
}

bool TypeReader::value_type(Encoder& out) {
  if (const NamedCode* found = find(kNumberTypes, in_.peek())) {
    in_.take();
    out.u8(found->code);
    return true;
  }
  if (!at_reference_type()) return in_.fail_expected("a value type");
  ReferenceType type;
  if (!reference_type(type)) return false;
  encode(type, out);
  return true;
}

bool TypeReader::results(Signature& out) {
  while (in_.accept_open("result")) {
    for (; !in_.at(TokenKind::kClose); ++out.result_count)
      if (!value_type(out.results)) return false;
    in_.take();
  }
  return true;
}

bool TypeReader::signature(Signature& out, IndexSpace* names, bool unused_names) {
  while (in_.accept_open("param")) {
    if (in_.at(TokenKind::kId) && (names != nullptr || unused_names)) {
      const Token id = in_.take();
      if (names != nullptr && !names->add(in_.id_name(id)))
        return in_.fail(id.begin, fmt::format("duplicate local {}", id.text));
      if (names != nullptr && !parts_.optional_name(*names, names->size() - 1)) return false;
      if (!value_type(out.params) || !in_.close()) return false;
      ++out.param_count;
      continue;
    }
    for (; !in_.at(TokenKind::kClose); ++out.param_count) {
      if (names != nullptr) {
        names->add_unnamed(1);
        if (!parts_.optional_name(*names, names->size() - 1)) return false;
      }
      if (!value_type(out.params)) return false;
    }
    in_.take();
  }
  return results(out);
}

bool TypeReader::type_use(TypeUse& out, IndexSpace* names) {
  if (in_.accept_open("type")) {
    out.explicit_index = true;
    if (!parts_.index(Space::kType, out.index) || !in_.close()) return false;
  }
  const size_t spelled_begin = in_.peek().begin;
  if (!signature(out.spelled, names)) return false;
  if (!out.explicit_index) {
    out.index = parts_.types.find_or_add(out.spelled);
    out.param_count = out.spelled.param_count;
    return true;
  }
  if (out.spelled.empty()) {
    // A type that is no function type, or none at all, is for the validator to refuse.
    out.param_count = parts_.types.param_count(out.index).value_or(0);
    if (names != nullptr) names->add_unnamed(out.param_count);
    return true;
  }
  out.param_count = out.spelled.param_count;
  return parts_.types.is(out.index, out.spelled) ||
         in_.fail(spelled_begin,
                  fmt::format("inline function type: these parameters and results are not those of type {}",
                              out.index));
}

bool TypeReader::block_type(Encoder& out) {
  // Without an index in front, most blocks have no type or a single result: no need of a type in the table.
  if (!in_.at_open("type")) {
    Signature spelled;
    if (!signature(spelled, nullptr)) return false;
    if (spelled.empty()) {
      out.u8(kEmptyBlock);
    } else if (spelled.param_count == 0 && spelled.result_count == 1) {
      out.raw(spelled.results.bytes());
    } else {
      out.signed_leb(parts_.types.find_or_add(spelled));
    }
    return true;
  }
  TypeUse use;
  if (!type_use(use, nullptr)) return false;
  out.signed_leb(use.index);
  return true;
}

bool TypeReader::global_type(Encoder& out) {
  const bool is_mutable = in_.accept_open("mut");
  if (!value_type(out) || (is_mutable && !in_.close())) return false;
  out.u8(is_mutable ? 1 : 0);
  return true;
}

bool TypeReader::optional_address_type() {
  if (in_.accept_word("i64")) return true;
  (void)in_.accept_word("i32");
  return false;
}

bool TypeReader::limits(bool shareable, Encoder& out) {
  const bool is64 = optional_address_type();
  // Also where addresses have 32 bits: what a size may be is for the validator to say.
  constexpr uint64_t kMost = UINT64_MAX;
  uint64_t min = 0;
  uint64_t max = 0;
  if (!in_.unsigned_number(kMost, "a size", min)) return false;
  const bool has_max = parts_.at_index() && !in_.at(TokenKind::kId);
  if (has_max && !in_.unsigned_number(kMost, "a maximal size", max)) return false;
  const bool shared = shareable && in_.accept_word("shared");
  out.u8((has_max ? kHasMaximum : 0u) | (shared ? kShared : 0u) | (is64 ? kIs64 : 0u));
  out.unsigned_leb(min);
  if (has_max) out.unsigned_leb(max);
  return true;
}

void TypeReader::fixed_limits(bool is64, uint64_t size, Encoder& out) {
  out.u8(kHasMaximum | (is64 ? kIs64 : 0u));
  out.unsigned_leb(size);
  out.unsigned_leb(size);
}

bool TypeReader::field_type(Encoder& out) {
  const bool is_mutable = in_.accept_open("mut");
  if (const NamedCode* packed = find(kPackedTypes, in_.peek())) {
    in_.take();
    out.u8(packed->code);
  } else if (!value_type(out)) {
    return false;
  }
  if (is_mutable && !in_.close()) return false;
  out.u8(is_mutable ? 1 : 0);
  return true;
}

bool TypeReader::structure(uint32_t index, Encoder& out) {
  IndexSpace& names = parts_.types.fields_of(index);
  Encoder fields;
  while (in_.accept_open("field")) {
    if (in_.at(TokenKind::kId)) {
      const Token id = in_.take();
      if (!names.add(in_.id_name(id))) return in_.fail(id.begin, fmt::format("duplicate field {}", id.text));
      if (!parts_.optional_name(names, names.size() - 1) || !field_type(fields) || !in_.close()) return false;
      continue;
    }
    for (; !in_.at(TokenKind::kClose); names.add_unnamed(1))
      if (!field_type(fields)) return false;
    in_.take();
  }
  out.unsigned_leb(names.size());
  out.raw(fields.bytes());
  return in_.close();
}

bool TypeReader::composite(uint32_t index, bool findable, Encoder& out) {
  if (in_.accept_open("func")) {
    Signature spelled;
    if (!signature(spelled, nullptr, true) || !in_.close()) return false;
    out.u8(kFunction);
    spelled.encode(out);
    parts_.types.define_function(spelled, findable);
    return true;
  }
  parts_.types.define_other();
  if (in_.accept_open("struct")) {
    out.u8(kStructure);
    return structure(index, out);
  }
  if (in_.accept_open("array")) {
    out.u8(kArray);
    return field_type(out) && in_.close();
  }
  return in_.fail_expected("a type: '(func', '(struct', '(array' or '(sub'");
}

bool TypeReader::definition(uint32_t index, bool alone, Encoder& out) {
  if (!in_.accept_open("sub")) return composite(index, alone, out);
  const bool is_final = in_.accept_word("final");
  uint32_t supertypes = 0;
  Encoder list;
  for (; parts_.at_index(); ++supertypes) {
    uint32_t supertype = 0;
    if (!parts_.index(Space::kType, supertype)) return false;
    list.unsigned_leb(supertype);
  }
  if (!is_final || supertypes != 0) {
    out.u8(is_final ? kSubFinal : kSub);
    out.unsigned_leb(supertypes);
    out.raw(list.bytes());
  }
  return composite(index, alone && is_final && supertypes == 0, out) && in_.close();
}

}  // namespace hindsight::wasm::text
