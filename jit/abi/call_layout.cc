#include "jit/abi/call_layout.h"

namespace hindsight::jit {

CallLayout::CallLayout(const wasm::FuncType& type) : results_in_thread(type.results.size() >= 2) {
  uint32_t ints = 0;
  uint32_t floats = 0;
  params.reserve(type.params.size());
  for (const wasm::ValType param : type.params) {
    if (wasm::is_float(param) && floats < kFloatArgRegisters) {
      params.push_back({ArgPlace::Kind::kFloat, floats++});
    } else if (!wasm::is_float(param) && ints < kIntArgRegisters) {
      params.push_back({ArgPlace::Kind::kInt, ++ints});
    } else {
      params.push_back({ArgPlace::Kind::kThread, thread_bytes});
      thread_bytes += 8;
    }
  }
}

}  // namespace hindsight::jit
