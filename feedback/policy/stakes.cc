#include "feedback/policy/stakes.h"

#include <algorithm>
#include <map>

namespace hindsight::feedback {
namespace {

// Of late, in all its loops: what is in an inner one is not in the one around it.
double seconds_in_nest(const FunctionEvidence& evidence, LoopIndex root) {
  double seconds = 0;
  for (const LoopEvidence& loop : evidence.loops)
    if (is_in(evidence.loops[root.value], loop.offset))
      seconds += loop.seconds_baseline + loop.seconds_optimized;
  return seconds;
}

// What the loop of a traversal stalls on, in stalls of the load that it goes by. Where that load's pointers are known ahead,
// all that is reached from them is under way sooner.
double stalls_of_traversal(const FunctionEvidence& evidence, WasmOffset at) {
  const LoopEvidence* around = nullptr;
  for (const LoopEvidence& loop : evidence.loops)
    if (is_in(loop, at) && (around == nullptr || is_in(*around, loop.offset))) around = &loop;
  double own = 0, all = 0;
  for (const LoadEvidence& load : evidence.loads) {
    if (load.load == at) own += load.stall_samples;
    if (around != nullptr && is_in(*around, load.load)) all += load.stall_samples;
  }
  return own > 0 ? std::max(all / own, 1.0) : 1;
}

}  // namespace

double share_won(const TrialRecord& record, const PolicyConfig& config) {
  return (record.won + config.trials_assumed / 2) / (record.won + record.lost + config.trials_assumed);
}

double price_of_trying(const TrialRecord& record, const PolicyConfig& config) {
  return std::clamp(record.taken, config.min_taken_by_compiles, 1.0) / share_won(record, config);
}

bool is_worth_trying(const Stake& stake, const TrialRecord& record, const PolicyConfig& config) {
  return stake.seconds_run * stake.may_save >= price_of_trying(record, config) * stake.compile_seconds;
}

double may_save(const FunctionPlan& plan, const FunctionEvidence& evidence) {
  const double seconds = plan.nest ? seconds_in_nest(evidence, *plan.nest)
                                   : evidence.seconds_baseline + evidence.seconds_optimized;
  std::map<WasmOffset, double> by_load;
  double share = 0;
  for (const Candidate& candidate : plan.candidates) {
    if (jit::is_of_version(candidate.kind())) continue;
    if (jit::is_of_load(candidate.kind())) {
      double& best = by_load[candidate.at()];
      const bool of_traversal = candidate.kind() == jit::ChangeKind::kJumpPointers;
      best = std::max(best, candidate.estimate.share *
                                (of_traversal ? stalls_of_traversal(evidence, candidate.at()) : 1));
    } else if (seconds > 0) {
      share += candidate.estimate.seconds / seconds;
    }
  }
  for (const auto& [load, best] : by_load) share += best;
  return std::min(share, 1.0);
}

}  // namespace hindsight::feedback
