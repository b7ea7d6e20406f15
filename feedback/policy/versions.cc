#include "feedback/policy/versions.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::feedback {
namespace {

// The one that can cost most when it is wrong comes first. A trial that did not end leaves it open.
std::optional<jit::ChangeKind> open_decision(const VersionEvidence& e) {
  for (const jit::ChangeKind kind : jit::kVersionChanges) {
    const bool there = std::find(e.there.begin(), e.there.end(), kind) != e.there.end();
    if (there && !judged(e.changes.state(version_site(kind, e.at)))) return kind;
  }
  return std::nullopt;
}

// Of the time in the other version, should that turn out to be slower.
double share_lost(const VersionEvidence& e, bool of_one_change, const PolicyConfig& config) {
  if (of_one_change) return config.version_gain;
  return std::max(config.version_gain, 1 - 1 / (1 + std::max(0.0, e.known_gain)));
}

}  // namespace

VersionTrialPlan decide_version_trial(const VersionEvidence& e, const PolicyConfig& config) {
  VersionTrialPlan plan;
  const std::optional<jit::ChangeKind> change = open_decision(e);
  if (!change && !e.is_changed) {
    plan.reason = "no change of the version is undecided";
    return plan;
  }
  if (e.seconds_since_tried < e.seconds_tried) {
    plan.reason =
        fmt::format("was tried after {:.1f} s, and ran {:.1f} s since: waits until it ran as long again",
                    e.seconds_tried, e.seconds_since_tried);
    return plan;
  }
  const double seconds = e.seconds_since_tried;
  const double compile = change || !e.has_plain ? e.compile_seconds : 0;
  const double price = change ? config.background_cost : price_of_trying(e.comparisons, config);
  const double gain = seconds * config.version_gain;
  const double lost = config.seconds_of_version_trial * share_lost(e, change.has_value(), config);
  const double cost = price * compile + lost;
  plan.alternatives.push_back({"nothing", 0, 0});
  plan.alternatives.push_back(
      {fmt::format("try it without {}, in a second version", change ? to_string(*change) : "all changes"),
       cost, gain});
  if (seconds < config.min_version_seconds) {
    plan.reason = fmt::format("ran {:.0f} ms in this version: too new to try", 1e3 * seconds);
  } else if (e.share < config.min_version_share) {
    plan.reason = fmt::format("holds {:.0f} % of the recent samples: too few to try", 100 * e.share);
  } else if (gain <= cost) {
    plan.reason = fmt::format("a trial gains about {:.1f} ms and costs {:.1f} ms", 1e3 * gain, 1e3 * cost);
  } else if (e.seconds_lost + lost > config.max_version_trial_share * e.guest_seconds) {
    plan.reason = fmt::format("trials cost {:.0f} ms of {:.1f} s already: waits", 1e3 * e.seconds_lost,
                              e.guest_seconds);
  } else {
    plan.tries = true;
    plan.without = change;
    plan.reason = fmt::format(
        "holds {:.0f} % of the recent samples, {:.1f} s in this version{}: a trial gains about {:.1f} ms and "
        "costs {:.1f} ms",
        100 * e.share, seconds, e.seconds_tried > 0 ? " since it was tried last" : "", 1e3 * gain,
        1e3 * cost);
  }
  return plan;
}

}  // namespace hindsight::feedback
