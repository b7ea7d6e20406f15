// What asks for as much as it can gets no more than it may. That is a native stack of a few MiB, the passes that a
// function of its size gets, and, as a last resort, no code. Nothing here depends on how fast the machine is.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "jit/optimizing/optimizer.h"
#include "tests/jit/growth/shapes.h"
#include "tests/sanitizers.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace hindsight::jit::testing {
namespace {

// Runs `work` on a thread of its own; how much of its stack was written to.
size_t stack_used_by(const std::function<void()>& work) {
  constexpr size_t kBytes = size_t{256} << 20;
  void* const stack =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(stack, MAP_FAILED);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kBytes);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto* const words = static_cast<const uint64_t*>(stack);
  const size_t count = kBytes / sizeof(uint64_t);
  const size_t untouched =
      static_cast<size_t>(std::find_if(words, words + count, [](uint64_t w) { return w != 0; }) - words);
  munmap(stack, kBytes);
  return kBytes - untouched * sizeof(uint64_t);
}

struct Subject {
  std::unique_ptr<CodeArena> arena;
  OptimizeRequest request;
};

Subject subject_of(const wasm::testing::Bytes& bytes) {
  Subject subject;
  auto arena = CodeArena::create(size_t{64} << 20);
  auto module = wasm::decode_module(bytes, "hostile");
  EXPECT_TRUE(arena) << arena.error().describe();
  EXPECT_TRUE(module) << module.error().describe();
  subject.arena = std::move(*arena);
  subject.request.module = *module;
  subject.request.function = FuncIndex((*module)->function_count() - 1);
  return subject;
}

Result<OptimizeResult> compile(const Subject& subject) {
  static Optimizer* const optimizer = hindsight_create_optimizer();
  return optimizer->compile(subject.request, *subject.arena);
}

Shape shape(const std::string& name) {
  for (Shape& one : hostile_shapes())
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return {};
}

class Hostile : public ::testing::TestWithParam<Shape> {};
TEST_P(Hostile, CodeTakesLittleStackAndEndsInCodeOrAReason) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "the stack is that of the sanitizer";
  const Subject subject = subject_of(GetParam().make(GetParam().optimized));
  const size_t used = stack_used_by([&] {
    const auto result = compile(subject);
    if (result) return;
    EXPECT_EQ(result.error().kind, ErrorKind::kResource);
    const std::string& words = result.error().message;
    EXPECT_TRUE(words.find("limit") != std::string::npos || words.find("abandoned") != std::string::npos)
        << words;
  });
  RecordProperty("stack_bytes", std::to_string(used));
  EXPECT_LT(used, size_t{8} << 20);  // half of the smallest stack that compile threads have
}
INSTANTIATE_TEST_SUITE_P(Growth, Hostile, ::testing::ValuesIn(hostile_shapes()),
                         [](const auto& info) { return info.param.name; });

