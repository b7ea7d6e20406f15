// Where the arguments of a wasm function are passed (see vm_context.h for the convention).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/wasm/types.h"

namespace hindsight::jit {

// Argument registers besides that of the context.
inline constexpr uint32_t kIntArgRegisters = 5;
inline constexpr uint32_t kFloatArgRegisters = 8;

struct ArgPlace {
  enum class Kind : uint8_t { kInt, kFloat, kThread };
  Kind kind = Kind::kInt;
  // By kind:
  // - kInt: 1..5 = rsi, rdx, rcx, r8, r9 (0 = rdi is the context).
  // - kFloat: xmm number.
  // - kThread: byte offset in ThreadState::arguments, 8 bytes each, a v128 16. They follow each other without
  //   gaps.
  uint32_t index = 0;
};

// Words of 8 bytes that a value takes among arguments and results in slots (jit/abi/trampolines.h) and in
// ThreadState::results. They follow each other without gaps.
constexpr uint32_t words_of(wasm::ValType type) {
  return type == wasm::ValType::kV128 ? 2 : 1;
}
uint32_t words_of(const std::vector<wasm::ValType>& types);
// How many slots a call of the type needs: its arguments or its results, whichever are more.
uint32_t call_words(const wasm::FuncType& type);

struct CallLayout {
  CallLayout() = default;
  explicit CallLayout(const wasm::FuncType& type) { assign(type); }
  void assign(const wasm::FuncType& type);  // keeps the memory of an earlier type
  std::vector<ArgPlace> params;
  uint32_t thread_bytes = 0;       // of ThreadState::arguments
  bool results_in_thread = false;  // two or more results
};

}  // namespace hindsight::jit
