// Tier auto with many threads and at its end. What these tests find, they find under the sanitizers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "feedback/profile/profile_file.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

std::shared_ptr<Engine> make_auto_engine(EngineConfig config) {
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  auto engine = Engine::create(std::move(config));
  EXPECT_TRUE(engine) << engine.error().describe();
  return engine ? *engine : nullptr;
}

std::string functions(uint32_t count) {
  std::string text = "(module";
  for (uint32_t i = 0; i < count; ++i)
    text += fmt::format("(func (export \"f{}\") (param i32) (result i32) local.get 0 i32.const {} i32.mul)",
                        i, i);
  return text + ")";
}

// As an earlier run would have saved it: every function was worth optimizing.
std::string profile_of(const Module& module, uint32_t count) {
  feedback::ModuleProfile profile;
  profile.hash_hex = module.content_hash_hex();
  for (uint32_t i = 0; i < count; ++i) {
    feedback::Episode episode;
    episode.id = i + 1;
    episode.evidence.function = FuncIndex(i);
    episode.action = "optimize";
    episode.state = "compiled";
    profile.episodes.push_back(std::move(episode));
  }
  std::string path = testing::TempDir() + "hindsight_auto_tiers_test.json";
  Status saved = feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, path);
  EXPECT_TRUE(saved) << saved.error().describe();
  return path;
}

TEST(AutomaticTiers, CompileWhatAProfileSaysBeforeTheGuestRuns) {
  constexpr uint32_t kFunctions = 3;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  auto engine = make_auto_engine(config);
  auto module = load(*engine, functions(kFunctions));
  engine->wait_for_compiles();
  EXPECT_EQ(engine->feedback_report().functions_optimized, kFunctions);
}

TEST(AutomaticTiers, EndWhileCompilesAreQueued) {
  constexpr uint32_t kFunctions = 24;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  for (int round = 0; round < 3; ++round) {
    auto engine = make_auto_engine(config);
    auto module = load(*engine, functions(kFunctions));
    // The engine's end must wait for the task that runs and for those that the arena has not begun.
  }
}

TEST(AutomaticTiers, CanBeLookedAtWhileGuestsRunAndModulesComeAndGo) {
  auto engine = make_auto_engine({});
  auto module = load(*engine, R"((module (memory 4)
    (func (export "run") (param $n i32) (result i32) (local $at i32) (local $sum i32)
      (loop $again
        (local.set $at (i32.and (i32.add (i32.mul (local.get $at) (i32.const 1103515245)) (i32.const 12345))
                                (i32.const 0x3fffc)))
        (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
        (i32.store (local.get $at) (local.get $n))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
      (local.get $sum))))");
  std::atomic<int> running{3};
  auto guest = [&] {
    Linker linker(*engine);
    auto instance = linker.instantiate(module).value();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(instance->call("run", std::array{Value::i32(2'000'000)}));
    --running;
  };
  std::thread first(guest), second(guest);
  std::thread loader([&] {
    for (uint32_t i = 0; i < 50; ++i) {
      Linker linker(*engine);
      auto short_lived = linker.instantiate(load(*engine, functions(1 + i % 3))).value();
      EXPECT_EQ(short_lived->call("f0", std::array{Value::i32(7)}).value()[0].as_i32(), 0);
    }
    --running;
  });
  while (running != 0) {
    FeedbackReport report = engine->feedback_report();
    EXPECT_LE(report.counts.attributed, report.counts.samples);
    std::this_thread::yield();
  }
  first.join();
  second.join();
  loader.join();
  engine->wait_for_compiles();
  EXPECT_GE(engine->feedback_report().functions_baseline, 2u);
}

}  // namespace
}  // namespace hindsight
