#include "runtime/instance/exception_heap.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

#include "jit/abi/call_layout.h"

namespace hindsight::rt {
namespace {

bool is_small(wasm::ValType type) {
  return type == wasm::ValType::kI32 || type == wasm::ValType::kF32;
}

}  // namespace

ExceptionHeap::~ExceptionHeap() {
  for (jit::ExceptionRecord* exception : exceptions_) destroy(exception);
}

void ExceptionHeap::destroy(jit::ExceptionRecord* exception) {
  delete &info_of(*exception);
  ::operator delete (exception, std::align_val_t{alignof(jit::ExceptionRecord)});
}

jit::ExceptionRecord* ExceptionHeap::make(const Tag& tag, const uint64_t* values) {
  if (is_beyond_limit()) return nullptr;
  const size_t count = jit::words_of(tag.type.params);
  const size_t bytes = sizeof(jit::ExceptionRecord) + sizeof(uint64_t) * count;
  exceptions_.push_back(nullptr);  // room for it; what throws leaves no trace
  void* const memory = ::operator new (bytes, std::align_val_t{alignof(jit::ExceptionRecord)}, std::nothrow);
  auto* const info = new (std::nothrow) ExceptionInfo;
  if (memory == nullptr || info == nullptr) {
    ::operator delete (memory, std::align_val_t{alignof(jit::ExceptionRecord)});
    delete info;
    exceptions_.pop_back();
    return nullptr;
  }
  info->bytes = static_cast<uint32_t>(bytes);
  info->words = static_cast<uint32_t>(count);
  auto* const exception = new (memory) jit::ExceptionRecord{&tag, info};
  uint64_t* to = jit::exception_values(exception);
  for (const wasm::ValType type : tag.type.params) {
    for (uint32_t i = 0; i < jit::words_of(type); ++i) *to++ = *values++;
    if (is_small(type)) to[-1] = static_cast<uint32_t>(to[-1]);
  }
  exceptions_.back() = exception;
  made_bytes_ += info->total_bytes();
  return exception;
}

void ExceptionHeap::begin_marking() {
  std::sort(exceptions_.begin(), exceptions_.end(), std::less<>());
  for (jit::ExceptionRecord* exception : exceptions_) info_of(*exception).marked = false;
  marked_.clear();
  ++collections_;
}

// Pointers into an exception count, too: a compiler may keep one instead of the exception's own address.
void ExceptionHeap::mark(uint64_t word) {
  if (exceptions_.empty()) return;
  const auto first = reinterpret_cast<uintptr_t>(exceptions_.front());
  const auto last = reinterpret_cast<uintptr_t>(exceptions_.back());
  if (word < first || word >= last + info_of(*exceptions_.back()).bytes) return;
  const auto above = std::upper_bound(
      exceptions_.begin(), exceptions_.end(), word,
      [](uint64_t w, const jit::ExceptionRecord* e) { return w < reinterpret_cast<uintptr_t>(e); });
  jit::ExceptionRecord* const exception = *(above - 1);  // `word` is not below the first
  ExceptionInfo& info = info_of(*exception);
  if (info.marked || word >= reinterpret_cast<uintptr_t>(exception) + info.bytes) return;
  info.marked = true;
  marked_.push_back(exception);
}

void ExceptionHeap::finish_marking() {
  while (!marked_.empty()) {
    jit::ExceptionRecord* const exception = marked_.back();
    marked_.pop_back();
    mark(std::span<const uint64_t>(jit::exception_values(exception), info_of(*exception).words));
  }
  made_bytes_ = 0;
  kept_bytes_ = 0;
  std::erase_if(exceptions_, [this](jit::ExceptionRecord* exception) {
    const ExceptionInfo& info = info_of(*exception);
    if (info.marked) {
      kept_bytes_ += info.total_bytes();
      return false;
    }
    destroy(exception);
    return true;
  });
}

}  // namespace hindsight::rt
