// Loops that remember where they went, in a running engine. They are tried where they go the same way again,
// given up where they do not, and settled at the second start. The answers are the same all the time.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/engine/engine_for_tests.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using ::testing::HasSubstr;

// build(bits, order): a list of 2^bits nodes of 64 bytes, whose order depends on an odd number. walk(times):
// goes through it.
constexpr const char* kList = R"((module (memory 136) (global $head (mut i32) (i32.const 0))
  (func $node (param $i i32) (param $bits i32) (param $order i32) (result i32) (local $mask i32)
    (local.set $mask (i32.sub (i32.shl (i32.const 1) (local.get $bits)) (i32.const 1)))
    (local.set $i (i32.and (i32.mul (local.get $i) (local.get $order)) (local.get $mask)))
    (local.set $i (i32.xor (local.get $i) (i32.shr_u (local.get $i) (i32.const 5))))
    (local.set $i (i32.and (i32.mul (local.get $i) (i32.const 0x9e3779b1)) (local.get $mask)))
    (i32.add (i32.const 65536) (i32.shl (local.get $i) (i32.const 6))))
  (func (export "build") (param $bits i32) (param $order i32) (local $i i32) (local $at i32)
    (local.set $i (i32.shl (i32.const 1) (local.get $bits)))
    (global.set $head (i32.const 0))
    (loop $l
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (local.set $at (call $node (local.get $i) (local.get $bits) (local.get $order)))
      (i32.store (local.get $at) (global.get $head))
      (i32.store offset=8 (local.get $at) (local.get $i))
      (global.set $head (local.get $at))
      (br_if $l (local.get $i))))
  (func (export "walk") (param $times i32) (result i32) (local $p i32) (local $sum i32)
    (loop $again
      (local.set $p (global.get $head))
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
        (local.set $sum (i32.mul (i32.xor (local.get $sum) (i32.load offset=12 (local.get $p))) (i32.const 31)))
        (local.set $sum (i32.mul (i32.add (local.get $sum) (i32.load offset=16 (local.get $p))) (i32.const 37)))
        (local.set $sum (i32.mul (i32.xor (local.get $sum) (i32.load offset=20 (local.get $p))) (i32.const 41)))
        (br_if $l (local.tee $p (i32.load (local.get $p)))))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (local.get $sum))))";
constexpr uint32_t kWalk = 2;  // its index

uint32_t mixed(uint32_t sum, uint32_t value) {
  return (((sum + value) * 31) * 37) * 41;
}
int32_t sum_of_walks(uint32_t bits, uint32_t times) {
  uint32_t sum = 0;
  for (uint32_t t = 0; t < times; ++t)
    for (uint32_t i = 0; i < 1u << bits; ++i) sum = mixed(sum, i);
  return static_cast<int32_t>(sum);
}

class JumpPointers : public ::testing::Test {
 protected:
  // With a profile whose trial of the walk's first load had not ended.
  void SetUp() override {
    const auto bytes = wasm::assemble_text(kList, "guest");
    ASSERT_TRUE(bytes);
    constexpr std::array<uint8_t, 3> kLoad = {0x28, 0x02, 0x08};  // i32.load offset=8
    load_ = static_cast<uint32_t>(std::search(bytes->begin(), bytes->end(), kLoad.begin(), kLoad.end()) -
                                  bytes->begin());
    feedback::Episode episode;
    episode.id = 1;
    episode.evidence.function = FuncIndex(kWalk);
    episode.evidence.seconds_baseline = 1;
    episode.evidence.samples_baseline = 100;
    episode.evidence.loads.push_back({.load = WasmOffset(load_), .stall_samples = 80});
    episode.action = "optimize";
    episode.state = DecisionState::kCompiled;
    episode.outcomes.settle({jit::ChangeKind::kJumpPointers, WasmOffset(load_)},
                            {.state = feedback::ChangeState::kInTrial, .setting = 16});
    feedback::ModuleProfile profile;
    profile.hash_hex = load(*make_engine(), kList)->content_hash_hex();
    profile.episodes = {episode};
    config_.profile_in = file("in");
    ASSERT_TRUE(feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, config_.profile_in));
    config_.tier = TierMode::kAuto;
    config_.compile_threads = 1;
  }
  static std::string file(const std::string& name) {
    return testing::TempDir() + "hindsight_jump_" +
           testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name + ".json";
  }
  static DecisionReport decision(const Engine& engine, std::string_view kind = "jump-pointers") {
    for (const DecisionReport& report : engine.feedback_report().decisions)
      if (report.kind == kind) return report;
    return {};
  }
  static bool ended(const DecisionReport& report) {
    return report.state == DecisionState::kKept || report.state == DecisionState::kRolledBack;
  }
  std::shared_ptr<Instance> start(Engine& engine, uint32_t bits) {
    auto module = load(engine, kList);
    engine.wait_for_compiles();
    Linker linker(engine);
    auto instance = linker.instantiate(module).value();
    build(*instance, bits, 1);
    return instance;
  }
  static void build(Instance& instance, uint32_t bits, uint32_t order) {
    EXPECT_TRUE(instance.call("build", std::array{Value::i32(static_cast<int32_t>(bits)),
                                                  Value::i32(static_cast<int32_t>(order))}));
  }
  static int32_t walk(Instance& instance, int32_t times) {
    return instance.call("walk", std::array{Value::i32(times)}).value()[0].as_i32();
  }

  EngineConfig config_;
  uint32_t load_ = 0;
};

