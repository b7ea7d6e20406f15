// Two versions of a function in turns: the machinery alone on simulated time, and the exchange under guests that run.
// Then an engine whose trials are biased, from the decision to the next start of the program.
#include "runtime/adaptive/experiments/version_trials.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jit/code/move_code.h"
#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/handles.h"
#include "runtime/storage/profile_store.h"
#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight::rt {
namespace {

using feedback::ChangeState;
using namespace std::chrono_literals;

// A loop of calls through a table, in a function that is called from outside of it.
constexpr std::string_view kVersionsGuest = R"((module $guest
  (type $t (func (param i32) (result i32)))
  (table funcref (elem $three $seven))
  (func $three (type $t) (i32.add (i32.mul (local.get 0) (i32.const 3)) (i32.const 1)))
  (func $seven (type $t) (i32.sub (i32.mul (local.get 0) (i32.const 7)) (i32.const 1)))
  (func $work (export "work") (param $n i32) (param $r i32) (result i32)
    (loop $l
      (if (i32.and (local.get $n) (i32.const 63))
        (then (local.set $r (call_indirect (type $t) (local.get $r) (i32.const 0))))
        (else (local.set $r (call_indirect (type $t) (local.get $r) (i32.const 1)))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $r))))";
constexpr FuncIndex kWork{2};

uint32_t work(uint32_t n, uint32_t r) {
  for (; n != 0; --n) r = (n & 63) != 0 ? r * 3 + 1 : r * 7 - 1;
  return r;
}

class VersionTrialsTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = std::static_pointer_cast<EngineHandle>(make_engine());
    module_ = load(*engine_, kVersionsGuest);
    linker_ = std::make_unique<Linker>(*engine_);
    guest_ = linker_->instantiate(module_).value();
    trials_ = std::make_unique<VersionTrials>(
        engine_->code(),
        VersionTrials::Hooks{.compile =
                                 [this](const VersionTrials::Subject&) {
                                   ++compiles_;
                                   return !no_thread_;
                                 },
                             .on_ended =
                                 [this](const VersionTrials::Ending& ending) {
                                   if (ending.left != nullptr) code().retire_copy(ending.left);
                                   endings_.push_back(ending);
                                 },
                             .disturbed = [this] { return disturbed_; },
                             .read = [this](const ModuleCode& code, const jit::CodeVersion&,
                                            const jit::CodeVersion*) { return read(code); }},
        VersionTrials::Pace());
    with_ = compile();
    code().publish(with_);
  }

  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  std::shared_ptr<jit::CodeVersion> compile(bool exits = false) {
    jit::OptimizeRequest request;
    request.function = kWork;
    if (exits) {
      request.osr_loops = {LoopIndex(0)};
      request.loop_exits = true;
    }
    auto made = code().optimize(request);
    EXPECT_TRUE(made) << made.error().describe();
    return std::move(made->version);
  }
  // Simulated: every look comes a millisecond after the last one, and what is current runs as fast as it is said to.
  CallChunk::Reading read(const ModuleCode& code) {
    seconds_ += 0.001;
    calls_ += 0.001 * rate_ * (code.current(kWork) == without_ ? 1 + gain_ : 1);
    return {seconds_, static_cast<uint64_t>(calls_), share_of_processor_ * seconds_};
  }
  VersionTrials::Subject subject() {
    return {.module = code().module().get(),
            .code = static_cast<const ModuleHandle&>(*module_).code(),
            .with = with_,
            .decision = jit::ChangeKind::kInlineCalls};
  }
  void begin() { trials_->begin(subject()); }
  // Up to where a second version is to be made, which is.
  void begin_comparing() {
    begin();
    for (int i = 0; i < 1000 && compiles_ == 0; ++i) trials_->round();
    ASSERT_EQ(compiles_, 1);
    without_ = compile();
    trials_->offer(without_);
  }
  void run_to_the_end() {
    for (int i = 0; i < 100'000 && endings_.empty(); ++i) trials_->round();
    ASSERT_EQ(endings_.size(), 1u);
    EXPECT_FALSE(trials_->busy());
  }
  // Nobody but the module and the test knows the versions any more: what was retired can be freed.
  uint64_t freed() { return engine_->code().collect_retired(); }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::unique_ptr<Linker> linker_;
  std::shared_ptr<hindsight::Instance> guest_;
  std::unique_ptr<VersionTrials> trials_;
  std::shared_ptr<jit::CodeVersion> with_, without_;
  std::vector<VersionTrials::Ending> endings_;
  int compiles_ = 0;
  bool no_thread_ = false;
  bool disturbed_ = false;
  double seconds_ = 0, calls_ = 0, rate_ = 1e5, gain_ = 0;
  double share_of_processor_ = 1;  // that the guest has
};

