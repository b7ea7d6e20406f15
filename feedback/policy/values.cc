#include "feedback/policy/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/branches.h"

namespace hindsight::feedback {
namespace {

double usual_share(const ValueEvidence& v) {
  return v.records == 0 || v.values.empty()
             ? 0
             : static_cast<double>(v.values.front().records) / static_cast<double>(v.records);
}

// What an execution with the usual operand gains.
double seconds_saved(const ValueEvidence& v, const PolicyConfig& config) {
  switch (v.site) {
    case ValueSite::kDivisor:
      return config.seconds_divided;
    case ValueSite::kWideDivisor:
      return config.seconds_divided_wide;
    case ValueSite::kByteCount:
      return config.seconds_asked_to_copy;
    case ValueSite::kTripCount:
      return config.seconds_looped;
  }
  return 0;
}

// Over the time in which the records were made.
double estimated_seconds(const ValueEvidence& v, const PolicyConfig& config) {
  return static_cast<double>(v.records) * config.calls_per_record * usual_share(v) * seconds_saved(v, config);
}

// Usually the same, and code for it can be had and matters: of what the function would take without it.
bool promising(const ValueEvidence& v, const FunctionEvidence& e, const PolicyConfig& config) {
  if (v.values.empty() || usual_share(v) < config.min_value_share) return false;
  if (v.site == ValueSite::kByteCount && v.values.front().value > jit::kMostUsualBytes) return false;
  if (v.site == ValueSite::kTripCount && v.values.front().value > jit::kMostUsualTurns) return false;
  // Records do not decay, as the time in which they were made does not.
  const double seconds = std::max(e.seconds_baseline, e.seconds_run_baseline) / config.optimized_speedup;
  return estimated_seconds(v, config) >= config.min_value_gain * seconds;
}

std::string words_of(const ValueEvidence& v) {
  return fmt::format("the {}{} at 0x{:x} is {} in {} of {} records", to_string(v.site),
                     v.site == ValueSite::kTripCount ? " of the loop" : "", v.at.value,
                     v.values.front().value, v.values.front().records, v.records);
}

}  // namespace

std::vector<ValuePlan> plan_values(const FunctionEvidence& e, const PolicyConfig& config) {
  std::vector<ValuePlan> plans;
  if (!config.values) return plans;
  for (const ValueEvidence& v : e.values) {
    if (plans.size() >= config.max_usual_values) break;
    const bool fresh = v.outcome == PrefetchOutcome::kNone &&
                       static_cast<double>(v.records) >= config.min_value_records && promising(v, e, config);
    if (v.values.empty() || (!in_use(v.outcome) && !fresh)) continue;
    ValuePlan plan;
    plan.hint.at = v.at;
    plan.hint.value = v.values.front().value;
    plan.hint.share = std::min(1.0, usual_share(v));
    plan.estimated_gain = estimated_seconds(v, config);
    plan.reason = words_of(v);
    plans.push_back(std::move(plan));
  }
  return plans;
}

const ValueEvidence* not_usual_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.values) return nullptr;
  const auto waits = [&](const ValueEvidence& v) {
    return v.outcome == PrefetchOutcome::kNone &&
           static_cast<double>(v.records) >= config.min_value_records_to_wait &&
           static_cast<double>(v.records) < config.min_value_records && promising(v, e, config);
  };
  const auto found = std::find_if(e.values.begin(), e.values.end(), waits);
  return found == e.values.end() ? nullptr : &*found;
}

void offer_values(FunctionPlan& plan, const std::vector<ValuePlan>& values, double cost, double gain) {
  if (values.empty()) return;
  double more = 0;
  for (const ValuePlan& v : values) more += v.estimated_gain;
  plan.alternatives.push_back({fmt::format("optimize + code for what {} operand{} usually {}", values.size(),
                                           values.size() == 1 ? "" : "s", values.size() == 1 ? "is" : "are"),
                               cost, gain + more});
}

}  // namespace hindsight::feedback
