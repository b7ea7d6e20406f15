// Numbers and strings of the text format, from a token's characters to values. All are linear in the token's length and
// independent of the process' locale and rounding mode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hindsight::wasm::text {

enum class NumberStatus : uint8_t { kOk, kNotANumber, kOutOfRange };

// The value of a hexadecimal digit, or -1.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Digits with underscores between them, without 0x.
NumberStatus parse_hex(std::string_view text, uint64_t& out);
// Decimal, or hexadecimal after 0x; no sign; at most `most`.
NumberStatus parse_unsigned(std::string_view text, uint64_t most, uint64_t& out);
// With or without sign: -2^(bits-1) to 2^bits - 1. `out` is the bit pattern in its lowest `bits` bits, the rest zero.
NumberStatus parse_integer(std::string_view text, unsigned bits, uint64_t& out);
// The bit pattern of a float with 32 or 64 `bits`. The text is decimal or hexadecimal, rounded to the nearest and ties to even, or inf,
// nan, or nan:0x payload. kOutOfRange where it rounds to infinity, or a payload does not fit.
NumberStatus parse_float(std::string_view text, unsigned bits, uint64_t& out);

// The bytes of a string token, with its quotes, as the lexer let it pass.
std::string decode_string(std::string_view quoted);

}  // namespace hindsight::wasm::text
