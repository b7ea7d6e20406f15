// The numbers that trials go by, each with where it comes from. docs/PARAMETERS.md is printed from kTrialParameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/provenance.h"
#include "jit/abi/traversal_history.h"
#include "runtime/adaptive/experiments/exchange_trial.h"

namespace hindsight::rt {

// ---------------------------------------------------------------- loops: experiments/loop_trial.h
inline constexpr uint32_t kPairs = 16;
inline constexpr uint32_t kTunePairs = 6;
inline constexpr uint32_t kCheckPairs = 4;
inline constexpr uint32_t kGiveUpPairs = 4;
inline constexpr double kGiveUpLoss = 0.15;
inline constexpr double kMinGain = 0.05;
inline constexpr double kMinTuneGain = 0.015;
inline constexpr double kChunkSeconds = 0.0004;
inline constexpr size_t kMinStripsPerChunk = 5;
inline constexpr size_t kMinStripsThatAgree = 3;
inline constexpr double kAgreement = 0.02;
inline constexpr double kStripSeconds = 0.00008;
inline constexpr double kIdleStripSeconds = 0.002;
inline constexpr uint32_t kMinStrip = 64, kMaxStrip = 1u << 24;
inline constexpr double kCheckSeconds = 3.0;
inline constexpr double kMostCheckSeconds = 24.0;
inline constexpr double kPausedSeconds = 60;
inline constexpr double kMovedRatio = 1.25;
inline constexpr double kLeastPatience = 0.1;
inline constexpr double kMissSeconds = 150e-9;
inline constexpr double kLeastTimeLeft = 1.0 / 3;
inline constexpr uint32_t kLadder[] = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128};

// ---------------------------------------------------------------- histories: history_watch.h
inline constexpr uint32_t kStripsToKnow = 4;
inline constexpr uint32_t kStripsToForget = 4;
inline constexpr uint64_t kMostTurnsLearning = 2 * uint64_t{jit::kHistoryCapacity};
inline constexpr uint64_t kLeastTurnsToReanchor = 65536;

// ---------------------------------------------------------------- timed loads: timed_loads.h
inline constexpr double kTimedEverySeconds = 200e-6;
inline constexpr double kTimedEverySecondsLater = 5e-3;
inline constexpr uint64_t kTimedEnough = 256;

// ---------------------------------------------------------------- versions: version_trials.h
inline constexpr double kVersionCountingSeconds = 0.05;
inline constexpr double kMostVersionCountingSeconds = 0.5;
inline constexpr double kMostVersionSeconds = 20;
inline constexpr double kMostVersionCallsASecond = 1e7;

namespace trial_table {
using enum Unit;
using enum Provenance::Origin;
inline constexpr ExchangeTrial::Rule kPlacements = ExchangeTrial::for_placements(),
                                     kVersions = ExchangeTrial::for_versions();
inline constexpr CallChunk::Pace kPace;
}  // namespace trial_table

