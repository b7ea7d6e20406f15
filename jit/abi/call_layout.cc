#include "jit/abi/call_layout.h"

namespace hindsight::jit {

CallLayout::CallLayout(const wasm::FuncType& type) : results_in_thread(type.results.size() >= 2) {
  constexpr uint32_t kIntRegisters = 5;  // rdi holds the context
  constexpr uint32_t kFloatRegisters = 8;
  uint32_t ints = 0;
  uint32_t floats = 0;
  uint32_t stack = 0;
  params.reserve(type.params.size());
  for (const wasm::ValType param : type.params) {
    if (wasm::is_float(param) && floats < kFloatRegisters) {
      params.push_back({ArgPlace::Kind::kFloat, floats++});
    } else if (!wasm::is_float(param) && ints < kIntRegisters) {
      params.push_back({ArgPlace::Kind::kInt, ++ints});
    } else {
      params.push_back({ArgPlace::Kind::kStack, stack});
      stack += 8;
    }
  }
  stack_bytes = (stack + 15) & ~15u;
}

}  // namespace hindsight::jit
