// Where guests run out of stack. That is on threads with little of it, with frames larger than what is kept in
// reserve, and on stacks of the host's own.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/engine/hindsight.h"
#include "tests/runtime/engine/ending/fiber.h"

namespace hindsight {
namespace {

class Stacks : public testing::TestWithParam<TierMode> {
 protected:
  void SetUp() override {
#ifdef HINDSIGHT_SANITIZED
    GTEST_SKIP() << "sanitizers' frames are larger, and their stacks are the threads'";
#endif
  }
  std::shared_ptr<Instance> instance_of(const std::string& text) {
    EngineConfig config;
    config.tier = GetParam();
    config.profiling = GetParam() == TierMode::kAuto;
    engine_ = Engine::create(std::move(config)).value();
    linker_ = std::make_unique<Linker>(*engine_);
    if (define) define(*linker_);
    const auto module = engine_->load(std::as_bytes(std::span(text)), "stacks.wat");
    EXPECT_TRUE(module) << module.error().describe();
    return linker_->instantiate(module.value()).value();
  }
  std::function<void(Linker&)> define;

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Linker> linker_;
};
INSTANTIATE_TEST_SUITE_P(EveryTier, Stacks,
                         testing::Values(TierMode::kAuto, TierMode::kBaseline, TierMode::kOptimized),
                         [](const auto& t) {
                           return t.param == TierMode::kAuto       ? "Auto"
                                  : t.param == TierMode::kBaseline ? "Baseline"
                                                                   : "Optimized";
                         });

// "stack": the trap; else what came out.
std::string outcome(Instance& instance, const char* name, std::span<const Value> args) {
  const auto results = instance.call(name, args);
  if (results) return std::to_string((*results)[0].as_i32());
  return instance.last_trap() != nullptr && instance.last_trap()->name == "call stack exhausted"
             ? "stack"
             : results.error().describe();
}

void on_thread(size_t stack_bytes, std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Loads `vectors` of 16 bytes, calls itself, and stores them again: all of them are in its frame meanwhile.
std::string with_frame(uint32_t vectors) {
  std::string text = "(module (memory 8) (func $f (export \"f\") (param $n i32) (result i32)";
  for (uint32_t i = 0; i < vectors; i++) text += " (local $v" + std::to_string(i) + " v128)";
  for (uint32_t i = 0; i < vectors; i++)
    text += " (local.set $v" + std::to_string(i) + " (v128.load offset=" + std::to_string(16 * i) +
            " (local.get $n)))";
  text += " (if (local.get $n) (then (drop (call $f (i32.sub (local.get $n) (i32.const 1))))))";
  for (uint32_t i = 0; i < vectors; i++)
    text += " (v128.store offset=" + std::to_string(200'000 + 16 * i) + " (local.get $n) (local.get $v" +
            std::to_string(i) + "))";
  return text + " (local.get $n)))";
}

TEST_P(Stacks, FramesLargerThanTheReserveOfASmallThreadEndInATrap) {
  // 34 KiB.
  const auto instance = instance_of(with_frame(2200));
  // Compiled where there is room for the compiler.
  ASSERT_EQ(outcome(*instance, "f", std::array{Value::i32(0)}), "0");
  for (const size_t kib : {128, 144, 160, 192, 256})
    on_thread(kib << 10, [&] { EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(100)}), "stack"); });
  on_thread(512 << 10, [&] { EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(1)}), "1"); });
}

TEST_P(Stacks, FramesOfAnySizeEndInATrapOnThreadsOfAnySize) {
  for (const uint32_t vectors : {50u, 500u, 1200u}) {
    const auto instance = instance_of(with_frame(vectors));
    ASSERT_EQ(outcome(*instance, "f", std::array{Value::i32(0)}), "0");
    for (const size_t kib : {128, 192, 320, 512})
      on_thread(kib << 10, [&] {
        EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(16'000)}), "stack")
            << vectors << " on " << kib;
      });
  }
}

constexpr const char* kRecursion = R"((module
  (import "host" "call" (func $host (param i32) (result i32)))
  (memory 1)
  (tag $e (param i32))
  (func $f (export "f") (param $n i32) (result i32)
    (if (result i32) (i32.eqz (local.get $n)) (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $f (i32.sub (local.get $n) (i32.const 1)))))))
  (func $throw (param i32) (throw $e (local.get 0)))
  (func (export "caught") (param i32) (result i32)
    (try (result i32) (do (call $throw (local.get 0)) (i32.const -1)) (catch $e)))
  (func (export "out") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "nest") (param i32) (result i32) (call $host (local.get 0)))))";

TEST_P(Stacks, RecursionOnAStackOfTheHostsOwnEndsInATrap) {
  define = [](Linker& linker) { linker.define_function("host", "call", [](int32_t n) { return n; }); };
  const auto instance = instance_of(kRecursion);
  ASSERT_EQ(outcome(*instance, "f", std::array{Value::i32(100)}), "100");
  for (const size_t kib : {256, 192, 1024}) {
    const GuardedStack stack(kib << 10);
    // What a level takes of the stack is the version's business: some 130 bytes are left for it on the smallest one.
    for (int i = 0; i < 3; i++)
      run_on(stack, [&] {
        EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(500)}), "500");
        EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(1'000'000)}), "stack");
      });
    on_thread(size_t{1} << 20, [&] {
      run_on(stack, [&] { EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(1'000'000)}), "stack"); });
      EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(1000)}), "1000");
    });
  }
  // The thread's own is as it was.
  EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(3000)}), "3000");
  EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(1'000'000)}), "stack");
}

TEST_P(Stacks, ExceptionsAndBacktracesWorkOnAStackOfTheHostsOwn) {
  define = [](Linker& linker) { linker.define_function("host", "call", [](int32_t n) { return n; }); };
  const auto instance = instance_of(kRecursion);
  const GuardedStack stack(256 << 10);
  run_on(stack, [&] {
    EXPECT_EQ(outcome(*instance, "caught", std::array{Value::i32(7)}), "7");
    EXPECT_FALSE(instance->call("out", std::array{Value::i32(70'000)}));
    ASSERT_NE(instance->last_trap(), nullptr);
    EXPECT_EQ(instance->last_trap()->backtrace.size(), 1u);
  });
}

TEST_P(Stacks, AGuestOnOneStackMayBeNestedInAGuestOnAnother) {
  Instance* instance = nullptr;
  const GuardedStack stack(256 << 10);
  define = [&](Linker& linker) {
    linker.define_function("host", "call", [&](int32_t n) {
      std::string nested;
      run_on(stack, [&] { nested = outcome(*instance, "f", std::array{Value::i32(1'000'000)}); });
      EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(n)}), std::to_string(n));
      return nested == "stack" ? n : -1;
    });
  };
  const auto made = instance_of(kRecursion);
  instance = made.get();
  for (int i = 0; i < 3; i++) EXPECT_EQ(outcome(*instance, "nest", std::array{Value::i32(1000)}), "1000");
  EXPECT_EQ(outcome(*instance, "f", std::array{Value::i32(3000)}), "3000");
}

}  // namespace
}  // namespace hindsight
