// Functions that are hard to compile, in every tier: they run, with the same results.
#include <pthread.h>

#include <functional>
#include <string>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

// v = (v << k) ^ memory[8 * i], so many times.
std::string chain_of_shifts(int operations) {
  std::string text = R"((module (memory 2)
    (func (export "fill") (local i32)
      (loop (i64.store (local.get 0) (i64.extend_i32_u (i32.mul (local.get 0) (i32.const 2654435769))))
        (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 8))) (i32.const 131072)))))
    (func (export "down") (result i64) (local i64)
)";
  for (int i = 0; i < operations; ++i)
    text += "(local.set 0 (i64.xor (i64.shl (local.get 0) (i64.const " + std::to_string(i % 7 + 1) +
            ")) (i64.load offset=" + std::to_string(8 * (i % 16000)) + " (i32.const 0))))\n";
  return text + "(local.get 0)))";
}

// On a thread with as little stack as hosts give.
void on_a_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kAddressSanitizer || kThreadSanitizer ? 4 << 20 : 512 << 10);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(HostileCompiles, OfALongChainLeaveTheGuestsStackAlone) {
  const std::string text = chain_of_shifts(6000);
  std::vector<int64_t> results;
  for (const TierMode tier : {TierMode::kBaseline, TierMode::kOptimized, TierMode::kAuto}) {
    auto engine = make_engine({"", tier});
    Linker linker(*engine);
    auto instance = instantiate(linker, *engine, text);
    on_a_small_stack([&] {
      EXPECT_TRUE(instance->call("fill", {}));
      const int times = tier == TierMode::kAuto ? 2000 : 1;
      for (int i = 0; i < times; ++i) {
        auto result = instance->call("down", {});
        ASSERT_TRUE(result) << result.error().describe();
        if (i == 0) results.push_back((*result)[0].as_i64());
        ASSERT_EQ((*result)[0].as_i64(), results[0]);
      }
    });
    engine->wait_for_compiles();
  }
}

// Whoever reads a report sees what the optimizing tier gave no code of, out of how many, and why.
TEST(HostileCompiles, ThatGiveNoCodeStandInTheReport) {
  EngineConfig config;
  config.tier = TierMode::kOptimized;
  config.profiling = false;
  auto engine = Engine::create(config).value();
  Linker linker(*engine);
  auto instance = instantiate(linker, *engine, chain_of_shifts(20'000));
  ASSERT_TRUE(instance->call("fill", {}));
  ASSERT_TRUE(instance->call("down", {}));
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(report.functions_optimized, 1u);
  EXPECT_EQ(report.compiles_without_code.too_large, 1u);
  EXPECT_EQ(report.compiles_without_code.sum(), 1u);
  EXPECT_EQ(report.functions_left_in_baseline, 1u);
  ASSERT_EQ(report.left_in_baseline.size(), 1u);
  EXPECT_NE(report.left_in_baseline[0].reason.find("limit"), std::string::npos)
      << report.left_in_baseline[0].reason;
  const std::string text = report.to_string();
  EXPECT_NE(text.find("compiles without code: 1 of 2 (1 too large, 0 too slow"), std::string::npos) << text;
}

}  // namespace
}  // namespace hindsight
