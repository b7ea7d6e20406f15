// Who is to blame where changes that share a trial lost together.
#include "runtime/adaptive/functions/function_trials.h"

#include <gtest/gtest.h>

#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

constexpr jit::Site kOld{jit::ChangeKind::kPrefetch, WasmOffset(10)};
constexpr jit::Site kNew{jit::ChangeKind::kPrefetch, WasmOffset(20)};

// Two prefetches of one loop.
Watch watch_of(TrialState state, Settled won_before) {
  Watch watch;
  watch.version = std::make_shared<jit::CodeVersion>();
  for (const jit::Site site : {kOld, kNew})
    watch.version->answers.push_back({.site = site, .state = jit::Answer::State::kApplied, .cell = 0});
  watch.reported = {state};
  watch.won_before = std::move(won_before);
  return watch;
}

std::vector<bool> who_pays(const Watch& watch) {
  std::vector<bool> pays;
  for (const jit::Answer& answer : watch.version->answers) pays.push_back(watch.pays(answer));
  return pays;
}

TEST(Watches, TakeWhatIsNewForWhatLost) {
  EXPECT_EQ(who_pays(watch_of(TrialState::kRejected, {{kOld, 3}})), (std::vector{true, false}));
  EXPECT_EQ(who_pays(watch_of(TrialState::kRejected, {})), (std::vector{false, false}));
}

TEST(Watches, TakeWhatWasWonForWhatLostWhereNothingIsNew) {
  EXPECT_EQ(who_pays(watch_of(TrialState::kRejected, {{kOld, 3}, {kNew, 5}})), (std::vector{false, false}));
}

TEST(Watches, KnowThatAllPaysThatWasKept) {
  EXPECT_EQ(who_pays(watch_of(TrialState::kKept, {{kOld, 3}})), (std::vector{true, true}));
  EXPECT_EQ(who_pays(watch_of(TrialState::kPaused, {})), (std::vector{true, true}));
  EXPECT_EQ(who_pays(watch_of(TrialState::kComparing, {})), (std::vector{false, false}));
}

// A body that is inlined twice in one loop is searched in two others.
TEST(WonChanges, AreNotKnownToPayInOtherLoopsThanWonThem) {
  const auto in = [](WasmOffset loop) {
    return jit::Answer{.site = kOld, .state = jit::Answer::State::kApplied, .loop = loop};
  };
  WonChanges won;
  EXPECT_TRUE(won.may_be_of(in(WasmOffset(5)))) << "an earlier run may have seen it there";
  won.note(in(WasmOffset(5)));
  EXPECT_TRUE(won.may_be_of(in(WasmOffset(5))));
  EXPECT_FALSE(won.may_be_of(in(WasmOffset(6))));
  won.note(in(WasmOffset(6)));
  EXPECT_TRUE(won.may_be_of(in(WasmOffset(5))));
  EXPECT_TRUE(won.may_be_of(in(WasmOffset(6))));
}

constexpr jit::Site kRuns{jit::ChangeKind::kInterleave, WasmOffset(7)};
constexpr jit::Site kFollows{jit::ChangeKind::kInterleave, WasmOffset(8)};
constexpr jit::Site kRival{jit::ChangeKind::kPrefetch, WasmOffset(9)};
Watch watch_with(jit::Site site, bool has_rival, TrialState state = TrialState::kRejected) {
  Watch watch;
  const auto version = std::make_shared<jit::CodeVersion>();
  version->answers = {{.site = site, .state = jit::Answer::State::kApplied, .has_rival = has_rival}};
  if (site == kRuns) version->answers.push_back({.site = kFollows, .state = jit::Answer::State::kFollows});
  watch.version = version;
  watch.reported = {state};
  return watch;
}

TEST(MadeRoom, AsksForAsMuchOfARivalAsItWasMadeRoomForWith) {
  MadeRoom room;
  const Watch runs = watch_with(kRuns, true, TrialState::kComparing);
  const Watch rival = watch_with(kRival, false, TrialState::kComparing);
  EXPECT_EQ(room.gain_to_beat(runs, 0), kMinGainBesideRival);
  EXPECT_EQ(room.gain_to_beat(rival, 0), 0);
  room.note_loss(watch_with(kRuns, true), 0, 0.6);
  EXPECT_EQ(room.gain_to_beat(rival, 0), 0.6);
  EXPECT_EQ(room.gain_to_beat(watch_with(kRival, false, TrialState::kKept), 0), 0) << "it was won before";
  EXPECT_EQ(room.note_loss(watch_with(kRival, false), 0, 0.4), (std::vector{kRuns, kFollows}))
      << "it gained less";
  EXPECT_EQ(room.gain_to_beat(rival, 0), 0) << "nothing waits any more";
}

TEST(MadeRoom, HasWhatGainedTriedAgainOnceItsRivalLost) {
  const auto after = [&](double gain, bool has_rival) {
    MadeRoom room;
    EXPECT_TRUE(room.note_loss(watch_with(kRuns, has_rival), 0, gain).empty()) << "its rival is tried first";
    const auto again = room.note_loss(watch_with(kRival, false), 0, -0.1);
    EXPECT_TRUE(room.note_loss(watch_with(kRival, false), 0, -0.1).empty()) << "once";
    return again;
  };
  EXPECT_EQ(after(0.4, true), (std::vector{kRuns, kFollows}));
  EXPECT_TRUE(after(0.01, true).empty()) << "it lost by itself";
  EXPECT_TRUE(after(0.4, false).empty()) << "it made no room";
}

}  // namespace
}  // namespace hindsight::rt
