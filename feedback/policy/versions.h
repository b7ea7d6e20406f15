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
// and what all such trials together cost all guests is bounded by max_version_trial_share.
//
// A nest has such trials too. And it is compared, once nothing else of it is undecided, with a version that has no change at
// all. Trials of loops compare each change with the same code in which it is switched off. That code is not always as
// good as code that never had it: registers and layout are for both. So what was won there may still lose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "feedback/policy/policy.h"
#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

// Evidence about a function whose optimized version has nothing else on trial.
struct VersionEvidence {
  std::vector<jit::ChangeKind> there;  // which changes of versions are in its code
  WasmOffset at;                       // of a nest, its loop: where these stand (version_site)
  bool may_be_plain = false;           // it has changes, and was not compared with a version without any
  ChangeLedger changes;                // what earlier trials said of these
  double seconds_published = 0;        // CPU time in the version
  double share = 0;                    // of the samples of late of all functions, 0..1
  double compile_seconds = 0;          // what the version took
  double guest_seconds = 0;            // CPU time of all guests so far
  double seconds_lost = 0;             // of these, by trials of versions
};

struct VersionTrialPlan {
  bool tries = false;                      // else nothing is to be tried
  std::optional<jit::ChangeKind> without;  // empty: without all changes
  std::vector<Alternative> alternatives;
  std::string reason;
};

VersionTrialPlan decide_version_trial(const VersionEvidence& evidence, const PolicyConfig& config);

}  // namespace hindsight::feedback
