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
inline constexpr uint32_t kMostPairs = 64;
inline constexpr uint32_t kTunePairs = 6;
inline constexpr uint32_t kCheckPairs = 4;
inline constexpr uint32_t kGiveUpPairs = 4;
inline constexpr double kGiveUpLoss = 0.15;
inline constexpr uint32_t kGiveUpPairsAtOnce = 2;
inline constexpr double kGiveUpLossAtOnce = 0.33;
inline constexpr double kHopelessLoss = 0.2;
inline constexpr double kMinGain = 0.05;
inline constexpr double kMinGainBesideRival = 1;
inline constexpr double kMinTuneGain = 0.015;
inline constexpr double kChunkSeconds = 0.0004;
inline constexpr size_t kMinStripsPerChunk = 5;
inline constexpr size_t kMinStripsThatAgree = 3;
inline constexpr double kAgreement = 0.02;
inline constexpr double kStripSeconds = 0.00008;
inline constexpr double kIdleStripSeconds = 0.002;
inline constexpr double kMostStripTimes = 4;
inline constexpr uint32_t kStripsApart = 3;
inline constexpr uint32_t kMinStrip = 64, kMaxStrip = 1u << 24;
inline constexpr double kFirstCheckSeconds = 0.05;
inline constexpr double kCheckSeconds = 3.0;
inline constexpr double kMostCheckSeconds = 24.0;
inline constexpr double kPausedSeconds = 1;
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
inline constexpr double kMostLearningSeconds = 0.02;
inline constexpr double kMostLearningShare = 0.005;
inline constexpr double kMinPairsToBeTooDear = 8;

// ---------------------------------------------------------------- timed loads: timed_loads.h
inline constexpr double kTimedEverySeconds = 200e-6;
inline constexpr double kTimedEverySecondsLater = 5e-3;
inline constexpr uint64_t kTimedEnough = 256;