TEST_F(VersionTrialsTest, TakeBackADecisionWithoutWhichTheFunctionIsSurelyFaster) {
  gain_ = 0.1;
  begin_comparing();
  EXPECT_EQ(trials_->subject(code().module().get(), kWork), with_);
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kRolledBack) << endings_[0].words;
  EXPECT_NEAR(endings_[0].gain, 1 / 1.1 - 1, 0.02);
  EXPECT_EQ(code().current(kWork), without_);
  // No slot leads to the meter, nor to what was retired.
  EXPECT_EQ(static_cast<InstanceHandle&>(*guest_).inside().func_ref(kWork)->code.load(), without_->entry);
  EXPECT_EQ(engine_->code().retired().pending(), 1u);
  EXPECT_EQ(freed(), 1u);
  EXPECT_EQ(trials_->seconds_lost(), 0) << "it gained";
  EXPECT_EQ(trials_->subject(code().module().get(), kWork), nullptr);
}

TEST_F(VersionTrialsTest, KeepADecisionThatPaysAndSayWhatItGives) {
  gain_ = -0.2;
  begin_comparing();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kKept) << endings_[0].words;
  EXPECT_NEAR(endings_[0].gain, 0.25, 0.03);
  EXPECT_EQ(code().current(kWork), with_);
  EXPECT_GT(trials_->seconds_lost(), 0);
  EXPECT_LT(trials_->seconds_lost(), 0.025) << "a version that loses every time does not run for long";
  EXPECT_EQ(engine_->code().retired().pending(), 1u);
  EXPECT_EQ(freed(), 1u);
}

TEST_F(VersionTrialsTest, KeepADecisionThatMakesNoDifference) {
  begin_comparing();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kKept);
  EXPECT_NEAR(endings_[0].gain, 0, 0.01);
  EXPECT_EQ(code().current(kWork), with_);
}

TEST_F(VersionTrialsTest, SayThatAFunctionIsNotToBeMeasuredThatIsHardlyCalledOrAllTheTime) {
  rate_ = 2;
  begin();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kNone);
  EXPECT_THAT(endings_[0].words, testing::HasSubstr("are too few"));
  endings_.clear();
  rate_ = 1e8;
  begin();
  run_to_the_end();
  EXPECT_THAT(endings_[0].words, testing::HasSubstr("million calls a second"));
  EXPECT_EQ(compiles_, 0);
  EXPECT_EQ(code().current(kWork), with_);
}

TEST_F(VersionTrialsTest, SayThatThereIsNoThreadToCompileOn) {
  no_thread_ = true;
  begin();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kNone);
  EXPECT_EQ(endings_[0].words, "cannot be measured: no thread could be created to compile it");
  EXPECT_EQ(code().current(kWork), with_);
  EXPECT_FALSE(trials_->busy());
}

TEST_F(VersionTrialsTest, MeasureCallsOfMilliseconds) {
  rate_ = 40;  // 25 ms a call
  gain_ = 0.1;
  begin_comparing();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kRolledBack) << endings_[0].words;
}

TEST_F(VersionTrialsTest, MeasureAGuestThatMostlyWaitsForAProcessor) {
  share_of_processor_ = 0.1;
  gain_ = 0.1;
  begin_comparing();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kRolledBack) << endings_[0].words;
}

