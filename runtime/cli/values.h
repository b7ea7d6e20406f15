// WebAssembly values as people write them on a command line, and as they are printed back.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/hindsight.h"

namespace hindsight::cli {

const char* kind_name(ValueKind kind);
// "(i32, f64) -> i64"
std::string type_text(const FunctionType& type);

// i32 and i64: decimal or 0x hexadecimal, signed or unsigned as long as it fits. f32 and f64: decimal,
// hexadecimal float, inf, nan. References: "null" alone (externref also a number). v128: its lanes,
// "i32x4:1,2,3,4", or "0x" and 32 digits. Errors: kUsage.
Result<Value> parse_value(ValueKind kind, std::string_view text);
Result<std::vector<Value>> parse_arguments(std::string_view function, const FunctionType& type,
                                           std::span<const std::string> args);

// Integers are signed, and floats have as many digits as tell them apart. References are "null" or "ref".
// v128 is four hexadecimal words, in the form that parse_value reads.
std::string value_text(const Value& value);

}  // namespace hindsight::cli