// ---------------------------------------------------------------- versions: version_trials.h
inline constexpr double kVersionCountingSeconds = 0.05;
inline constexpr double kMostVersionCountingSeconds = 0.5;
inline constexpr double kMostVersionSeconds = 20;
inline constexpr double kNestChunkSeconds = 0.01;
inline constexpr double kMostVersionCallsASecond = 1e7;
inline constexpr double kCompilerOpeningSeconds = 0.016;

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
                "takes so many chunks an arm for a verdict. 4 named the better of branch and select in 99.3 "
                "to 100 % of trials; prefetches differ by less"}},
      Constant{
          "kTunePairs",
          kTunePairs,
          {kCount, kBound, "takes so many for a step of the climb, where a wrong one costs a few percent"}},
      Constant{"kMostPairs",
               kMostPairs,
               {kCount, kDerived,
                "measures up to so many pairs where the medians gain and too few pairs do: 40 of them are as "
                "sure as 12 "
                "of 16"}},
      Constant{"kCheckPairs",
               kCheckPairs,
               {kCount, kBound,
                "takes so many to check what is kept; a verdict against it is measured again in full"}},
      Constant{"kGiveUpPairs",
               kGiveUpPairs,
               {kCount, kBound, "ends the trial of a change that loses clearly after so many"}},
      Constant{"kGiveUpLoss",
               kGiveUpLoss,
               {kShare, kBound, "calls a loss clear at three times the gain that is asked for"}},
      Constant{"kGiveUpPairsAtOnce",
               kGiveUpPairsAtOnce,
               {kCount, kBound, "ends it after so many where each is lost, and by much"}},
      Constant{
          "kGiveUpLossAtOnce",
          kGiveUpLossAtOnce,
          {kShare, kBound, "which is a third of the iterations in a time: half as much time again for each"}},
      Constant{"kHopelessLoss",
               kHopelessLoss,
               {kShare, kMeasured,
                "tries no other distance or width after such a loss: of 81 trials of 60 programs 14 began "
                "so, and none of "
                "them was kept"}},
      Constant{"kMinGain",
               kMinGain,
               {kShare, kMeasured,
                "keeps a change from this gain: the same code ran in two steady states, and chunks of one "
                "loop differ by 2 %"}},
      Constant{"kMinGainBesideRival",
               kMinGainBesideRival,
               {kShare, kMeasured,
                "asks for so much where another change of the load waits that may give more: iterations that "
                "ran ahead gave 20 "
                "to 51 % where a prefetch gave 170 to 210, and 236 to 310 % where one gave half of that"}},
      Constant{"kMinTuneGain",
               kMinTuneGain,
               {kShare, kBound,
                "takes another distance from this gain: near the best ones differ by 5 % or less"}},
      Constant{"kChunkSeconds",
               kChunkSeconds,
               {kSeconds, kMeasured,
                "ends a chunk whose strips disagree after so long: verdicts come in 20 to 120 ms "
                "(docs/MEASURING.md)"}},
      Constant{"kMinStripsPerChunk",
               kMinStripsPerChunk,
               {kCount, kBound, "lets the median pass over an interrupted strip"}},
      Constant{"kMinStripsThatAgree",
               kMinStripsThatAgree,
               {kCount, kMeasured,
                "ends a chunk early when so many strips agree: verdicts stayed the same and came in 0.3 to 1 "
                "of the time"}},
      Constant{"kAgreement",
               kAgreement,
               {kShare, kMeasured,
                "takes strips within this share of the median to agree; measured with kMinStripsThatAgree"}},
      Constant{"kStripSeconds",
               kStripSeconds,
               {kSeconds, kDerived,
                "lasts so long while measuring: ending a strip takes some 0.1 us, a thousandth"}},
      Constant{
          "kIdleStripSeconds", kIdleStripSeconds, {kSeconds, kBound, "lasts so long while not measuring"}},
      Constant{"kMostStripTimes",
               kMostStripTimes,
               {kFactor, kBound,
                "calls a strip too long that takes so many times what it is to last, and shortens it"}},
      Constant{"kStripsApart",
               kStripsApart,
               {kCount, kBound,
                "if two long ones stand so near to each other: one alone may have been interrupted"}},
      Constant{
          "kMinStrip", kMinStrip, {kCount, kBound, "bounds a strip of iterations that take microseconds"}},
      Constant{
          "kMaxStrip", kMaxStrip, {kCount, kBound, "bounds a strip of iterations that take next to nothing"}},
      Constant{"kFirstCheckSeconds",
               kFirstCheckSeconds,
               {kSeconds, kBound,
                "checks what is kept so soon, then after twice as long each time: programs begin with phases "
                "of tenths "
                "of a second, and what was won in one may lose in the next"}},
      Constant{
          "kCheckSeconds",
          kCheckSeconds,
          {kSeconds, kBound, "checks what is kept so often in the end: 8 chunks of 0.4 ms in 3 s are 0.1 %"}},
      Constant{"kMostCheckSeconds",
               kMostCheckSeconds,
               {kSeconds, kBound, "checks what is paused ever less often, down to this"}},
      Constant{
          "kPausedSeconds",
          kPausedSeconds,
          {kSeconds, kBound,
           "rejects what is paused so long, looked at five times, and still does not pay: the copy of a loop "
           "beside another one was seen to take 10 % longer than alone"}},
      Constant{"kMovedRatio",
               kMovedRatio,
               {kFactor, kSwept,
                "takes the program to have changed when an iteration takes so much more or less time"}},
      Constant{"kLeastPatience",
               kLeastPatience,
               {kSeconds, kBound, "waits so long with such a change before the check"}},
      Constant{"kMissSeconds",
               kMissSeconds,
               {kSeconds, kMeasured,
                "takes a line from memory to be so long under way where the machine is not calibrated: 100 "
                "to 180 ns on the machines measured, while others are under way too"}},
      Constant{"kLeastTimeLeft",
               kLeastTimeLeft,
               {kShare, kDerived,
                "takes this share of an iteration to be no stall. A bare gather runs at 8.7 ns where a core "
                "tops out at 6.5 a line"}},
      Constant{"kLadder, its end",
               kLadder[std::size(kLadder) - 1],
               {kCount, kMeasured,
                "ends the distances to try, from 2 up: 16 to 32 are best nearly everywhere, 4 is 55 % and "
                "128 up to 15 % below"}},

      Constant{"kStripsToKnow",
               kStripsToKnow,
               {kCount, kBound,
                "trusts the history after so many strips in a row whose iterations mostly repeated it"}},
      Constant{"kStripsToForget",
               kStripsToForget,
               {kCount, kBound, "distrusts it after so many in a row that mostly did not"}},
      Constant{
          "kMostTurnsLearning",
          kMostTurnsLearning,
          {kCount, kDerived,
           "gives up after twice what a history holds: one traversal to record, one to see it repeated"}},
      Constant{"kLeastTurnsToReanchor",
               kLeastTurnsToReanchor,
               {kCount, kBound, "keeps an anchor so long, as short periods come and go"}},
      Constant{"kMostLearningSeconds",
               kMostLearningSeconds,
               {kSeconds, kBound, "lets remembering cost so much before anything has come again, and"}},
      Constant{
          "kMostLearningShare", kMostLearningShare, {kShare, kBound, "this share of the loop's time on top"}},
      Constant{
          "kMinPairsToBeTooDear",
          kMinPairsToBeTooDear,
          {kCount, kBound, "finds that out from so many plain strips: one alone may have been interrupted"}},

      Constant{"kTimedEverySeconds",
               kTimedEverySeconds,
               {kSeconds, kDerived, "times a load so often, at 0.04 to 0.3 us each: below 0.2 %"}},
      Constant{"kTimedEverySecondsLater",
               kTimedEverySecondsLater,
               {kSeconds, kBound, "times it so often once there are enough"}},
      Constant{"kTimedEnough",
               kTimedEnough,
               {kCount, kMeasured,
                "times a load so often. The mean of 32 names its level in 97 to 100 % of places, this many "
                "in each of its phases"}},

      Constant{"Rule::pairs",
               kPlacements.pairs,
               {kCount, kDerived, "compares so many chunks of each code, in turns"}},
      Constant{
          "Rule::least_pairs_ahead",
          kPlacements.least_pairs_ahead,
          {kCount, kDerived,
           "asks so many of 12 pairs to be faster; without a difference 10 or more are in 2 % of trials"}},
      Constant{"Rule::least_gain, of placements",
               kPlacements.least_gain,
               {kShare, kBound, "takes any sure gain, as the instructions are the same"}},
      Constant{
          "Rule::least_gain, of versions",
          kVersions.least_gain,
          {kShare, kBound, "asks for more, as a second version takes memory and the first had a reason"}},
      Constant{"Rule::least_calls, of placements",
               static_cast<double>(kPlacements.least_calls),
               {kCount, kBound, "counts a chunk only with so many calls"}},
      Constant{"Rule::least_calls, of versions",
               static_cast<double>(kVersions.least_calls),
               {kCount, kBound, "counts a chunk only with so many calls, which take milliseconds there"}},
      Constant{"Rule::least_seconds, of placements",
               kPlacements.least_seconds,
               {kSeconds, kBound, "counts a chunk only with so much CPU time"}},
      Constant{"Rule::least_seconds, of versions",
               kVersions.least_seconds,
               {kSeconds, kBound, "counts a chunk only with so much CPU time"}},
      Constant{"Rule::most_idle_chunks, of placements",
               kPlacements.most_idle_chunks,
               {kCount, kBound, "ends the trial without a verdict after so many chunks that do not count"}},
      Constant{
          "Rule::most_idle_chunks, of versions", kVersions.most_idle_chunks, {kCount, kBound, "the same"}},
      Constant{"Pace::least_seconds",
               kPace.least_seconds,
               {kSeconds, kMeasured,
                "lets a chunk last so long: the monitor's round of a millisecond is a twentieth; with 0.1 s "
                "a verdict took 0.6 s, now 0.13"}},
      Constant{"Pace::least_calls",
               static_cast<double>(kPace.least_calls),
               {kCount, kBound, "lets a chunk begin and end with a call and have so many"}},
      Constant{"Pace::most_seconds",
               kPace.most_seconds,
               {kSeconds, kBound, "ends a chunk after so long, with the calls that there were"}},
      Constant{"kVersionCountingSeconds",
               kVersionCountingSeconds,
               {kSeconds, kBound, "counts the function's calls so long"}},
      Constant{"kMostVersionCountingSeconds",
               kMostVersionCountingSeconds,
               {kSeconds, kBound, "counts so much CPU time to see it called at all"}},
      Constant{"kMostVersionSeconds",
               kMostVersionSeconds,
               {kSeconds, kBound, "bounds the counting, and the comparing"}},
      Constant{"kNestChunkSeconds",
               kNestChunkSeconds,
               {kSeconds, kBound,
                "lets a chunk of a nest last so long: its iterations are counted, and begin and end where "
                "somebody looks"}},
      Constant{"Rule::pairs_to_be_sure, of versions",
               kVersions.pairs_to_be_sure,
               {kCount, kDerived,
                "ends the trial of a version that wins all of so many pairs by twice the gain that is asked "
                "for: one in "
                "64 does without a difference, and hardly ever by so much"}},
      Constant{"kMostVersionCallsASecond",
               kMostVersionCallsASecond,
               {kHertz, kDerived,
                "measures no function that is called more often: counting a call takes some ns, which would "
                "be measured too"}},
      Constant{"kCompilerOpeningSeconds",
               kCompilerOpeningSeconds,
               {kSeconds, kMeasured,
                "charges opening the compiler to a second version that is its first work in the process: "
                "all that runs came out of the code cache"}},
  };
}();

}  // namespace hindsight::rt
