// One text module to binary: what wast_assembler.h needs, and tests of what hindsight's own text format, which
// is wabt's, has no words for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/spec/s_expression.h"

namespace hindsight::spec {

// The bytes of a module in text. Throws std::runtime_error for what it does not know.
std::string assemble_module(std::string_view text);
// `module` is a list that begins with `module`. Throws std::runtime_error for what it does not know.
std::string assemble_module(const Node& module);

// The bit pattern of a number, which may have underscores and be hexadecimal. `type`: i32, i64, f32, f64.
uint64_t number_bits(const std::string& type, const std::string& text);

}  // namespace hindsight::spec
