// A module of one function that is nearly nothing, for records to be attributed to.
#pragma once

#include <memory>

#include "jit/wasm/module.h"

namespace hindsight::feedback::testing {

// The function's body is [10, 100): nops, and an instruction of three bytes at 20.
inline std::shared_ptr<const wasm::Module> module_with(uint8_t opcode) {
  auto made = std::make_shared<wasm::Module>();
  made->name = "test";
  made->types.push_back({});
  made->functions.push_back(TypeIndex(0));
  wasm::FunctionBody body;
  body.begin = WasmOffset(10);
  body.end = WasmOffset(100);
  made->bodies.push_back(body);
  made->bytes.assign(100, 0x01);
  made->bytes[20] = opcode;
  made->bytes[21] = 0x02;
  made->bytes[22] = 0x00;
  made->bytes[99] = 0x0b;
  return made;
}

}  // namespace hindsight::feedback::testing
