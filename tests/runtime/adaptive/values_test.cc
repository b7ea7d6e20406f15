// Code for usual operands: kept where that pays, taken back where it does not; and known at the next start.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "feedback/policy/policy.h"
#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/engine/engine_for_tests.h"
#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using ::testing::HasSubstr;

// Copies rows of so many bytes, over and over, and says what the last of them begins with.
constexpr const char* kPack = R"((module (memory 16)
  (func (export "pack") (param $bytes i32) (param $times i32) (result i32) (local $i i32) (local $to i32)
    (loop $again
      (local.set $i (i32.const 0))
      (local.set $to (i32.const 524288))
      (loop $l
        (memory.copy (local.get $to)
          (i32.and (i32.mul (local.get $i) (i32.const 1640531527)) (i32.const 0x7ff8)) (local.get $bytes))
        (local.set $to (i32.add (local.get $to) (local.get $bytes)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2000))))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (i32.load (i32.sub (local.get $to) (local.get $bytes))))
  (func (export "fill") (local $i i32)
    (loop $l
      (i32.store (local.get $i) (i32.mul (local.get $i) (i32.const 2654435761)))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 65536)))))))";

constexpr uint32_t kUsual = 24;

class Values : public ::testing::Test {
 protected:
  // With a profile by which every row is of that many bytes.
  void SetUp() override {
    const auto bytes = wasm::assemble_text(kPack, "guest");
    ASSERT_TRUE(bytes);
    constexpr std::array<uint8_t, 2> kMemoryCopy = {0xfc, 0x0a};
    copy_ = static_cast<uint32_t>(
        std::search(bytes->begin(), bytes->end(), kMemoryCopy.begin(), kMemoryCopy.end()) - bytes->begin());
    feedback::Episode episode;
    episode.id = 1;
    episode.evidence.function = FuncIndex(0);
    episode.evidence.seconds_baseline = 0.1;
    episode.evidence.values = {
        {WasmOffset(copy_), feedback::ValueSite::kByteCount, 500, {{kUsual, 490}, {8, 10}}}};
    episode.action = "optimize";
    episode.state = DecisionState::kCompiled;
    feedback::ModuleProfile profile;
    profile.hash_hex = load(*make_engine(), kPack)->content_hash_hex();
    profile.episodes = {episode};
    config_.profile_in = name("in");
    ASSERT_TRUE(feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, config_.profile_in));
    config_.tier = TierMode::kAuto;
    config_.compile_threads = 1;
  }
  static std::string name(const std::string& which) {
    return testing::TempDir() + "hindsight_values_" + std::to_string(::getpid()) + "_" + which + ".json";
  }
  static DecisionReport decision(const Engine& engine) {
    for (const DecisionReport& report : engine.feedback_report().decisions)
      if (report.kind == "values") return report;
    return {};
  }
  // Calls until the trial came to an end; its decision.
  static DecisionReport run(Engine& engine, uint32_t bytes) {
    auto module = load(engine, kPack);
    engine.wait_for_compiles();
    Linker linker(engine);
    auto instance = linker.instantiate(module).value();
    EXPECT_TRUE(instance->call("fill", {}));
    const auto pack = [&](uint32_t times) {
      return instance->call("pack", std::array{Value::i32(bytes), Value::i32(times)}).value()[0].as_i32();
    };
    const auto expected = static_cast<int32_t>(((1999u * 1640531527u) & 0x7ff8u) * 2654435761u);
    DecisionReport report;
    for (const Patience patience; patience.lasts() && report.state != DecisionState::kKept &&
                                  report.state != DecisionState::kRolledBack;) {
      EXPECT_EQ(pack(50), expected);
      report = decision(engine);
    }
    engine.wait_for_compiles();
    EXPECT_EQ(pack(3), expected);
    return report;
  }

  EngineConfig config_;
  uint32_t copy_ = 0;
};

