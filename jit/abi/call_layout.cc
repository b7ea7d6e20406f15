#include "jit/abi/call_layout.h"

#include <algorithm>

namespace hindsight::jit {

uint32_t words_of(const std::vector<wasm::ValType>& types) {
  uint32_t words = 0;
  for (const wasm::ValType type : types) words += words_of(type);
  return words;
}

uint32_t call_words(const wasm::FuncType& type) {
  return std::max(words_of(type.params), words_of(type.results));
}

void CallLayout::assign(const wasm::FuncType& type) {
  uint32_t ints = 0;
  uint32_t floats = 0;
  results_in_thread = type.results.size() >= 2;
  thread_bytes = 0;
  params.clear();
  params.reserve(type.params.size());
  for (const wasm::ValType param : type.params) {
    const bool vector = wasm::in_vector_register(param);
    if (vector && floats < kFloatArgRegisters) {
      params.push_back({ArgPlace::Kind::kFloat, floats++});
    } else if (!vector && ints < kIntArgRegisters) {
      params.push_back({ArgPlace::Kind::kInt, ++ints});
    } else {
      params.push_back({ArgPlace::Kind::kThread, thread_bytes});
      thread_bytes += 8 * words_of(param);
    }
  }
}

}  // namespace hindsight::jit
