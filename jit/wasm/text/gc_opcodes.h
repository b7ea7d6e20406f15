// Instructions on structures, arrays and casts (the garbage collection part of WebAssembly 3.0): names and codes alone. The decoder refuses
// them by the feature's name, so they are not in the table of opcodes.h. The text format knows them, so that they are refused for that
// reason and for no other.
#pragma once

#include <cstdint>

namespace hindsight::wasm::text {

enum class GcImmediates : uint8_t {
  kNone,
  kType,
  kField,       // type, field
  kTypeCount,   // type, number
  kTypeData,    // type, data segment
  kTypeElem,    // type, element segment
  kTypeType,    // two types
  kRefType,     // a reference type; one that may be null has the next code
  kBranchCast,  // label, two reference types
};

// V(code, "text name", GcImmediates)
// clang-format off
#define HINDSIGHT_WASM_GC_OPCODES(V) \
  V(0xd3, "ref.eq", kNone) \
  V(0xfb00, "struct.new", kType) \
  V(0xfb01, "struct.new_default", kType) \
  V(0xfb02, "struct.get", kField) \
  V(0xfb03, "struct.get_s", kField) \
  V(0xfb04, "struct.get_u", kField) \
  V(0xfb05, "struct.set", kField) \
  V(0xfb06, "array.new", kType) \
  V(0xfb07, "array.new_default", kType) \
  V(0xfb08, "array.new_fixed", kTypeCount) \
  V(0xfb09, "array.new_data", kTypeData) \
  V(0xfb0a, "array.new_elem", kTypeElem) \
  V(0xfb0b, "array.get", kType) \
  V(0xfb0c, "array.get_s", kType) \
  V(0xfb0d, "array.get_u", kType) \
  V(0xfb0e, "array.set", kType) \
  V(0xfb0f, "array.len", kNone) \
  V(0xfb10, "array.fill", kType) \
  V(0xfb11, "array.copy", kTypeType) \
  V(0xfb12, "array.init_data", kTypeData) \
  V(0xfb13, "array.init_elem", kTypeElem) \
  V(0xfb14, "ref.test", kRefType) \
  V(0xfb16, "ref.cast", kRefType) \
  V(0xfb18, "br_on_cast", kBranchCast) \
  V(0xfb19, "br_on_cast_fail", kBranchCast) \
  V(0xfb1a, "any.convert_extern", kNone) \
  V(0xfb1b, "extern.convert_any", kNone) \
  V(0xfb1c, "ref.i31", kNone) \
  V(0xfb1d, "i31.get_s", kNone) \
  V(0xfb1e, "i31.get_u", kNone)
// clang-format on

}  // namespace hindsight::wasm::text