// Whether it pays is the processor's business, and so it is said here.
class ValuesThat : public Values, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(PayOrNot, ValuesThat, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Pay" : "DoNotPay"; });

TEST_P(ValuesThat, AreUsualAreTriedAndKnownAtTheNextStart) {
  config_.profile_out = name("out");
  const bool pays = GetParam();
  auto engine = create_engine_for_tests(config_, {.trial_bias = pays ? 2.0 : 0.5}).value();
  const DecisionReport values = run(*engine, kUsual);
  EXPECT_EQ(values.state, pays ? DecisionState::kKept : DecisionState::kRolledBack) << values.outcome;
  EXPECT_EQ(values.wasm_offset, copy_);
  EXPECT_EQ(
      values.reason, "the byte count at 0x" + [this] {
        char text[16];
        std::snprintf(text, sizeof text, "%x", copy_);
        return std::string(text);
      }() + " is 24 in 490 of 500 records");
  EXPECT_THAT(values.outcome, HasSubstr("specialized for 24 bytes, inlined, compared once a strip"));
  EXPECT_THAT(values.outcome, HasSubstr("ticks an iteration"));
  if (pays) {
    EXPECT_NEAR(values.measured_gain, 1, 0.01);
  }
  engine.reset();

  const feedback::ProfileFile saved = feedback::load_profile(config_.profile_out).value();
  ASSERT_EQ(saved.modules.size(), 1u);
  for (const feedback::Episode& e : saved.modules[0].episodes) {
    if (e.origin == feedback::Origin::kDecided && e.seconds == 0) continue;  // the one that SetUp() made up
    EXPECT_TRUE(feedback::replays(e, feedback::from_parameters(saved.policy))) << e.id;
  }

  // A run that repays the compile on any machine. Some are through with this one before there is a sample of it.
  feedback::ProfileFile longer = saved;
  feedback::FunctionSamples samples;
  samples.function = FuncIndex(0);
  samples.seconds_baseline = 100;
  longer.modules[0].samples = {samples};
  ASSERT_TRUE(feedback::save_profile(longer, config_.profile_out));

  EngineConfig again = config_;
  again.profile_in = config_.profile_out;
  again.profile_out.clear();
  auto next = Engine::create(again).value();
  auto module = load(*next, kPack);
  next->wait_for_compiles();
  const DecisionReport known = decision(*next);
  if (pays) {
    EXPECT_EQ(known.state, DecisionState::kKept) << "settled before anything has run";
  } else {
    EXPECT_EQ(known.kind, "") << "not tried again";
  }
}

TEST_F(Values, ThatAreOthersByNowAreTakenBack) {
  auto engine = create_engine_for_tests(config_, {.trial_bias = 1}).value();
  const DecisionReport values = run(*engine, 32);
  EXPECT_EQ(values.state, DecisionState::kRolledBack) << values.outcome;
}

// Rows are packed by one loop or the other of one function.
constexpr const char* kTwoLoops = R"((module (memory 16)
  (func (export "pack") (param $bytes i32) (param $times i32) (param $second i32) (result i32) (local $i i32) (local $to i32)
    (loop $again
      (local.set $i (i32.const 0))
      (local.set $to (i32.const 524288))
      (if (local.get $second)
        (then (loop $l
          (memory.copy (local.get $to)
            (i32.and (i32.mul (local.get $i) (i32.const 1640531527)) (i32.const 0x7ff8)) (local.get $bytes))
          (local.set $to (i32.add (local.get $to) (local.get $bytes)))
          (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2000)))))
        (else (loop $l
          (memory.copy (local.get $to)
            (i32.and (i32.mul (local.get $i) (i32.const 69069)) (i32.const 0x7ff8)) (local.get $bytes))
          (local.set $to (i32.add (local.get $to) (local.get $bytes)))
          (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2000))))))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (i32.load (i32.sub (local.get $to) (local.get $bytes)))))
)";

TEST_F(Values, ThatAreRejectedAreTakenBackThoughAnotherLoopWithSomeDoesNotRun) {
  const auto bytes = wasm::assemble_text(kTwoLoops, "guest").value();
  constexpr std::array<uint8_t, 2> kMemoryCopy = {0xfc, 0x0a};
  const auto first = std::search(bytes.begin(), bytes.end(), kMemoryCopy.begin(), kMemoryCopy.end());
  const auto second = std::search(first + 1, bytes.end(), kMemoryCopy.begin(), kMemoryCopy.end());
  ASSERT_NE(second, bytes.end());
  const auto place = [&](auto at) { return WasmOffset(static_cast<uint32_t>(at - bytes.begin())); };
  feedback::ProfileFile known = feedback::load_profile(config_.profile_in).value();
  known.modules[0].hash_hex = load(*make_engine(), kTwoLoops)->content_hash_hex();
  std::vector<feedback::ValueEvidence>& values = known.modules[0].episodes[0].evidence.values;
  values = {values[0], values[0]};
  values[0].at = place(first);
  values[1].at = place(second);
  ASSERT_TRUE(feedback::save_profile(known, config_.profile_in));
  LogLines log("policy");
  config_.log = log.sink();
  auto engine = create_engine_for_tests(config_, {.trial_bias = 0.5}).value();
  auto module = load(*engine, kTwoLoops);
  engine->wait_for_compiles();
  Linker linker(*engine);
  auto instance = linker.instantiate(module).value();
  const auto state_of = [&](WasmOffset at) {
    for (const DecisionReport& report : engine->feedback_report().decisions)
      if (report.kind == "values" && report.wasm_offset == at.value) return report.state;
    return DecisionState::kNone;
  };
  const auto pack_until = [&](int32_t which, const auto& enough) {
    for (const Patience patience; patience.lasts() && !enough();)
      EXPECT_TRUE(instance->call("pack", std::array{Value::i32(kUsual), Value::i32(50), Value::i32(which)}));
  };
  pack_until(1, [&] { return log.count("pack: rolled back") == 1; });
  EXPECT_EQ(log.count("pack: rolled back"), 1u);
  EXPECT_EQ(state_of(place(first)), DecisionState::kRolledBack);
  EXPECT_EQ(state_of(place(second)), DecisionState::kTrial) << "it has not run";
  engine->wait_for_compiles();
  // It is still there, and judged as soon as it runs.
  pack_until(0, [&] { return log.count("pack: rolled back") == 2; });
  EXPECT_EQ(state_of(place(second)), DecisionState::kRolledBack);
}

TEST_F(Values, AreLeftAloneWhereThatIsSwitchedOff) {
  config_.disabled_decisions = {"values"};
  auto engine = Engine::create(config_).value();
  auto module = load(*engine, kPack);
  engine->wait_for_compiles();
  EXPECT_EQ(decision(*engine).kind, "");
}

}  // namespace
}  // namespace hindsight