TEST(PassLimits, ApplyToPassesOverFunctionsToo) {
  const Subject subject = subject_of(shape("ChainOfXorAndAdd").make(11'000));
  const auto result = compile(subject);
  ASSERT_TRUE(result) << result.error().describe();
  // One of LLVM's passes, and one of code generation.
  EXPECT_NE(result->left_out.find("NumberValuesPass"), std::string::npos) << result->left_out;
  EXPECT_NE(result->left_out.find("Live Range Shrink"), std::string::npos) << result->left_out;
}

TEST(Compiling, IsAbandonedWhereverItIsAndNeverChangesItsCode) {
  Subject subject = subject_of(shape("FourChainsThroughEachOther").make(150));
  const auto whole = compile(subject);
  ASSERT_TRUE(whole) << whole.error().describe();
  const CodeVersion& version = *whole->version;
  // Wherever it is: at forty places of its own time, code generation among them, and some way beyond.
  const double most = 2 * version.compile_seconds;
  clockid_t own_clock{};
  ASSERT_EQ(pthread_getcpuclockid(pthread_self(), &own_clock), 0);
  const auto seconds = [own_clock] {
    timespec now{};
    clock_gettime(own_clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  for (int step = 1; step <= 40; ++step) {
    // Relaxed: nothing is published by them.
    std::atomic<bool> abandoned{false}, over{false};
    subject.request.abandoned = &abandoned;
    const double until = seconds() + most * step / 40;
    std::thread impatient([&] {
      while (seconds() < until && !over.load(std::memory_order_relaxed)) std::this_thread::yield();
      abandoned.store(true, std::memory_order_relaxed);
    });
    const auto result = compile(subject);
    over.store(true, std::memory_order_relaxed);
    impatient.join();
    if (result) {
      EXPECT_EQ(result->version->code_size.value, version.code_size.value);
    } else {
      EXPECT_EQ(result.error().kind, ErrorKind::kResource);
    }
  }
}

TEST(Compiling, ForNobodyIsNotBegun) {
  Subject subject = subject_of(shape("FourChainsThroughEachOther").make(20));
  const std::atomic<bool> abandoned{true};
  subject.request.abandoned = &abandoned;
  const auto result = compile(subject);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("nobody waits"), std::string::npos) << result.error().message;
}

// A compile of something large with meters that say what the test wants, from the nth look on. Each look is between two passes.
struct Measured {
  Subject subject = subject_of(shape("FourChainsThroughEachOther").make(150));
  int looks_at_time = 0, looks_at_memory = 0;
  CompileMeters meters{.thread_seconds = [this] { return late(++looks_at_time); },
                       .free_memory = [this] { return left(++looks_at_memory); }};
  std::function<double(int)> late = [](int) { return 0.0; };
  std::function<uint64_t(int)> left = [](int) { return UINT64_MAX; };
  NoCode why = NoCode::kDefect;

  Result<OptimizeResult> run() {
    subject.request.meters = &meters;
    subject.request.no_code = &why;
    return compile(subject);
  }
};

TEST(CompileBudget, EndsACompileThatTakesMoreTimeThanItsFunctionMay) {
  Measured measured;
  measured.late = [](int look) { return look < 3 ? 0.0 : 1000.0; };
  const auto result = measured.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kResource);
  EXPECT_NE(result.error().message.find("of CPU time"), std::string::npos) << result.error().message;
  EXPECT_EQ(measured.why, NoCode::kTooSlow);
  EXPECT_EQ(measured.looks_at_time, 3) << "it went on after that";
}

TEST(CompileBudget, BeginsAndGoesOnOnlyWhereThereIsMemory) {
  for (const int look : {1, 2, 3}) {
    Measured measured;
    measured.left = [look](int now) { return now < look ? UINT64_MAX : uint64_t{1} << 20; };
    const auto result = measured.run();
    ASSERT_FALSE(result) << look;
    EXPECT_EQ(result.error().kind, ErrorKind::kResource);
    EXPECT_NE(result.error().message.find("too little memory is left to compile it: 1 MiB"),
              std::string::npos)
        << result.error().message;
    EXPECT_EQ(measured.why, NoCode::kNoMemory);
    EXPECT_EQ(measured.looks_at_memory, look);
  }
}

// As an engine that ends does: the flag is set by somebody else in the middle, and seen at the next look.
TEST(CompileBudget, EndsACompileThatNobodyWaitsForAtTheNextLook) {
  Measured measured;
  std::atomic<bool> abandoned{false};
  measured.subject.request.abandoned = &abandoned;
  measured.late = [&](int look) {
    if (look == 3) abandoned.store(true, std::memory_order_relaxed);
    return 0.0;
  };
  const auto result = measured.run();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("nobody waits"), std::string::npos) << result.error().message;
  EXPECT_EQ(measured.why, NoCode::kAbandoned);
  EXPECT_EQ(measured.looks_at_time, 3);
}

uint64_t address_space_in_use() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// In a process of its own, whose allocations fail somewhere in the middle of compiles: each ends, and others go on.
TEST(CompileBudget, AnAllocationThatFailsEndsThatCompileAlone) {
  if (kAddressSanitizer || kThreadSanitizer)
    GTEST_SKIP() << "shadow memory is larger than any limit of addresses";
  const pid_t child = fork();
  if (child == 0) {
    const Subject small = subject_of(shape("FourChainsThroughEachOther").make(5));
    const auto first = compile(small);
    if (!first) _exit(2);
    malloc_trim(0);
    int without_memory = 0;
    for (const uint64_t mebibytes : {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      Measured measured;
      const uint64_t most = address_space_in_use() + (mebibytes << 20);
      const rlimit limit{most, RLIM_INFINITY}, none{RLIM_INFINITY, RLIM_INFINITY};
      if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
      const auto result = measured.run();
      if (setrlimit(RLIMIT_AS, &none) != 0) _exit(4);
      if (!result && result.error().kind != ErrorKind::kResource) _exit(5);
      if (!result && measured.why == NoCode::kNoMemory) ++without_memory;
    }
    const auto again = compile(small);
    if (!again || again->version->code_size != first->version->code_size) _exit(6);
    _exit(without_memory == 0 ? 7 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 7)
    GTEST_SKIP() << "what tests before this one have freed was enough for all of it";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hindsight::jit::testing