TEST_F(VersionTrialsTest, EndWhereTheFunctionIsNotCalledAnyMore) {
  begin_comparing();
  rate_ = 0;
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kNone);
  EXPECT_EQ(code().current(kWork), with_);
  EXPECT_EQ(freed(), 1u);
}

TEST_F(VersionTrialsTest, EndWhereThereIsNoVersionWithoutTheDecision) {
  begin();
  while (compiles_ == 0) trials_->round();
  trials_->offer(nullptr, "too large");
  run_to_the_end();
  EXPECT_EQ(endings_[0].words, "cannot be measured: too large");
  trials_->offer(compile());  // nobody waits for it
  EXPECT_EQ(code().current(kWork), with_);
  EXPECT_EQ(engine_->code().retired().pending(), 0u);
}

TEST_F(VersionTrialsTest, WaitWhileSomethingElseIsMeasuredAndGiveUpIfThatDoesNotEnd) {
  gain_ = 0.1;
  begin_comparing();
  disturbed_ = true;
  for (int i = 0; i < 1000; ++i) trials_->round();
  EXPECT_TRUE(endings_.empty());
  EXPECT_EQ(code().current(kWork), with_);
  disturbed_ = false;
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kRolledBack);

  with_ = without_;
  endings_.clear();
  compiles_ = 0;
  begin_comparing();
  disturbed_ = true;
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kNone);
  EXPECT_EQ(code().current(kWork), with_);
}

TEST_F(VersionTrialsTest, LeaveAFunctionAloneThatIsCompiledAnewOrWithdrawnMeanwhile) {
  for (const bool withdrawn : {false, true}) {
    for (const bool shown : {false, true}) {
      SCOPED_TRACE(fmt::format("withdrawn {}, shown {}", withdrawn, shown));
      endings_.clear();
      compiles_ = 0;
      with_ = compile();
      code().publish(with_);
      freed();
      begin_comparing();
      while (code().current(kWork) != (shown ? without_ : with_)) trials_->round();
      const std::shared_ptr<jit::CodeVersion> newer = withdrawn ? nullptr : compile();
      if (withdrawn)
        code().withdraw(kWork);
      else
        code().publish(newer);
      run_to_the_end();
      EXPECT_EQ(endings_[0].outcome, ChangeState::kNone);
      EXPECT_EQ(code().version(kWork, jit::Tier::kOptimized), newer);
      EXPECT_EQ(engine_->code().retired().pending(), 2u);
      EXPECT_EQ(freed(), 2u);
    }
  }
}

TEST_F(VersionTrialsTest, LeaveNothingBehindWhenTheirModuleGoesInTheMiddle) {
  // As the engine's tiers do.
  struct Forget final : CodeObserver {
    explicit Forget(VersionTrials& of) : trials(of) {}
    void on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>&) override {}
    void on_destroyed(ModuleCode& code) override { trials.forget(code); }
    VersionTrials& trials;
  } observer(*trials_);
  const size_t registered = engine_->code().registry().size();
  for (const bool shown : {false, true}) {
    auto other =
        ModuleCode::create(code().module(), engine_->code(), jit::Tier::kBaseline, &observer).value();
    jit::OptimizeRequest request;
    request.function = kWork;
    std::shared_ptr<jit::CodeVersion> with(std::move(other->optimize(request)->version));
    other->publish(with);
    compiles_ = 0;
    trials_->begin({.module = other->module().get(), .code = other, .with = with});
    while (compiles_ == 0) trials_->round();
    without_ = std::move(other->optimize(request)->version);
    trials_->offer(without_);
    while (other->current(kWork) != (shown ? without_ : with)) trials_->round();
    trials_->forget(*other);
    EXPECT_TRUE(trials_->busy()) << "it is not gone";
    with = without_ = nullptr;
    other.reset();
    EXPECT_FALSE(trials_->busy());
    EXPECT_EQ(engine_->code().retired().pending(), 1u);
    EXPECT_EQ(freed(), 1u);
    EXPECT_EQ(engine_->code().registry().size(), registered);
  }
  EXPECT_TRUE(endings_.empty());
}

