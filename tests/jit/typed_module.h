// Modules with typed function references from text, which hindsight's own text format has no words for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "jit/wasm/module.h"
#include "tests/spec/wat_assembler.h"

namespace hindsight::jit::testing {

inline std::shared_ptr<const wasm::Module> typed_module(std::string_view wat) {
  const std::string bytes = spec::assemble_module(wat);
  auto module = wasm::decode_module(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
                                    "typed.wat");
  EXPECT_TRUE(module) << (module ? "" : module.error().describe());
  return module ? *module : nullptr;
}

}  // namespace hindsight::jit::testing