// Whether it pays is the processor's business, and so it is said here.
TEST_F(JumpPointers, AreTriedWhereALoopGoesTheSameWayAgain) {
  constexpr uint32_t kBits = 14;
  auto engine = create_engine_for_tests(config_, {.trial_bias = 2}).value();
  const auto instance = start(*engine, kBits);
  const int32_t expected = sum_of_walks(kBits, 2);
  DecisionReport report;
  for (const Patience patience; patience.lasts() && !ended(report);) {
    ASSERT_EQ(walk(*instance, 2), expected);
    report = decision(*engine);
  }
  EXPECT_EQ(report.state, DecisionState::kKept) << report.outcome;
  EXPECT_EQ(report.wasm_offset, load_);
  EXPECT_THAT(report.outcome, HasSubstr("ticks an iteration"));
  EXPECT_THAT(report.reason, HasSubstr("80 of 100 samples"));
  EXPECT_NEAR(report.measured_gain, 1, 0.01);
  engine->wait_for_compiles();
  EXPECT_EQ(walk(*instance, 2), expected);
}

TEST_F(JumpPointers, AreGivenUpWhereItNeverDoes) {
  constexpr uint32_t kBits = 14;
  auto engine = Engine::create(config_).value();
  const auto instance = start(*engine, kBits);
  const int32_t expected = sum_of_walks(kBits, 1);
  DecisionReport report;
  const Patience patience;
  for (uint32_t order = 3; patience.lasts() && !ended(report); order += 2) {
    build(*instance, kBits, order);
    ASSERT_EQ(walk(*instance, 1), expected);
    if (order % 64 == 1) report = decision(*engine);
  }
  EXPECT_EQ(report.state, DecisionState::kRolledBack);
  EXPECT_THAT(report.outcome, HasSubstr("no traversal repeated an earlier one"));
}

TEST_F(JumpPointers, AreNotThereWhereThatIsSwitchedOff) {
  config_.disabled_decisions = {"jump-pointers"};
  auto engine = Engine::create(config_).value();
  const auto instance = start(*engine, 10);
  EXPECT_EQ(decision(*engine, "optimize").state, DecisionState::kCompiled);
  EXPECT_EQ(decision(*engine).kind, "");
  EXPECT_EQ(walk(*instance, 3), sum_of_walks(10, 3));
}

TEST_F(JumpPointers, AreSettledAtTheNextStartWhereTheyWereKept) {
  feedback::ProfileFile known = feedback::load_profile(config_.profile_in).value();
  known.modules[0].episodes[0].outcomes.settle(
      {jit::ChangeKind::kJumpPointers, WasmOffset(load_)},
      {.state = feedback::ChangeState::kKept, .setting = 8, .gain = 2.5});
  ASSERT_TRUE(feedback::save_profile(known, config_.profile_in));
  config_.code_cache_directory = file("cache");
  std::filesystem::remove_all(config_.code_cache_directory);
  for (const bool from_cache : {false, true}) {
    auto engine = Engine::create(config_).value();
    {
      const auto instance = start(*engine, 10);
      const DecisionReport report = decision(*engine);
      EXPECT_EQ(report.state, DecisionState::kKept) << from_cache;
      if (!from_cache) {
        EXPECT_NEAR(report.measured_gain, 2.5, 1e-9);
      }
      EXPECT_EQ(walk(*instance, 3), sum_of_walks(10, 3));
      EXPECT_EQ(engine->feedback_report().functions_cached, from_cache ? 1u : 0u);
    }
  }
}

// One list each, walked at once by the same code: whoever has the history, the others go without.
TEST_F(JumpPointers, GiveThreadsTheAnswersThatTheyWouldGetWithout) {
  constexpr uint32_t kBits = 12;
  auto engine = Engine::create(config_).value();
  auto module = load(*engine, kList);
  engine->wait_for_compiles();
  const int32_t expected = sum_of_walks(kBits, 50);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Linker linker(*engine);
      auto instance = linker.instantiate(module).value();
      for (uint32_t round = 0; round < 8; ++round) {
        build(*instance, kBits, 2 * t + 1);
        EXPECT_EQ(walk(*instance, 50), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hindsight