// What lies apart, and was left where it is when the rest was moved, goes with the rest.
TEST_F(VersionTrialsTest, TakeBackASplitOfWhichThePartThatRunsWasMoved) {
  jit::OptimizeRequest request;
  request.function = kWork;
  request.split_cold = true;
  const std::shared_ptr<jit::CodeVersion> whole(std::move(code().optimize(request)->version));
  ASSERT_GT(whole->hot_bytes.value, 0u) << "a call through a table may trap";
  code().publish(whole);
  freed();  // what SetUp() made
  auto place = engine_->code().arena().allocate(jit::bytes_to_move(*whole)).value();
  with_ = jit::copy_version(whole, std::move(place)).value();
  code().register_copy(with_);
  {
    const ModuleCode::Exchange moved{whole, with_};
    ASSERT_TRUE(code().exchange({&moved, 1}).front());
  }
  code().retire_copy(whole);
  gain_ = 0.1;
  begin_comparing();
  run_to_the_end();
  EXPECT_EQ(endings_[0].outcome, ChangeState::kRolledBack);
  EXPECT_EQ(code().current(kWork), without_);
  endings_.clear();
  with_ = nullptr;
  freed();
  freed();  // the rest, once its part is gone
  EXPECT_EQ(engine_->code().retired().pending(), 0u);
  const std::vector<hindsight::Value> args = {hindsight::Value::i32(500), hindsight::Value::i32(3)};
  EXPECT_EQ(static_cast<uint32_t>(guest_->call("work", args).value()[0].as_i32()), work(500, 3));
}

