// Modules from text.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "jit/wasm/module.h"

namespace hindsight::jit::testing {

inline std::shared_ptr<const wasm::Module> typed_module(std::string_view wat) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(wat.data());
  auto module = wasm::read_module({bytes, wat.size()}, "typed.wat");
  EXPECT_TRUE(module) << (module ? "" : module.error().describe());
  return module ? *module : nullptr;
}

}  // namespace hindsight::jit::testing
