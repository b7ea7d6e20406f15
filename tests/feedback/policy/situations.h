// Situations of the policy, and its answers as text that can be compared: what a change of a parameter flips.
//
// They come from saved profiles, where programs met them. Others are made by hand, where each quantity that a decision
// looks at goes up in steps: what flips nothing there, decides nothing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "feedback/policy/layout.h"
#include "feedback/policy/page_fill.h"
#include "feedback/policy/pages.h"
#include "feedback/policy/populate.h"
#include "feedback/policy/stakes.h"
#include "feedback/policy/start.h"
#include "feedback/policy/versions.h"

namespace hindsight::feedback {

// A function at the start of a module.
struct StartSituation {
  FunctionEvidence evidence;
  Episode::Earlier earlier;
};
// Memory that is being filled, in bytes a second before and since huge pages were asked for.
struct FillSpeeds {
  double before = 0, since = 0;
};

// Pages made ahead of a guest that has come by so many times, and has touched so many blocks of 2 MiB.
struct FillWindow {
  uint32_t advances = 0, touched_blocks = 0;
};
// A memory's growth whose pages are made, after so many such steps.
struct GrowthStep {
  uint64_t populated_steps = 0;
};

struct TrialStake {
  Stake stake;
  TrialRecord record;
};

// A function that runs in its first code: whether what is asked for is worth a second compile, of so many seconds.
struct SecondCompile {
  FunctionEvidence evidence;
  double seconds = 0;
};

struct Situation {
  std::string name;  // what it is about, the same for all of its kind: "a load that stalls"
  std::variant<FunctionEvidence, StartSituation, PageEvidence, PageEpisode, LayoutEvidence, VersionEvidence,
               FillSpeeds, PagePlan, PageProgress, GrowthEvidence, FillWindow, GrowthStep, GrowthTimes,
               TrialStake, SecondCompile>
      evidence;
};

// The kind of decision: "first compile", "later", "start", "pages", "fill", "populate", "layout", "versions".
std::string kind_of(const Situation& situation);
// What is decided, without reasons and estimates.
std::string answer(const Situation& situation, const PolicyConfig& config);

// Each quantity by itself, in steps of a tenth or a fifth.
std::vector<Situation> situations_by_hand();
// What a program was asked about, each function's evidence also as it would have been at an eighth, a quarter and half of
// the time. For profiles hold the moments at which something was done, and none of waiting.
std::vector<Situation> situations_of(const ModuleProfile& module);

// The number of a parameter, by a factor more or less; a count by at least one.
double varied(const Parameter& parameter, const PolicyConfig& config, double factor);

}  // namespace hindsight::feedback