// Answers are right whatever is current, in loops that go along as in those that stay.
TEST_F(VersionTrialsTest, ExchangeUnderThreadsThatRunWithoutAnyoneNoticing) {
  with_ = compile(/*exits=*/true);
  const std::shared_ptr<jit::CodeVersion> without = compile(/*exits=*/true);
  code().publish(with_);
  code().register_copy(without);
  ASSERT_TRUE(code().meter_calls(kWork));
  std::atomic<bool> done{false}, failed{false};
  std::atomic<uint64_t> calls{0};
  const auto guest = [&](uint32_t n) {
    Linker linker(*engine_);  // a store of its own: one thread at a time may be in it
    auto instance = linker.instantiate(module_).value();
    uint32_t r = n;
    while (!done) {
      const std::vector<hindsight::Value> args = {hindsight::Value::i32(static_cast<int32_t>(n)),
                                                  hindsight::Value::i32(static_cast<int32_t>(r))};
      const auto result = instance->call("work", args);
      const uint32_t wanted = work(n, r);
      if (!result || static_cast<uint32_t>((*result)[0].as_i32()) != wanted) {
        ADD_FAILURE() << "work(" << n << ", " << r
                      << "): " << (result ? "a wrong answer" : result.error().describe());
        failed = true;
      }
      r = wanted;
      ++calls;
    }
  };
  std::thread short_calls(guest, 50u), long_calls(guest, 300'000u);
  bool shown = false;
  uint32_t exchanges = 0;
  while (!failed && (calls < 500 || exchanges < 500)) {
    const ModuleCode::Exchange exchange =
        shown ? ModuleCode::Exchange{without, with_} : ModuleCode::Exchange{with_, without};
    EXPECT_TRUE(code().exchange({&exchange, 1}).front());
    shown = !shown;
    ++exchanges;
    std::this_thread::yield();
  }
  // One goes while threads are in it, as at the end of a trial.
  code().stop_metering(kWork);
  code().retire_copy(shown ? with_ : without);
  const uint64_t before = calls;
  while (!failed && calls < before + 40) engine_->code().collect_retired();
  done = true;
  short_calls.join();
  long_calls.join();
  engine_->code().collect_retired();
  EXPECT_EQ(engine_->code().retired().pending(), 0u);
}

// ---------------------------------------------------------------- a whole engine

class VersionTrialsOfAnEngine : public testing::Test {
 protected:
  // What a decision really gives is the processor's business, and may be twice the speed or nothing. No processor makes up for these.
  static constexpr double kSurelyLoses = 1.0 / 64, kSurelyPays = 64;

  void SetUp() override {
    std::string pattern = testing::TempDir() + "hindsight-versions-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  struct Run {
    std::vector<DecisionReport> decisions;
    std::string log;
    const DecisionReport* of(std::string_view kind) const {
      const DecisionReport* found = nullptr;
      for (const DecisionReport& d : decisions)
        if (d.kind == kind && d.function == "work") found = &d;
      return found;
    }
  };
  // The guest runs until a decision of that kind is judged, or for the calls that are enough to see that it is not made.
  Run run(double bias, std::string_view kind, std::vector<std::string> without = {},
          uint32_t most_calls = ~0u) {
    return run_until(
        bias,
        [&](const Run& run) {
          const DecisionReport* const decision = run.of(kind);
          return decision != nullptr &&
                 (decision->state == DecisionState::kKept || decision->state == DecisionState::kRolledBack);
        },
        std::move(without), most_calls);
  }
  // Until the log says that.
  Run run_until_said(double bias, std::string_view words, std::vector<std::string> without = {}) {
    return run_until(
        bias, [&](const Run& run) { return run.log.find(words) != std::string::npos; }, std::move(without));
  }
  Run run_until(double bias, const std::function<bool(const Run&)>& is_enough,
                std::vector<std::string> without, uint32_t most_calls = ~0u) {
    Run run;
    std::mutex mutex;
    EngineConfig config;
    config.tier = TierMode::kAuto;
    config.compile_threads = 1;
    config.disabled_decisions = std::move(without);
    config.profile_directory = (folder_ / "profiles").string();
    if (keeps_code_) config.code_cache_directory = (folder_ / "code").string();
    config.log_level = LogLevel::kDebug;
    config.log = [&](LogLevel, std::string_view topic, std::string_view line) {
      const std::lock_guard lock(mutex);
      run.log += fmt::format("{}: {}\n", topic, line);
    };
    auto engine = create_engine_for_tests(std::move(config), {.trial_bias = bias}).value();
    {
      Linker linker(*engine);
      auto module = load(*engine, kVersionsGuest);
      hash_ = module->content_hash_hex();
      engine->wait_for_compiles();
      auto guest = linker.instantiate(module).value();
      uint32_t r = 1;
      const Patience patience;
      for (uint32_t i = 0; i < most_calls && patience.lasts(); ++i) {
        const std::vector<hindsight::Value> args = {hindsight::Value::i32(3000),
                                                    hindsight::Value::i32(static_cast<int32_t>(r))};
        const auto result = guest->call("work", args).value();
        r = work(3000, r);
        EXPECT_EQ(static_cast<uint32_t>(result[0].as_i32()), r);
        if (i % 500 != 0 || most_calls != ~0u) continue;
        run.decisions = engine->feedback_report().decisions;
        const std::lock_guard lock(mutex);
        if (is_enough(run)) break;
      }
      run.decisions = engine->feedback_report().decisions;
    }
    engine.reset();
    return run;
  }
  std::string explained() const {
    ProfileSource source;
    source.path = profile().string();
    return explain_profile(source).value_or("nothing");
  }
  std::string shown() const {
    ProfileSource source;
    source.path = profile().string();
    return show_profile(source).value_or("nothing");
  }
  std::filesystem::path profile() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "profiles"))
      if (entry.path().extension() == ".profile") return entry.path();
    ADD_FAILURE() << "nothing was kept";
    return {};
  }
  std::filesystem::path folder_;
  std::string hash_;
  bool keeps_code_ = false;
};

