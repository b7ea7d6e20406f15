// Trials of whole versions: which decision is worth being weighed against none. It is a decision that is part of a
// function's code, and of no single loop in it. Pure, like every decision.
//
// Inlined targets of calls, weights of branches, and cold parts that lie apart are all over a function's code. To see
// what one of them gives, the function is compiled once more without it. Then both versions run in turns
// (runtime/adaptive/experiments/version_trials.h). With t what the function ran in its version so far, taken as what is
// still to come,
//
//     gain = t * version_gain, should the decision turn out not to pay
//     cost = background_cost * what the compile took + seconds_of_version_trial * version_gain, should it turn out to pay
//
// and what all such trials together cost all guests is bounded by max_version_trial_share. A nest has such trials too.
//
// The watchdog: once nothing else of a version is undecided it is compared with one that has no change at all. Trials of
// loops compare each change with the same code in which it is switched off. That code is not always as good as code that
// never had it: registers and layout are for both. So what was won there may still lose. What was decided in an earlier run
// had its trial there, if any. In place of background_cost stands the price of trying (stakes.h), by how many of these
// comparisons the version without changes has won in this process. What the trial costs beside the compile goes by what that
// version lost the last time, or one without a single decision, if that was more than version_gain.
//
// A version that was compared is so again once it ran as long again as it had by then: a program may have changed. So is any
// trial in which nothing was found out, as for a function that was hardly called. From then on t is what it ran since.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "feedback/policy/policy.h"
#include "feedback/policy/stakes.h"
#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

// Evidence about a function whose optimized version has nothing else on trial.
struct VersionEvidence {
  std::vector<jit::ChangeKind> there;  // changes of versions in its code that can be left out one by one
  WasmOffset at;                       // of a nest, its loop: where these stand (version_site)
  bool is_changed = false;             // it has any changes
  ChangeLedger changes;                // what earlier trials said of these
  // CPU time in the version by its last trial that leaves nothing but to try again (0: there was none), and since then.
  double seconds_tried = 0;
  double seconds_since_tried = 0;
  double known_gain = 0;         // its rate over that of one without any change - 1, as far as trials said it
  double share = 0;              // of the samples of late of all functions, 0..1
  double compile_seconds = 0;    // what the version took
  bool has_plain = false;        // one without any change is there still: that need not be compiled
  TrialRecord comparisons = {};  // with versions without any change: `won` by these
  double guest_seconds = 0;      // CPU time of all guests so far
  double seconds_lost = 0;       // of these, by trials of versions
};

struct VersionTrialPlan {
  bool tries = false;                      // else nothing is to be tried
  std::optional<jit::ChangeKind> without;  // empty: without all changes
  std::vector<Alternative> alternatives;
  std::string reason;
};

VersionTrialPlan decide_version_trial(const VersionEvidence& evidence, const PolicyConfig& config);

}  // namespace hindsight::feedback
