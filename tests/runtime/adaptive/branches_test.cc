// Branches in another form: kept where that pays, taken back where it does not.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/engine/engine_for_tests.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using ::testing::HasSubstr;

// Copies the numbers of those of 65,536 words that are under a limit: too many for a predictor to know by
// heart.
constexpr const char* kBranchFilter = R"((module (memory 16)
  (func (export "filter") (param $limit i32) (param $times i32) (result i32) (local $i i32) (local $count i32)
    (loop $again
      (local.set $count (i32.const 0))
      (local.set $i (i32.const 0))
      (loop $l
        (if (i32.lt_u (i32.load (i32.shl (local.get $i) (i32.const 2))) (local.get $limit)) (then
          (i32.store offset=262144 (i32.shl (local.get $count) (i32.const 2)) (local.get $i))
          (local.set $count (i32.add (local.get $count) (i32.const 1)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 65536))))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (local.get $count))
  (func (export "fill") (local $i i32) (local $x i32)
    (local.set $x (i32.const 12345))
    (loop $l
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $x))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 65536)))))))";

class Branches : public ::testing::Test {
 protected:
  // With a profile by which every second toss of the filter's coin is mispredicted.
  void SetUp() override {
    const auto bytes = wasm::assemble_text(kBranchFilter, "guest");
    ASSERT_TRUE(bytes);
    constexpr uint8_t kIf = 0x04, kNoResult = 0x40;
    constexpr std::array<uint8_t, 2> kBranch = {kIf, kNoResult};
    branch_ = static_cast<uint32_t>(
        std::search(bytes->begin(), bytes->end(), kBranch.begin(), kBranch.end()) - bytes->begin());
    feedback::Episode episode;
    episode.id = 1;
    episode.evidence.function = FuncIndex(0);
    episode.evidence.seconds_baseline = 1;
    episode.evidence.branches = {{WasmOffset(branch_), 40, 20, 4096, 2048, 4000, 1900}};
    episode.action = "optimize";
    episode.state = DecisionState::kCompiled;
    feedback::ModuleProfile profile;
    profile.hash_hex = load(*make_engine(), kBranchFilter)->content_hash_hex();
    profile.episodes = {episode};
    config_.profile_in = testing::TempDir() + "hindsight_branches_" +
                         testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
    ASSERT_TRUE(feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, config_.profile_in));
    config_.tier = TierMode::kAuto;
    config_.compile_threads = 1;
  }
  static DecisionReport decision(const Engine& engine, std::string_view kind) {
    for (const DecisionReport& report : engine.feedback_report().decisions)
      if (report.kind == kind) return report;
    return {};
  }
  // Calls until the select's trial came to an end; its decision.
  DecisionReport run(Engine& engine, uint32_t limit) {
    auto module = load(engine, kBranchFilter);
    engine.wait_for_compiles();
    Linker linker(engine);
    auto instance = linker.instantiate(module).value();
    EXPECT_TRUE(instance->call("fill", {}));
    const auto expected =
        instance->call("filter", std::array{Value::i32(limit), Value::i32(1)}).value()[0].as_i32();
    DecisionReport report;
    for (const Patience patience; patience.lasts() && report.state != DecisionState::kKept &&
                                  report.state != DecisionState::kRolledBack;) {
      const auto got = instance->call("filter", std::array{Value::i32(limit), Value::i32(2)});
      EXPECT_EQ(got.value()[0].as_i32(), expected);
      report = decision(engine, "select");
    }
    engine.wait_for_compiles();
    EXPECT_EQ(instance->call("filter", std::array{Value::i32(limit), Value::i32(3)}).value()[0].as_i32(),
              expected);
    return report;
  }

  EngineConfig config_;
  uint32_t branch_ = 0;
};

// Whether it pays is the processor's business: some learn data of this size by heart. So it is said here.
TEST_F(Branches, ThatAreATossOfACoinAreSelectsWhereThatPays) {
  auto engine = create_engine_for_tests(config_, {.trial_bias = 2}).value();
  const DecisionReport select = run(*engine, 1u << 31);
  EXPECT_EQ(select.state, DecisionState::kKept) << select.outcome;
  EXPECT_EQ(select.wasm_offset, branch_);
  EXPECT_NEAR(select.measured_gain, 1, 0.01);
  EXPECT_THAT(select.reason, HasSubstr("was mispredicted in 1900 of 4000 executions"));
  EXPECT_THAT(select.outcome, HasSubstr("ticks an iteration"));
  EXPECT_EQ(decision(*engine, "weigh-branches").kind, "weigh-branches");
}

TEST_F(Branches, AreBranchesAgainWhereASelectGivesNothing) {
  for (const double bias : {1.0, 0.5}) {
    auto engine = create_engine_for_tests(config_, {.trial_bias = bias}).value();
    const DecisionReport select = run(*engine, 0);
    EXPECT_EQ(select.state, DecisionState::kRolledBack) << select.outcome;
    EXPECT_LE(select.measured_gain, 0.01);
  }
}

TEST_F(Branches, AreLeftAloneWhereThatIsSwitchedOff) {
  config_.disabled_decisions = {"select", "branch", "weigh-branches"};
  auto engine = Engine::create(config_).value();
  auto module = load(*engine, kBranchFilter);
  engine->wait_for_compiles();
  EXPECT_EQ(decision(*engine, "optimize").state, DecisionState::kCompiled);
  for (const char* kind : {"select", "branch", "weigh-branches"})
    EXPECT_EQ(decision(*engine, kind).kind, "") << kind;
}

}  // namespace
}  // namespace hindsight
