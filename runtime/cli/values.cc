#include "runtime/cli/values.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace hindsight::cli {
namespace {

// Accepts -2^(bits-1) .. 2^bits-1: people write addresses unsigned and differences signed.
std::optional<uint64_t> parse_integer(std::string_view text, uint32_t bits) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const uint64_t limit = negative     ? uint64_t{1} << (bits - 1)
                         : bits == 64 ? UINT64_MAX
                                      : (uint64_t{1} << bits) - 1;
  if (value > limit) return std::nullopt;
  return negative ? 0 - value : value;
}

template <typename Float, typename Parse>
std::optional<Float> parse_float(std::string_view text, Parse parse) {
  const std::string copy(text);
  if (copy.empty() || std::isspace(static_cast<unsigned char>(copy[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const Float value = parse(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size()) return std::nullopt;
  // "inf" may be written, 1e999 may not become it silently.
  if (errno == ERANGE && std::isinf(value)) return std::nullopt;
  return value;
}

// "shape:lane,lane,..." or "0x" and the digits of the 128-bit integer that lane 0 is the low end of.
std::optional<V128> parse_vector(std::string_view text) {
  V128 vector;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    if (text.size() != 32) return std::nullopt;
    for (size_t half = 0; half < 2; ++half) {
      const std::string_view digits = text.substr(16 * (1 - half), 16);
      uint64_t bits = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
      if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
      std::memcpy(&vector.bytes[8 * half], &bits, 8);
    }
    return vector;
  }
  struct Shape {
    std::string_view name;
    size_t lane_bytes;
    bool floating;
  };
  static constexpr Shape kShapes[] = {{"i8x16:", 1, false}, {"i16x8:", 2, false}, {"i32x4:", 4, false},
                                      {"i64x2:", 8, false}, {"f32x4:", 4, true},  {"f64x2:", 8, true}};
  for (const Shape& shape : kShapes) {
    if (!text.starts_with(shape.name)) continue;
    text.remove_prefix(shape.name.size());
    for (size_t at = 0; at < 16; at += shape.lane_bytes) {
      const bool last = at + shape.lane_bytes == 16;
      const size_t comma = text.find(',');
      if ((comma == std::string_view::npos) != last) return std::nullopt;
      const std::string_view lane = text.substr(0, comma);
      uint64_t bits = 0;
      if (shape.floating && shape.lane_bytes == 4) {
        const auto number = parse_float<float>(lane, strtof);
        if (!number) return std::nullopt;
        bits = std::bit_cast<uint32_t>(*number);
      } else if (shape.floating) {
        const auto number = parse_float<double>(lane, strtod);
        if (!number) return std::nullopt;
        bits = std::bit_cast<uint64_t>(*number);
      } else {
        const auto number = parse_integer(lane, static_cast<uint32_t>(8 * shape.lane_bytes));
        if (!number) return std::nullopt;
        bits = *number;
      }
      std::memcpy(&vector.bytes[at], &bits, shape.lane_bytes);
      text.remove_prefix(last ? text.size() : comma + 1);
    }
    return vector;
  }
  return std::nullopt;
}

template <typename Float>
std::string float_text(Float value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  return fmt::format("{}", value);
}

}  // namespace

const char* kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kI32:
      return "i32";
    case ValueKind::kI64:
      return "i64";
    case ValueKind::kF32:
      return "f32";
    case ValueKind::kF64:
      return "f64";
    case ValueKind::kFuncRef:
      return "funcref";
    case ValueKind::kExternRef:
      return "externref";
    case ValueKind::kV128:
      return "v128";
    case ValueKind::kExnRef:
      return "exnref";
  }
  return "?";
}

std::string type_text(const FunctionType& type) {
  const auto list = [](const std::vector<ValueKind>& kinds) {
    std::vector<const char*> names;
    for (const ValueKind kind : kinds) names.push_back(kind_name(kind));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  const std::string results = list(type.results);
  if (type.results.size() == 1) return fmt::format("({}) -> {}", list(type.params), results);
  return fmt::format("({}) -> ({})", list(type.params), results);
}

Result<Value> parse_value(ValueKind kind, std::string_view text) {
  const auto bad = [&](const char* hint) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is no {}; {}", text, kind_name(kind), hint));
  };
  Value value;
  value.kind = kind;
  switch (kind) {
    case ValueKind::kI32:
    case ValueKind::kI64: {
      const uint32_t bits = kind == ValueKind::kI32 ? 32 : 64;
      const auto number = parse_integer(text, bits);
      if (!number) return bad("write a decimal or 0x hexadecimal number that fits");
      value.bits = bits == 32 ? static_cast<uint32_t>(*number) : *number;
      return value;
    }
    case ValueKind::kF32: {
      const auto number = parse_float<float>(text, strtof);
      if (!number) return bad("write a number such as 1.5, 2e-3, inf or nan");
      value.bits = std::bit_cast<uint32_t>(*number);
      return value;
    }
    case ValueKind::kF64: {
      const auto number = parse_float<double>(text, strtod);
      if (!number) return bad("write a number such as 1.5, 2e-3, inf or nan");
      value.bits = std::bit_cast<uint64_t>(*number);
      return value;
    }
    case ValueKind::kFuncRef:
    case ValueKind::kExnRef:
      if (text != "null") return bad("only null can be written here");
      return value;
    case ValueKind::kExternRef: {
      if (text == "null") return value;
      const auto number = parse_integer(text, 64);
      if (!number || *number == UINT64_MAX) return bad("write null or a number");
      value.bits = *number + 1;
      return value;
    }
    case ValueKind::kV128: {
      const auto vector = parse_vector(text);
      if (!vector)
        return bad("write lanes such as i32x4:1,2,3,4 or f64x2:0.5,nan, or 0x and 32 hexadecimal digits");
      return Value::v128(*vector);
    }
  }
  return bad("this kind cannot be written");
}

Result<std::vector<Value>> parse_arguments(std::string_view function, const FunctionType& type,
                                           std::span<const std::string> args) {
  if (args.size() != type.params.size()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} takes {} argument{} {}, {} given", function, type.params.size(),
                                  type.params.size() == 1 ? "" : "s", type_text(type), args.size()));
  }
  std::vector<Value> values;
  for (size_t k = 0; k < args.size(); ++k) {
    auto value = parse_value(type.params[k], args[k]);
    if (!value) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("argument {} of {}: {}", k + 1, function, value.error().message));
    }
    values.push_back(*value);
  }
  return values;
}

std::string value_text(const Value& value) {
  switch (value.kind) {
    case ValueKind::kI32:
      return fmt::format("{}", static_cast<int32_t>(value.bits));
    case ValueKind::kI64:
      return fmt::format("{}", static_cast<int64_t>(value.bits));
    case ValueKind::kF32:
      return float_text(std::bit_cast<float>(static_cast<uint32_t>(value.bits)));
    case ValueKind::kF64:
      return float_text(std::bit_cast<double>(value.bits));
    case ValueKind::kFuncRef:
    case ValueKind::kExnRef:
      return value.bits == 0 ? "null" : "ref";
    case ValueKind::kExternRef:
      return value.bits == 0 ? "null" : fmt::format("{}", value.bits - 1);
    case ValueKind::kV128:
      return fmt::format("i32x4:0x{:08x},0x{:08x},0x{:08x},0x{:08x}", static_cast<uint32_t>(value.bits),
                         value.bits >> 32, static_cast<uint32_t>(value.high), value.high >> 32);
  }
  return "?";
}

}  // namespace hindsight::cli
