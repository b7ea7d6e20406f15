// Runs of one module put together. Each run that is added fades all before it by the same factor. So the last
// kHalfLifeRuns runs make up half of what is known, however long the program has been used. What it does now
// weighs more than what it once did, and one odd run does not overturn the rest.
//
// Pure. Counts of the merged profile are sums of faded counts, so ratios keep their denominators. `runs` is
// what the runs themselves have faded to, the denominator of everything that is said per run.
#pragma once

#include <array>

#include "base/provenance.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

inline constexpr double kHalfLifeRuns = 8;
// A verdict on a prefetch that did not pay is forgotten after so many runs that did not renew it. Other input
// may want it, and trying costs milliseconds.
inline constexpr uint32_t kRunsToForgetLosers = 16;
// So many runs after which a decision is forgotten about a function in which no run since has been seen.
inline constexpr uint32_t kRunsToForgetIdle = 32;
inline constexpr size_t kMaxEpisodesKept = 4;  // of a function, or of one loop alone
inline constexpr size_t kMaxPageEpisodesKept = 8;
inline constexpr size_t kMaxLayoutEpisodesKept = 4;
inline constexpr size_t kMaxFunctionsKept = 64;  // with all their evidence
inline constexpr size_t kMaxFunctionsSampled = 256;

inline constexpr std::array kMergeParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  return std::array{
      Constant{"kHalfLifeRuns",
               kHalfLifeRuns,
               {kCount, kBound,
                "lets so many runs weigh as much as all before them, so that one odd run does not overturn "
                "the rest"}},
      Constant{"kRunsToForgetLosers",
               kRunsToForgetLosers,
               {kCount, kBound,
                "tries again what did not pay so many runs ago: other input may want it, and trying costs "
                "milliseconds"}},
      Constant{"kRunsToForgetIdle",
               kRunsToForgetIdle,
               {kCount, kBound,
                "forgets a function that was not seen for so many runs, as input of another kind came"}},
      Constant{
          "kMaxEpisodesKept",
          kMaxEpisodesKept,
          {kCount, kBound, "keeps so many decisions of a function, or of a loop that is compiled alone"}},
      Constant{"kMaxPageEpisodesKept", kMaxPageEpisodesKept, {kCount, kBound, "keeps so many of a module"}},
      Constant{
          "kMaxLayoutEpisodesKept", kMaxLayoutEpisodesKept, {kCount, kBound, "keeps so many of a module"}},
      Constant{"kMaxFunctionsKept",
               kMaxFunctionsKept,
               {kCount, kBound, "keeps so many functions with all their evidence"}},
      Constant{"kMaxFunctionsSampled",
               kMaxFunctionsSampled,
               {kCount, kBound, "keeps the places of the samples of so many functions"}},
  };
}();

// What is left of `runs` runs once others were added.
double fading(double runs);

// `run`, one or several runs, on top of `earlier`. Both are of the same module and options, else what is in
// `run` stays as it is.
//
// For each function the decisions that `run` made itself come after those of before. What it found out about
// decisions it took over goes into them. Decisions about pages stay as the last run that made any left them, and
// what was taken back beside them until it is forgotten.
ModuleProfile merge(ModuleProfile earlier, const ModuleProfile& run);

// Module by module. The parameters of the policy are those of `run`. Modules of the same hash and other
// options are other modules.
ProfileFile merge(ProfileFile earlier, const ProfileFile& run);

// What was seen beyond what the run was seeded with (Profile::seed), so that it is not counted again.
FunctionEvidence without(FunctionEvidence seen, const FunctionEvidence& seed);

}  // namespace hindsight::feedback
