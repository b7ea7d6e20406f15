// The instructions of exceptions, byte by byte: the text parser knows no try_table.
#pragma once

#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::wasm::testing {

inline constexpr uint8_t kExnRef = 0x69;
inline constexpr uint8_t kNoResult = 0x40;
inline const Bytes kThrowRef = {0x0a};
inline const Bytes kUnreachable = {0x00};
inline const Bytes kDrop = {0x1a};
inline const Bytes kI32Add = {0x6a};

inline Bytes i32_const(int32_t value) {
  Bytes out{0x41};
  for (;;) {
    const auto low = static_cast<uint8_t>(value & 0x7f);
    value >>= 7;
    if ((value == 0 && !(low & 0x40)) || (value == -1 && (low & 0x40))) return out + Bytes{low};
    out.push_back(low | 0x80);
  }
}
inline Bytes local_get(uint8_t i) {
  return {0x20, i};
}
inline Bytes local_set(uint8_t i) {
  return {0x21, i};
}
inline Bytes call(uint8_t f) {
  return {0x10, f};
}
inline Bytes br(uint8_t label) {
  return {0x0c, label};
}
inline Bytes throw_tag(uint8_t tag) {
  return {0x08, tag};
}
// `type`: the byte of a value type, kNoResult, or the index of a function type below 64.
inline Bytes block(uint8_t type, const Bytes& body) {
  return Bytes{0x02, type} + body + Bytes{0x0b};
}
inline Bytes loop(uint8_t type, const Bytes& body) {
  return Bytes{0x03, type} + body + Bytes{0x0b};
}
inline Bytes when(uint8_t type, const Bytes& then) {
  return Bytes{0x04, type} + then + Bytes{0x0b};
}
inline Bytes try_table(uint8_t type, std::initializer_list<Bytes> clauses, const Bytes& body) {
  return Bytes{0x1f, type} + vec(clauses) + body + Bytes{0x0b};
}
inline Bytes catch_tag(uint8_t tag, uint8_t label) {
  return {0, tag, label};
}
inline Bytes catch_ref(uint8_t tag, uint8_t label) {
  return {1, tag, label};
}
inline Bytes catch_all(uint8_t label) {
  return {2, label};
}
inline Bytes catch_all_ref(uint8_t label) {
  return {3, label};
}
inline Bytes exported(std::string_view name, uint8_t function) {
  return text(name) + Bytes{0, function};
}
// A body with `locals` declared as (count, type) pairs.
inline Bytes body_with(std::initializer_list<Bytes> locals, const Bytes& code) {
  const Bytes contents = vec(locals) + code + Bytes{0x0b};
  return leb(contents.size()) + contents;
}

}  // namespace hindsight::wasm::testing
