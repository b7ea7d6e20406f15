// What is kept of decisions about huge pages, below the public API.
#include "runtime/adaptive/experiments/page_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
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

feedback::PageEpisode unjudged_before(uint32_t runs, const feedback::PageEvidence& evidence) {
  feedback::PageEpisode episode;
  episode.state = DecisionState::kUnjudged;
  episode.unjudged = runs;
  episode.evidence = evidence;
  return episode;
}

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

TEST_F(DecisionsAboutPages, ArePutByForLaterRunsWithTheFiguresOfAFillingThatTheProgramEnded) {
  const auto saved_last = [&] {
    feedback::ModuleProfile profile;
    moves_.save(module_, profile);
    return profile.page_episodes.back();
  };
  feedback::PageEvidence filled;
  filled.fill = feedback::FillEvidence{.begin = 0, .end = kMiB};
  moves_.remember(module_, {unjudged_before(2, filled)});
  const feedback::FillEvidence first = ask(module_, /*granted=*/true);
  EXPECT_EQ(saved_last().state, DecisionState::kUnjudged);
  EXPECT_EQ(saved_last().unjudged, 3u) << "with those of earlier runs";
  moves_.note_filling(module_, first, "filled 900 MiB a second, and 800 before");
  EXPECT_EQ(saved_last().state, DecisionState::kKept);
  EXPECT_EQ(saved_last().unjudged, 0u);
  EXPECT_THAT(saved_last().outcome, testing::HasSubstr("filled 900 MiB a second"));
  EXPECT_EQ(told().back(), DecisionState::kTrial) << "the program has not ended";
}

TEST_F(DecisionsAboutPages, OfEarlierRunsThatBroughtNothingAreInVainEachForItsKind) {
  feedback::PageEpisode filled;
  filled.evidence.fill = feedback::FillEvidence{.begin = 0, .end = 256 * kMiB};
  filled.ranges = {{0, 256 * kMiB}};
  filled.state = DecisionState::kRolledBack;
  feedback::PageEpisode moved = filled;
  moved.evidence.fill.reset();
  moved.ranges = {{0, 64 * kMiB}};
  moves_.remember(module_, {filled, moved});
  EXPECT_EQ(moves_.vain_bytes(module_), 64 * kMiB);
  EXPECT_EQ(moves_.vain_bytes_filled(module_), 256 * kMiB);
}

// A memory of 64 MiB in which stalls are seen as the test says, at random in all of it.
class MemoryThatMoves : public DecisionsAboutPages {
 protected:
  static constexpr uint64_t kHuge = feedback::kHugePageBytes;
  static constexpr uint64_t kRegions = 32, kMapped = kRegions + 8;
  static constexpr double kSecondsASample = 0.0125;

  void SetUp() override {
    mapped_ = ::mmap(nullptr, kMapped * kHuge, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped_, MAP_FAILED);
    ::madvise(mapped_, kMapped * kHuge, MADV_NOHUGEPAGE);
    // So that regions move in the order of their numbers modulo 8: 0, 4, 2 and so on.
    begin_ = (reinterpret_cast<uint64_t>(mapped_) + 8 * kHuge - 1) / (8 * kHuge) * (8 * kHuge);
    for (uint64_t at = 0; at < kRegions * kHuge; at += 4096) reinterpret_cast<char*>(begin_)[at] = 1;
    modules_.add(code_);
    const std::atomic<bool> stop{false};
    const HugePageResult can = move_to_huge_pages(begin_, begin_ + kHuge, stop);
    leave_huge_pages(begin_, begin_ + kHuge);
    if (can.advised || can.moved_bytes == 0) GTEST_SKIP() << "no huge pages to be had here";
  }
  void TearDown() override {
    DecisionsAboutPages::TearDown();
    ::munmap(mapped_, kMapped * kHuge);
  }

  // So many samples after a load from each region, but only `huge` in a hundred of those in regions that are on huge pages.
  void stall(int each, int huge = 100) {
    for (int i = 0; i < each; ++i)
      for (uint64_t region = 0; region < kRegions; ++region) {
        if (huge_.contains(region) && drawn_++ % 100 >= huge) continue;
        with_profile([&](feedback::Profile& profile) {
          profile.add_sample(FuncIndex(0), WasmOffset(0), /*optimized_code=*/true, kSecondsASample);
          const uint64_t page = next_page_++ % 512;
          profile.pages().add(begin_ + region * kHuge + 4096 * page, ++samples_, profile.seconds_seen());
        });
      }
  }
  void with_profile(const std::function<void(feedback::Profile&)>& use) {
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      auto& profile = profiles[module_];
      if (!profile) profile = monitor_.make_profile(code_->module());
      use(*profile);
    });
  }
  // Looks so many seconds later, and lets come to an end what that begins.
  void look_after(double seconds) {
    now_ += std::chrono::duration_cast<EngineClock::Clock::duration>(std::chrono::duration<double>(seconds));
    moves_.round({.now = now_, .look = true});
    queue_.wait_until_idle();
  }
  // The part that is to say what moving takes, and then an eighth of the rest.
  void move_up_to_the_hold() {
    stall(2);
    look_after(1);
    ASSERT_THAT(told(), testing::ElementsAre(DecisionState::kMoved));
    huge_ = {0, 1, 2, 3};
    stall(20);
    look_after(1);
    ASSERT_THAT(told(), testing::ElementsAre(DecisionState::kMoved, DecisionState::kMoving));
    huge_.insert({8, 16, 24, 4});
    look_after(0.1);
  }
  std::vector<feedback::PageEpisode> saved_episodes() const {
    feedback::ModuleProfile profile;
    moves_.save(module_, profile);
    return profile.page_episodes;
  }

  const std::shared_ptr<ModuleCode> code_ = static_cast<const ModuleHandle&>(*handles_[0]).code();
  void* mapped_ = nullptr;
  uint64_t begin_ = 0, samples_ = 0, next_page_ = 0;
  std::set<uint64_t> huge_;
  int drawn_ = 0;
  EngineClock::Time now_ = EngineClock::Clock::now();
};

