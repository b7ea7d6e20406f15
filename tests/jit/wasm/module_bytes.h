// Modules built by hand, byte by byte, for tests of the decoder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace hindsight::wasm::testing {

using Bytes = std::vector<uint8_t>;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes leb(uint64_t value) {
  Bytes out;
  do {
    out.push_back(static_cast<uint8_t>((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
    value >>= 7;
  } while (value != 0);
  return out;
}

inline Bytes text(std::string_view s) {
  return leb(s.size()) + Bytes(s.begin(), s.end());
}

inline Bytes section(uint8_t id, const Bytes& payload) {
  return Bytes{id} + leb(payload.size()) + payload;
}

// A vector of encoded items.
inline Bytes vec(std::initializer_list<Bytes> items) {
  Bytes out = leb(items.size());
  for (const Bytes& item : items) out = out + item;
  return out;
}

inline Bytes module(std::initializer_list<Bytes> sections) {
  Bytes out = {0x00, 'a', 's', 'm', 1, 0, 0, 0};
  for (const Bytes& s : sections) out = out + s;
  return out;
}

inline constexpr uint8_t kI32 = 0x7f;
inline constexpr uint8_t kI64 = 0x7e;
inline constexpr uint8_t kF32 = 0x7d;
inline constexpr uint8_t kF64 = 0x7c;
inline constexpr uint8_t kFuncRef = 0x70;
inline constexpr uint8_t kExternRef = 0x6f;

inline Bytes func_type(const Bytes& params, const Bytes& results) {
  return Bytes{0x60} + leb(params.size()) + params + leb(results.size()) + results;
}

// One body: no locals, `code`, and the final end.
inline Bytes body(const Bytes& code) {
  const Bytes contents = Bytes{0} + code + Bytes{0x0b};
  return leb(contents.size()) + contents;
}

// A module with one function of the given type around `code`, and room for what code may name. That is one
// memory, table 0 of funcref, table 1 of externref, global 0 an immutable i32 and global 1 a mutable i64.
// Also one passive data segment, one passive funcref element segment, and types 1 = (i32 i64) -> (i64
// i32), 2 = () -> (i32 i32), 3 = (i32) -> (i32).
inline Bytes module_around(const Bytes& params, const Bytes& results, const Bytes& code) {
  return module({section(1, vec({func_type(params, results), func_type({kI32, kI64}, {kI64, kI32}),
                                 func_type({}, {kI32, kI32}), func_type({kI32}, {kI32})})),
                 section(3, vec({{0}})), section(4, vec({{kFuncRef, 0, 1}, {kExternRef, 0, 1}})),
                 section(5, vec({{0, 1}})),
                 section(6, vec({{kI32, 0, 0x41, 0, 0x0b}, {kI64, 1, 0x42, 0, 0x0b}})),
                 section(9, vec({{1, 0, 0}})), section(12, {1}), section(10, vec({body(code)})),
                 section(11, vec({{1, 0}}))});
}

}  // namespace hindsight::wasm::testing
