// Where the System V AMD64 convention puts the arguments of a wasm function (see vm_context.h for the
// convention).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/wasm/types.h"

namespace hindsight::jit {

struct ArgPlace {
  enum class Kind : uint8_t { kInt, kFloat, kStack };
  Kind kind = Kind::kInt;
  // kInt: 1..5 = rsi, rdx, rcx, r8, r9 (0 = rdi is the context); kFloat: xmm number;
  // kStack: byte offset from rsp at the call instruction (before the return address is pushed), 8 bytes each.
  uint32_t index = 0;
};

struct CallLayout {
  explicit CallLayout(const wasm::FuncType& type);
  std::vector<ArgPlace> params;
  uint32_t stack_bytes = 0;        // outgoing argument area, a multiple of 16
  bool results_in_thread = false;  // two or more results
};

}  // namespace hindsight::jit
