#include "jit/wasm/text/literals.h"

#include <bit>
#include <charconv>

namespace hindsight::wasm::text {

namespace {

bool is_digit(char c, bool hex) {
  return hex ? hex_digit(c) >= 0 : c >= '0' && c <= '9';
}

// Digits, single underscores between them, from text[at]; appends the digits to `out`. False: not even one, or an
// underscore that is not between two.
bool take_digits(std::string_view text, size_t& at, bool hex, std::string& out) {
  if (at >= text.size() || !is_digit(text[at], hex)) return false;
  while (at < text.size()) {
    if (text[at] == '_') {
      if (at + 1 >= text.size() || !is_digit(text[at + 1], hex)) return false;
      ++at;
    }
    if (!is_digit(text[at], hex)) break;
    out += text[at++];
  }
  return true;
}

bool take_sign(std::string_view& text) {
  if (text.empty() || (text[0] != '-' && text[0] != '+')) return false;
  const bool negative = text[0] == '-';
  text.remove_prefix(1);
  return negative;
}

bool take_hex_prefix(std::string_view& text) {
  if (!text.starts_with("0x")) return false;
  text.remove_prefix(2);
  return true;
}

NumberStatus parse_digits(std::string_view text, bool hex, uint64_t& out) {
  const uint64_t base = hex ? 16 : 10;
  uint64_t value = 0;
  bool overflow = false;
  bool after_digit = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (!after_digit || i + 1 == text.size()) return NumberStatus::kNotANumber;
      after_digit = false;
      continue;
    }
    if (!is_digit(text[i], hex)) return NumberStatus::kNotANumber;
    after_digit = true;
    overflow |= __builtin_mul_overflow(value, base, &value);
    overflow |= __builtin_add_overflow(value, static_cast<uint64_t>(hex_digit(text[i])), &value);
  }
  if (!after_digit) return NumberStatus::kNotANumber;
  out = value;
  return overflow ? NumberStatus::kOutOfRange : NumberStatus::kOk;
}

// Whether a number that no float can hold is too large rather than too small. The place of its first digit that is not
// zero, and its exponent, tell. `whole`, `fraction` are digits; `exponent` is a sign and digits, or nothing.
bool is_huge(std::string_view whole, std::string_view fraction, std::string_view exponent, bool hex) {
  const bool negative = take_sign(exponent);
  uint64_t magnitude = 0;
  if (!exponent.empty() && parse_digits(exponent, false, magnitude) == NumberStatus::kOutOfRange)
    return !negative;
  constexpr uint64_t kMost = uint64_t{1} << 48;  // more than any text has digits
  if (magnitude > kMost) return !negative;
  const auto shift = static_cast<int64_t>(magnitude);
  const int64_t scale = hex ? 4 : 1;  // a hexadecimal digit is worth four binary places
  const size_t first = whole.find_first_not_of('0');
  int64_t place = 0;
  if (first != std::string_view::npos) {
    place = static_cast<int64_t>(whole.size() - first);
  } else {
    const size_t zeros = fraction.find_first_not_of('0');
    place = -static_cast<int64_t>(zeros == std::string_view::npos ? fraction.size() : zeros);
  }
  return place * scale + (negative ? -shift : shift) > 0;
}

template <typename Float, typename Bits>
NumberStatus finite(std::string_view text, bool negative, uint64_t& out) {
  const bool hex = take_hex_prefix(text);
  std::string whole;
  std::string fraction;
  std::string exponent;
  size_t at = 0;
  if (!take_digits(text, at, hex, whole)) return NumberStatus::kNotANumber;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (at < text.size() && is_digit(text[at], hex) && !take_digits(text, at, hex, fraction))
      return NumberStatus::kNotANumber;
  }
  if (at < text.size() && (text[at] | 0x20) == (hex ? 'p' : 'e')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) exponent += text[at++];
    if (!take_digits(text, at, false, exponent)) return NumberStatus::kNotANumber;
  }
  if (at != text.size()) return NumberStatus::kNotANumber;

  std::string number = whole;
  if (!fraction.empty()) number += '.' + fraction;
  if (!exponent.empty()) number += (hex ? 'p' : 'e') + exponent;
  Float value = 0;
  const auto format = hex ? std::chars_format::hex : std::chars_format::general;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value, format);
  if (result.ec == std::errc::result_out_of_range) {
    if (is_huge(whole, fraction, exponent, hex)) return NumberStatus::kOutOfRange;
    value = 0;
  } else if (result.ec != std::errc{} || result.ptr != number.data() + number.size()) {
    return NumberStatus::kNotANumber;
  }
  const Bits bits = std::bit_cast<Bits>(value);
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  out = negative ? bits | kSign : bits;
  return NumberStatus::kOk;
}

}  // namespace

NumberStatus parse_hex(std::string_view text, uint64_t& out) {
  return parse_digits(text, true, out);
}

NumberStatus parse_unsigned(std::string_view text, uint64_t most, uint64_t& out) {
  const bool hex = take_hex_prefix(text);
  const NumberStatus status = parse_digits(text, hex, out);
  return status == NumberStatus::kOk && out > most ? NumberStatus::kOutOfRange : status;
}

NumberStatus parse_integer(std::string_view text, unsigned bits, uint64_t& out) {
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const bool negative = take_sign(text);
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  const uint64_t half = uint64_t{1} << (bits - 1);
  // +n is as large as n may be: the sign only excludes what a negative number cannot be.
  const NumberStatus status = parse_unsigned(text, is_signed && negative ? half : mask, out);
  if (negative) out = (0 - out) & mask;
  return status;
}

NumberStatus parse_float(std::string_view text, unsigned bits, uint64_t& out) {
  const bool negative = take_sign(text);
  const unsigned mantissa = bits == 32 ? 23 : 52;
  const uint64_t sign = negative ? uint64_t{1} << (bits - 1) : 0;
  const uint64_t infinity = bits == 32 ? 0x7f80'0000u : 0x7ff0'0000'0000'0000u;
  if (text == "inf") {
    out = sign | infinity;
    return NumberStatus::kOk;
  }
  if (text == "nan") {
    out = sign | infinity | uint64_t{1} << (mantissa - 1);
    return NumberStatus::kOk;
  }
  if (text.starts_with("nan:0x")) {
    uint64_t payload = 0;
    const NumberStatus status = parse_hex(text.substr(6), payload);
    if (status == NumberStatus::kNotANumber) return status;
    if (status == NumberStatus::kOutOfRange || payload == 0 || payload >> mantissa != 0)
      return NumberStatus::kOutOfRange;
    out = sign | infinity | payload;
    return NumberStatus::kOk;
  }
  return bits == 32 ? finite<float, uint32_t>(text, negative, out)
                    : finite<double, uint64_t>(text, negative, out);
}

namespace {

void append_utf8(uint32_t point, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](unsigned shift) { put(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    tail(6);
    tail(0);
  } else {
    put(0xf0 | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string decode_string(std::string_view quoted) {
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      out += text[i++];
      continue;
    }
    const char c = text[i + 1];
    if (c == 'u') {
      const size_t close = text.find('}', i);
      uint64_t point = 0;
      (void)parse_hex(text.substr(i + 3, close - i - 3), point);  // the lexer has seen that it is one
      append_utf8(static_cast<uint32_t>(point), out);
      i = close + 1;
    } else if (hex_digit(c) >= 0) {
      out += static_cast<char>(hex_digit(c) * 16 + hex_digit(text[i + 2]));
      i += 3;
    } else {
      out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
      i += 2;
    }
  }
  return out;
}

}  // namespace hindsight::wasm::text