TEST_F(VersionTrialsOfAnEngine, ADecisionThatLosesIsTakenBackRememberedAndNotTakenAgain) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const Run first = run(kSurelyLoses, "inline-calls");
  ASSERT_NE(first.of("inline-calls"), nullptr) << first.log;
  EXPECT_EQ(first.of("inline-calls")->state, DecisionState::kRolledBack) << first.log;
  EXPECT_LT(first.of("inline-calls")->measured_gain, 0);
  EXPECT_THAT(first.of("inline-calls")->outcome, testing::HasSubstr("calls a second of CPU time"));
  EXPECT_THAT(explained(), testing::HasSubstr("undone   inlined usual targets of calls: rolled back"));
  EXPECT_THAT(shown(), testing::HasSubstr("inlined usual targets of calls rolled back"));

  const Run second = run(0, "inline-calls", {}, 2000);
  EXPECT_THAT(second.log, testing::HasSubstr("decided in an earlier run"));
  EXPECT_EQ(second.of("inline-calls"), nullptr) << second.log;
  EXPECT_NE(second.of("optimize"), nullptr) << second.log;
}

TEST_F(VersionTrialsOfAnEngine, ADecisionThatPaysSaysWhatItGivesAndIsNotTriedAgain) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const Run first = run(kSurelyPays, "weigh-branches");
  ASSERT_NE(first.of("weigh-branches"), nullptr) << first.log;
  EXPECT_EQ(first.of("weigh-branches")->state, DecisionState::kKept) << first.log;
  EXPECT_GT(first.of("weigh-branches")->measured_gain, 0);
  EXPECT_THAT(explained(), testing::HasSubstr("weights of branches: kept, +"));
  const Run second = run(kSurelyLoses, "weigh-branches", {}, 3000);
  ASSERT_NE(second.of("weigh-branches"), nullptr) << second.log;
  EXPECT_THAT(second.log, testing::Not(testing::HasSubstr("weigh-branches in work, tried against")));
}

TEST_F(VersionTrialsOfAnEngine, WhatIsChangedInAFunctionIsComparedWithCodeThatHasNoneOfIt) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const Run paid = run_until_said(2, "all that is changed in work: ");
  EXPECT_THAT(paid.log, testing::HasSubstr("all that is changed in work: kept, "));
  EXPECT_THAT(paid.log, testing::HasSubstr("inline-calls in work: kept, ")) << "that comes first";
}

// The decision was taken in another run, and nothing but the code says so.
TEST_F(VersionTrialsOfAnEngine, CodeThatAnEarlierRunKeptGoesBackToCodeWithoutChangesAndStaysThere) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  keeps_code_ = true;
  // Nothing is tried in its loop: weights alone are worth no second compile.
  const std::vector<std::string> without = {"inline-calls", "branch", "select"};
  const Run first = run(kSurelyPays, "weigh-branches", without);
  ASSERT_NE(first.of("weigh-branches"), nullptr) << first.log;
  ASSERT_EQ(first.of("weigh-branches")->state, DecisionState::kKept) << first.log;

  const Run second = run_until_said(kSurelyLoses, "all that is changed in work: ", without);
  EXPECT_THAT(second.log, testing::HasSubstr("work: from the code cache: "));
  EXPECT_THAT(second.log, testing::HasSubstr("all that is changed in work: rolled back, -"));
  ASSERT_NE(second.of("weigh-branches"), nullptr) << second.log;
  EXPECT_EQ(second.of("weigh-branches")->state, DecisionState::kRolledBack);
  EXPECT_THAT(explained(), testing::HasSubstr("weights of branches: rolled back"));

  const Run third = run(kSurelyLoses, "weigh-branches", without, 6000);
  EXPECT_THAT(third.log, testing::HasSubstr("work: from the code cache: "));
  EXPECT_THAT(third.log, testing::Not(testing::HasSubstr("tried against a version without it")))
      << "it has no change that could lose";
}

// One call that does not end until something was found out about its loop.
class VersionTrialsOfANest : public testing::Test {
 protected:
  static constexpr int32_t kTurns = 20'000;  // of the inner loop, for each of the outer one

