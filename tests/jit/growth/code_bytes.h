// The vocabulary of shapes: code that grows, and a module around it.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::jit::testing {

using namespace wasm::testing;  // NOLINT: the vocabulary of bytes

inline constexpr uint8_t kNoResult = 0x40;
inline constexpr uint8_t kEnd = 0x0b;
inline constexpr uint8_t kV128 = 0x7b;

// Code that is appended to; indices and constants in as many bytes as they need.
class Code {
 public:
  Code& op(std::initializer_list<uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes);
    return *this;
  }
  Code& leb(uint64_t value) {
    do {
      bytes_.push_back(static_cast<uint8_t>((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
      value >>= 7;
    } while (value != 0);
    return *this;
  }
  Code& i32(int64_t value) {
    bytes_.push_back(0x41);
    for (;;) {
      const auto low = static_cast<uint8_t>(value & 0x7f);
      value >>= 7;
      const bool last = (value == 0 && !(low & 0x40)) || (value == -1 && (low & 0x40));
      bytes_.push_back(last ? low : low | 0x80);
      if (last) return *this;
    }
  }
  Code& get(uint32_t local) { return op({0x20}).leb(local); }
  Code& set(uint32_t local) { return op({0x21}).leb(local); }
  Code& add(const Bytes& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  Code& times(uint32_t n, const std::function<void(Code&, uint32_t)>& unit) {
    for (uint32_t i = 0; i < n; ++i) unit(*this, i);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

inline void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// n items, each of them made by `item`.
inline Bytes many(uint32_t n, const std::function<Bytes(uint32_t)>& item) {
  Bytes out = leb(n);
  for (uint32_t i = 0; i < n; ++i) append(out, item(i));
  return out;
}

struct Function {
  Bytes params{kI32, kI32};
  Bytes results{};
  uint32_t locals = 0;                           // of type i32, after the parameters
  uint32_t vectors = 0, wides = 0, doubles = 0;  // v128, i64, f64; after those in this order
};

// One function (index 2, type 0) around `code` in a module. Types: 1 = () -> (), 2 = (i32) -> (i32), 3 = n
// params and results. Function 0 is imported, of type 2; function 1 is of type 2, small. There are a memory,
// a table, global 0 a mutable i32, and tag 0 without values.
inline Bytes function_of(const Function& f, const Bytes& code, uint32_t arity = 1) {
  Bytes groups;
  uint32_t kinds = 0;
  const auto declare = [&](uint32_t count, uint8_t type) {
    if (count == 0) return;
    append(groups, leb(count) + Bytes{type});
    ++kinds;
  };
  declare(f.locals, kI32);
  declare(f.vectors, kV128);
  declare(f.wides, kI64);
  declare(f.doubles, kF64);
  Bytes own = leb(kinds) + groups;
  append(own, code);
  own.push_back(kEnd);
  const Bytes tall(arity, kI32);
  return module({section(1, vec({func_type(f.params, f.results), func_type({}, {}), func_type({kI32}, {kI32}),
                                 func_type(tall, tall)})),
                 section(2, vec({text("env") + text("f") + Bytes{0, 2}})), section(3, vec({{2}, {0}})),
                 section(4, vec({{kFuncRef, 0, 1}})), section(5, vec({{0, 1}})), section(13, vec({{0, 1}})),
                 section(6, vec({{kI32, 1, 0x41, 0, kEnd}})),
                 section(10, vec({body({0x20, 0, 0x41, 1, 0x6a}), leb(own.size()) + own}))});
}

inline Bytes plain(uint32_t n, const std::function<void(Code&, uint32_t)>& unit, const Function& f = {}) {
  Code code;
  code.times(n, unit);
  return function_of(f, code.bytes());
}

}  // namespace hindsight::jit::testing