inline constexpr std::array kTrialParameters = [] {
  using namespace trial_table;
  return std::array{
      Constant{"kPairs",
               kPairs,
               {kCount, kMeasured,
                "chunks an arm for a verdict: 4 named the better of branch and select "
                "in 99.3 to 100 % of trials, prefetches differ by less"}},
      Constant{"kTunePairs",
               kTunePairs,
               {kCount, kBound, "for a step of the climb: a wrong one costs a few percent"}},
      Constant{"kCheckPairs",
               kCheckPairs,
               {kCount, kBound, "for a look at what is kept: what it says is measured again in full"}},
      Constant{"kGiveUpPairs",
               kGiveUpPairs,
               {kCount, kBound, "after which a change that loses clearly is measured no further"}},
      Constant{
          "kGiveUpLoss", kGiveUpLoss, {kShare, kBound, "clearly: three times what would have to be won"}},
      Constant{"kMinGain",
               kMinGain,
               {kShare, kMeasured,
                "to be kept: the same code was seen in two steady states, and chunks of "
                "one loop differ by 2 %"}},
      Constant{"kMinTuneGain",
               kMinTuneGain,
               {kShare, kBound, "for another distance: near the best ones differ by 5 % or less"}},
      Constant{"kChunkSeconds",
               kChunkSeconds,
               {kSeconds, kMeasured,
                "of a chunk whose strips disagree: verdicts come in 20 to 120 ms "
                "(docs/MEASURING.md)"}},
      Constant{"kMinStripsPerChunk",
               kMinStripsPerChunk,
               {kCount, kBound, "so that the median passes over an interrupted strip"}},
      Constant{"kMinStripsThatAgree",
               kMinStripsThatAgree,
               {kCount, kMeasured,
                "to end a chunk early: verdicts stayed the same "
                "and came in 0.3 to 1 of the time"}},
      Constant{"kAgreement", kAgreement, {kShare, kMeasured, "with the median, to agree; as above"}},
      Constant{"kStripSeconds",
               kStripSeconds,
               {kSeconds, kDerived, "while measuring: ending a strip takes some 0.1 us, a thousandth"}},
      Constant{"kIdleStripSeconds", kIdleStripSeconds, {kSeconds, kBound, "while not"}},
      Constant{"kMinStrip", kMinStrip, {kCount, kBound, "turns of a strip, where one takes microseconds"}},
      Constant{"kMaxStrip", kMaxStrip, {kCount, kBound, "and where it takes next to nothing"}},
      Constant{"kCheckSeconds",
               kCheckSeconds,
               {kSeconds, kBound, "between looks at what is kept: 8 chunks of 0.4 ms in 3 s are 0.1 %"}},
      Constant{"kMostCheckSeconds",
               kMostCheckSeconds,
               {kSeconds, kBound, "between looks at what is paused, doubling up to it"}},
      Constant{"kPausedSeconds",
               kPausedSeconds,
               {kSeconds, kBound, "after which what still does not pay is rejected"}},
      Constant{"kMovedRatio",
               kMovedRatio,
               {kFactor, kSwept, "of times an iteration, from which the program does something else"}},
      Constant{
          "kLeastPatience", kLeastPatience, {kSeconds, kBound, "with such a change, before it is looked at"}},
      Constant{"kMissSeconds",
               kMissSeconds,
               {kSeconds, kMeasured,
                "a line from memory while others are under way: 100 to 180 ns "
                "on the machines measured"}},
      Constant{"kLeastTimeLeft",
               kLeastTimeLeft,
               {kShare, kDerived,
                "of an iteration without its stalls: a bare gather runs at "
                "8.7 ns where a core tops out at 6.5 a line"}},
      Constant{"kLadder, its end",
               kLadder[std::size(kLadder) - 1],
               {kCount, kMeasured,
                "distances from 2 up: 16 to 32 are best "
                "nearly everywhere, 4 is 55 % and 128 up to 15 % below"}},

      Constant{"kStripsToKnow",
               kStripsToKnow,
               {kCount, kBound, "in a row, of turns that mostly came as remembered"}},
      Constant{
          "kStripsToForget", kStripsToForget, {kCount, kBound, "in a row, of turns that mostly did not"}},
      Constant{"kMostTurnsLearning",
               kMostTurnsLearning,
               {kCount, kDerived,
                "twice what a history has room for: one traversal to "
                "learn, one to see it come again"}},
      Constant{"kLeastTurnsToReanchor",
               kLeastTurnsToReanchor,
               {kCount, kBound,
                "before an anchor is given up: short periods come "
                "and go"}},

      Constant{"kTimedEverySeconds",
               kTimedEverySeconds,
               {kSeconds, kDerived, "a timed load takes 0.04 to 0.3 us: below 0.2 %"}},
      Constant{
          "kTimedEverySecondsLater", kTimedEverySecondsLater, {kSeconds, kBound, "once there are enough"}},
      Constant{"kTimedEnough",
               kTimedEnough,
               {kCount, kMeasured,
                "of a load: the mean of 32 names its level in 97 to 100 % of places, "
                "this many in each of its phases"}},

      Constant{"Rule::pairs",
               kPlacements.pairs,
               {kCount, kDerived, "of the other code and the one before, in turns"}},
      Constant{"Rule::least_pairs_ahead",
               kPlacements.least_pairs_ahead,
               {kCount, kDerived,
                "of 12 pairs without a difference 10 or "
                "more are ahead in 2 % of trials"}},
      Constant{"Rule::least_gain, of placements",
               kPlacements.least_gain,
               {kShare, kBound,
                "the same instructions: what is surely a "
                "gain is worth having"}},
      Constant{"Rule::least_gain, of versions",
               kVersions.least_gain,
               {kShare, kBound,
                "a second version takes memory, and what it "
                "replaces had a reason"}},
      Constant{"Rule::least_calls, of placements",
               static_cast<double>(kPlacements.least_calls),
               {kCount, kBound, "of a chunk, to count"}},
      Constant{"Rule::least_calls, of versions",
               static_cast<double>(kVersions.least_calls),
               {kCount, kBound,
                "of a chunk, to count: "
                "calls take milliseconds there"}},
      Constant{"Rule::least_seconds, of placements",
               kPlacements.least_seconds,
               {kSeconds, kBound, "of CPU time in a chunk"}},
      Constant{"Rule::least_seconds, of versions",
               kVersions.least_seconds,
               {kSeconds, kBound, "of CPU time in a chunk"}},
      Constant{"Rule::most_idle_chunks, of placements",
               kPlacements.most_idle_chunks,
               {kCount, kBound,
                "that do not count, after which "
                "the trial ends without a claim"}},
      Constant{
          "Rule::most_idle_chunks, of versions", kVersions.most_idle_chunks, {kCount, kBound, "the same"}},
      Constant{"Pace::least_seconds",
               kPace.least_seconds,
               {kSeconds, kMeasured,
                "of a chunk: the monitor comes round each millisecond, "
                "a twentieth; in turns of 0.1 s a verdict took 0.6 s, now 0.13"}},
      Constant{"Pace::least_calls",
               static_cast<double>(kPace.least_calls),
               {kCount, kBound, "of a chunk that begins and ends with a call"}},
      Constant{"Pace::most_seconds",
               kPace.most_seconds,
               {kSeconds, kBound, "of a chunk, with as many calls as there were"}},
      Constant{"kVersionCountingSeconds",
               kVersionCountingSeconds,
               {kSeconds, kBound, "to see how often a function is called"}},
      Constant{"kMostVersionCountingSeconds",
               kMostVersionCountingSeconds,
               {kSeconds, kBound, "of CPU time, to see it called at all"}},
      Constant{
          "kMostVersionSeconds", kMostVersionSeconds, {kSeconds, kBound, "for counting, and for comparing"}},
      Constant{"kMostVersionCallsASecond",
               kMostVersionCallsASecond,
               {kHertz, kDerived,
                "counting a call takes some ns: more would be a "
                "part of what is measured"}},
  };
}();

}  // namespace hindsight::rt