  // Until the log has so many lines with these words, in one call. `compiled`: what was for such trials, by name.
  static std::string run(double bias, std::string_view words, size_t times = 1,
                         std::vector<std::string>* compiled = nullptr) {
    LogLines lines("trial"), compile_lines("compile");
    EngineConfig config;
    config.tier = TierMode::kAuto;
    config.compile_threads = 1;
    config.log_level = LogLevel::kDebug;
    config.log = [trials = lines.sink(), made = compile_lines.sink()](LogLevel level, std::string_view topic,
                                                                      std::string_view line) {
      trials(level, topic, line);
      made(level, topic, line);
    };
    // Nothing that has a trial of its own, and would take the code with the weights along.
    for (const jit::ChangeTraits& change : jit::kChanges)
      if (change.scope == jit::Scope::kLoop) config.disabled_decisions.emplace_back(change.name);
    auto engine = create_engine_for_tests(std::move(config), {.trial_bias = bias}).value();
    auto module = load(*engine, fmt::format(R"((module
      (import "host" "goes_on" (func $goes_on (result i32)))
      (func (export "main") (result i32) (local $x i32) (local $i i32)
        (loop $rounds
          (local.set $i (i32.const {}))
          (loop $turns
            (if (i32.and (local.get $x) (i32.const 7))
              (then (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 69069)) (local.get $i))))
              (else (local.set $x (i32.xor (local.get $x) (i32.const 5)))))
            (br_if $turns (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
          (br_if $rounds (call $goes_on)))
        (local.get $x))))",
                                            kTurns));
    uint32_t rounds = 0;
    const Patience patience;
    Linker linker(*engine);
    linker.define_function("host", "goes_on", [&]() -> int32_t {
      return ++rounds % 100 != 0 || (patience.lasts() && lines.count(words) < times);
    });
    auto result = linker.instantiate(module).value()->call("main", {});
    EXPECT_TRUE(result) << result.error().describe();
    uint32_t x = 0;
    for (uint32_t round = 0; round < rounds; ++round)
      for (uint32_t i = kTurns; i > 0; --i) x = (x & 7) != 0 ? x * 69069 + i : x ^ 5;
    EXPECT_EQ(static_cast<uint32_t>((*result)[0].as_i32()), x) << rounds << " rounds";
    if (compiled != nullptr)
      for (const std::string& line : compile_lines.lines())
        if (line.ends_with("for a trial of the whole version"))
          compiled->push_back(line.substr(0, line.find(':')));
    return lines.text();
  }
};

TEST_F(VersionTrialsOfANest, ADecisionThatLosesIsTakenBackWhileTheLoopRunsOn) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_THAT(
      run(1.0 / 64, "of main: rolled back"),
      testing::ContainsRegex("weigh-branches in the loop at 0x[0-9a-f]+ of main: rolled back, -.*without it: "
                             "\\+.* iterations a second"));
}

TEST_F(VersionTrialsOfANest, WhatIsChangedIsComparedWithCodeThatHasNoneOfIt) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_THAT(run(64, "all that is changed"),
              testing::AllOf(
                  testing::ContainsRegex("weigh-branches in the loop at 0x[0-9a-f]+ of main: kept, "),
                  testing::ContainsRegex("all that is changed in the loop at 0x[0-9a-f]+ of main: kept, ")));
}

TEST_F(VersionTrialsOfANest, WhatStayedIsComparedAgainOnceItRanAsLongAgain) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  std::vector<std::string> compiled;
  EXPECT_THAT(run(16, "all that is changed in", 2, &compiled),
              testing::ContainsRegex(
                  "all that is changed in .* of main: kept, .*all that is changed in .* of main: kept, "));
  // The outer loop may have become one of its own.
  EXPECT_THAT(compiled, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(std::set(compiled.begin(), compiled.end()).size(), compiled.size())
      << "code without any change is kept from the first trial on: " << testing::PrintToString(compiled);
}

TEST_F(VersionTrialsOfAnEngine, WhatIsSwitchedOffIsNeitherDoneNorTried) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const Run off = run(kSurelyLoses, "weigh-branches", {"inline-calls", "branch", "select"});
  EXPECT_EQ(off.of("inline-calls"), nullptr);
  EXPECT_THAT(off.log, testing::Not(testing::HasSubstr("inline-calls in work")));
  ASSERT_NE(off.of("weigh-branches"), nullptr) << off.log;
  EXPECT_EQ(off.of("weigh-branches")->state, DecisionState::kRolledBack) << off.log;
}

}  // namespace
}  // namespace hindsight::rt
