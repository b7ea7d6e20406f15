#include "tests/jit/growth/measure.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "jit/baseline/baseline_compiler.h"
#include "jit/optimizing/optimizer.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace {

// Bytes of this program's own allocations with new, what LLVM's library asks for included.
std::atomic<size_t> in_use{0}, peak{0};

// As the library's own: where there is no memory it asks the handler, which may end what goes on, and tries again.
template <typename Allocate>
void* counted(const Allocate& allocate) {
  void* memory = nullptr;
  while ((memory = allocate()) == nullptr) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  const size_t now = in_use += malloc_usable_size(memory);
  if (now > peak) peak = now;
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) {
  return counted([&] { return std::malloc(bytes); });
}
void* operator new[](size_t bytes) {
  return counted([&] { return std::malloc(bytes); });
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return counted([&] { return std::aligned_alloc(to, (bytes + to - 1) & ~(to - 1)); });
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace hindsight::jit::testing {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::kDecode:
      return "decode";
    case Stage::kBaseline:
      return "baseline";
    default:
      return "optimize";
  }
}

uint32_t size_of(const Shape& shape, Stage stage) {
  switch (stage) {
    case Stage::kDecode:
      return shape.decoded;
    case Stage::kBaseline:
      return shape.baseline;
    default:
      return shape.optimized;
  }
}

Measured measure(const wasm::testing::Bytes& bytes, Stage stage, int runs) {
  static Optimizer* const optimizer = hindsight_create_optimizer();
  // The heap keeps its pages from run to run. What the kernel takes to give them differs by a factor of ten between
  // machines, and does not grow as the work does.
  static const bool keeps_pages =
      mallopt(M_MMAP_THRESHOLD, 1 << 30) != 0 && mallopt(M_TRIM_THRESHOLD, 1 << 30) != 0;
  (void)keeps_pages;
  Measured least;
  least.wasm_bytes = bytes.size();
  least.seconds = 1e9;
  for (int run = 0; run < runs; ++run) {
    auto arena = CodeArena::create(size_t{1} << 30);
    if (!arena) {
      least.error = arena.error().describe();
      return least;
    }
    size_t code_bytes = 0;
    std::string error;
    const auto note = [&](const auto& result) {
      if (!result && error.empty()) error = result.error().describe();
      return bool(result);
    };
    size_t before = in_use;
    peak = before;
    double begin = thread_seconds();
    auto module = wasm::decode_module(bytes, "growth");
    if (note(module) && stage != Stage::kDecode) {
      before = in_use;
      peak = before;
      begin = thread_seconds();
      uint32_t f = (*module)->imported_functions;
      if (stage == Stage::kOptimize) f = std::max(f, (*module)->function_count() - 1);
      for (; f < (*module)->function_count(); ++f) {
        if (stage == Stage::kBaseline) {
          auto version = compile_baseline(**module, FuncIndex(f), {}, **arena);
          if (note(version)) code_bytes += (*version)->code_size.value;
        } else {
          OptimizeRequest request;
          request.module = *module;
          request.function = FuncIndex(f);
          for (uint32_t loop = 0; loop < std::min<size_t>(4, (*module)->body(FuncIndex(f)).loops.size());
               ++loop)
            request.osr_loops.push_back(LoopIndex(loop));
          request.time_passes = true;
          auto result = optimizer->compile(request, **arena);
          if (note(result)) {
            code_bytes += result->version->code_size.value;
            least.passes = std::move(result->passes);
            least.left_out = std::move(result->left_out);
          }
        }
      }
    }
    const double seconds = thread_seconds() - begin;
    least.seconds = std::min(least.seconds, seconds);
    least.peak_bytes = peak - before;
    least.code_bytes = code_bytes;
    least.error = error;
    if (seconds > 0.5) break;
  }
  return least;
}

}  // namespace hindsight::jit::testing