TEST_F(MemoryThatMoves, IsJudgedAsAWholeWhereTheRestFollowsAPart) {
  move_up_to_the_hold();
  stall(40, /*huge=*/70);
  look_after(1);
  EXPECT_THAT(told(), testing::ElementsAre(DecisionState::kMoved, DecisionState::kMoved));
  look_after(1);
  const auto episodes = saved_episodes();
  ASSERT_EQ(episodes.size(), 2u);
  for (const feedback::PageEpisode& episode : episodes) {
    EXPECT_EQ(episode.state, DecisionState::kKept) << episode.outcome;
    EXPECT_NEAR(episode.measured_gain, 0.3, 0.15) << episode.outcome;
    EXPECT_EQ(episode.unjudged, 0u);
  }
  EXPECT_THAT(episodes[0].outcome, testing::HasSubstr("judged with what moved next"));
  EXPECT_EQ(moves_.vain_bytes(module_), 0u);
}

TEST_F(MemoryThatMoves, IsSavedWithItsFigureWhereTheProgramEndsFirst) {
  move_up_to_the_hold();
  stall(40, /*huge=*/70);
  look_after(0.1);
  EXPECT_THAT(told(), testing::Each(DecisionState::kMoved)) << "nothing is judged by now";
  for (const feedback::PageEpisode& episode : saved_episodes()) {
    EXPECT_EQ(episode.state, DecisionState::kKept) << episode.outcome;
    EXPECT_NEAR(episode.measured_gain, 0.3, 0.15) << episode.outcome;
  }
}

TEST_F(MemoryThatMoves, IsUnjudgedWhereNobodySawWhatItGave) {
  moves_.remember(module_, {unjudged_before(1, {})});
  move_up_to_the_hold();
  for (const feedback::PageEpisode& episode : saved_episodes()) {
    EXPECT_EQ(episode.state, DecisionState::kUnjudged) << "the program ended: " << episode.outcome;
    EXPECT_EQ(episode.unjudged, 2u);
  }
  look_after(4);
  EXPECT_THAT(told(), testing::ElementsAre(DecisionState::kMoved, DecisionState::kMoved)) << "the rest stays";
  look_after(4);
  EXPECT_THAT(told(), testing::Each(DecisionState::kUnjudged));
}

TEST_F(MemoryThatMoves, IsLeftAloneWhereRunAfterRunCouldNotTellUntilThisOneGoesOnForLonger) {
  stall(2);
  with_profile([&](feedback::Profile& profile) {
    moves_.remember(module_, {unjudged_before(policy_.most_unjudged_runs, profile.page_evidence())});
  });
  look_after(1);
  EXPECT_THAT(told(), testing::IsEmpty());
  stall(3);
  look_after(1);
  EXPECT_THAT(told(), testing::ElementsAre(DecisionState::kMoved));
}

TEST_F(MemoryThatMoves, IsJudgedByAPartWhereTheRestDoesNotFollow) {
  stall(2);
  look_after(1);
  huge_ = {0, 1, 2, 3};
  with_profile([&](feedback::Profile& profile) {  // prefetches hide nothing, and the rest stalls no more
    for (int i = 0; i < 100; ++i) profile.add_sample(FuncIndex(0), WasmOffset(0), true, kSecondsASample);
  });
  look_after(0.1);
  // What comes now is compared, and by the time at which anything is looked at it is long ago.
  stall(60, /*huge=*/60);
  with_profile([&](feedback::Profile& profile) {
    for (int i = 0; i < 100; ++i) profile.add_sample(FuncIndex(0), WasmOffset(0), true, kSecondsASample);
  });
  look_after(1);
  const auto episodes = saved_episodes();
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_EQ(episodes[0].state, DecisionState::kKept) << episodes[0].outcome;
  EXPECT_NEAR(episodes[0].measured_gain, 0.4, 0.3) << episodes[0].outcome;
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
