// What is kept of decisions about huge pages, below the public API.
#include "runtime/adaptive/experiments/page_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/adaptive/engine_policy.h"
#include "runtime/adaptive/sampling_governor.h"
#include "runtime/engine/handles.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight::rt {
namespace {

constexpr uint64_t kTold = 64;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class DecisionsAboutPages : public testing::Test {
 protected:
  void TearDown() override { queue_.stop(); }

  // A memory is being filled, and huge pages were asked for. Each is another one.
  feedback::FillEvidence ask(const wasm::Module* module, bool granted, uint64_t bytes = 64 * kMiB) {
    feedback::FillEvidence fill{.begin = next_, .end = next_ + bytes, .untouched = 16};
    next_ += uint64_t{1} << 32;
    feedback::PagePlan plan;
    plan.ranges = plan.whole = {{fill.begin, fill.end}};
    feedback::PageEvidence evidence;
    evidence.fill = fill;
    moves_.note_asked({.module = module,
                       .plan = std::move(plan),
                       .evidence = std::move(evidence),
                       .place = {.memory = 0, .begin = 0, .end = bytes}},
                      granted);
    return fill;
  }
  void ask_in_vain(const wasm::Module* module, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) ask(module, /*granted=*/false);
  }
  void round() { moves_.round({.now = EngineClock::Clock::now()}); }
  std::vector<DecisionState> told() const {
    DecisionSink decisions;
    moves_.report(decisions);
    std::vector<DecisionState> states;
    for (const DecisionReport& decision : decisions) states.push_back(decision.state);
    return states;
  }
  size_t saved(const wasm::Module* module) const {
    feedback::ModuleProfile profile;
    moves_.save(module, profile);
    return profile.page_episodes.size();
  }

  const std::shared_ptr<EngineHandle> engine_ = std::static_pointer_cast<EngineHandle>(make_engine());
  const std::shared_ptr<const hindsight::Module> handles_[2] = {load(*engine_, "(module (memory 1))"),
                                                                load(*engine_, "(module (memory 2))")};
  const wasm::Module* const module_ = static_cast<const ModuleHandle&>(*handles_[0]).code()->module().get();
  const wasm::Module* const other_ = static_cast<const ModuleHandle&>(*handles_[1]).code()->module().get();

  CodeServices& services_ = engine_->code();
  const feedback::PolicyConfig policy_ = make_policy({}, {});
  const EngineClock clock_;
  LoadedModules modules_;
  DecisionLog decisions_;
  Measurement measurement_;
  feedback::Monitor monitor_{services_.registry(), feedback::Monitor::Config()};
  SamplingGovernor governor_{services_, monitor_, clock_};
  CompileQueue queue_{services_, monitor_, decisions_, governor_, [](Job, ModuleCode&) {}};
  PageMoves moves_{{services_, monitor_, policy_, clock_, modules_, decisions_, queue_},
                   measurement_,
                   [](const wasm::Module*) { return std::vector<PageMoves::TimedLoop>(); }};
  uint64_t next_ = uint64_t{1} << 32;
};

TEST_F(DecisionsAboutPages, AreToldUpToTheLastOnesOfAModuleAndTheRestIsCounted) {
  ask_in_vain(module_, kTold);
  round();
  EXPECT_EQ(told().size(), kTold);
  EXPECT_EQ(moves_.dropped(), 0u);
  ask_in_vain(other_, 3);
  for (uint64_t more = 1; more <= 10; ++more) {
    ask_in_vain(module_, 7);
    round();
    EXPECT_EQ(told().size(), kTold + 3);
    EXPECT_EQ(moves_.dropped(), 7 * more);
  }
  EXPECT_EQ(saved(module_), kTold);
  EXPECT_EQ(saved(other_), 3u);
  EXPECT_EQ(moves_.forget_decisions(module_), kTold + 70) << "with those that were not told any more";
  EXPECT_EQ(moves_.dropped(), 0u);
  EXPECT_EQ(told().size(), 3u);
}

TEST_F(DecisionsAboutPages, StayAsLongAsTheyAreOnTrial) {
  const feedback::FillEvidence first = ask(module_, /*granted=*/true);
  ask_in_vain(module_, 2 * kTold);
  round();
  EXPECT_EQ(told().size(), kTold + 1);
  EXPECT_EQ(told().front(), DecisionState::kTrial);
  moves_.note_filled(module_, first, DecisionState::kKept, "filled");
  EXPECT_EQ(told().front(), DecisionState::kKept);
  ask_in_vain(module_, 1);
  round();
  EXPECT_EQ(told().size(), kTold);
  EXPECT_THAT(told(), testing::Each(DecisionState::kFailed));
}

TEST_F(DecisionsAboutPages, SayWhatWasMovedInVainAlsoWhenTheyAreNotToldAnyMore) {
  moves_.note_filled(module_, ask(module_, /*granted=*/true, 512 * kMiB), DecisionState::kRolledBack,
                     "slower");
  moves_.note_filled(module_, ask(module_, /*granted=*/true, 128 * kMiB), DecisionState::kRolledBack,
                     "slower");
  EXPECT_EQ(moves_.vain_bytes(module_), 512 * kMiB);
  ask_in_vain(module_, 2 * kTold);
  round();
  EXPECT_THAT(told(), testing::Each(DecisionState::kFailed));
  EXPECT_EQ(moves_.vain_bytes(module_), 512 * kMiB);
  EXPECT_EQ(moves_.vain_bytes(other_), 0u);
  moves_.forget_decisions(module_);
  EXPECT_EQ(moves_.vain_bytes(module_), 0u);
}

}  // namespace
}  // namespace hindsight::rt
