// Values: an operator whose operand is the same number in most of its executions may have code for that number, after a
// comparison. It is for divisors, the byte counts of copies and fills, and trip counts of inner loops. What one execution
// gains is a constant, how often it is executed the records say. After Calder, Feller and Eustace, "Value Profiling",
// MICRO 1997. A trial has the last word.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/loads.h"

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

// A hot operator whose operand was the same so far, but of which too little was seen yet. The next compile is the last
// time that this can be seen. Null: there is none.
const ValueEvidence* not_usual_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.changes[jit::ChangeKind::kValue]) return nullptr;
  const auto waits = [&](const ValueEvidence& v) {
    return e.changes.state({jit::ChangeKind::kValue, v.at}) == ChangeState::kNone &&
           static_cast<double>(v.records) >= config.min_value_records_to_wait &&
           static_cast<double>(v.records) < config.min_value_records && promising(v, e, config);
  };
  const auto found = std::find_if(e.values.begin(), e.values.end(), waits);
  return found == e.values.end() ? nullptr : &*found;
}

class Values final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kValue};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    if (!config.changes[kKind[0]]) return;
    size_t proposed = 0;
    for (const ValueEvidence& v : e.values) {
      if (proposed >= config.max_usual_values) break;
      const ChangeState state = e.changes.state({kKind[0], v.at});
      const bool fresh = state == ChangeState::kNone &&
                         static_cast<double>(v.records) >= config.min_value_records &&
                         promising(v, e, config);
      if (v.values.empty() || (!in_use(state) && !fresh)) continue;
      const jit::UsualValue usual{.value = v.values.front().value, .share = std::min(1.0, usual_share(v))};
      out.push_back({.request = {.site = {kKind[0], v.at}, .what = usual},
                     .estimate = {.seconds = estimated_seconds(v, config)},
                     .reason = words_of(v)});
      ++proposed;
    }
  }

  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const override {
    const ValueEvidence* const operand = not_usual_yet(e, config);
    if (operand == nullptr || e.seconds_baseline >= config.max_seconds_to_wait_for_values)
      return std::nullopt;
    return Wait{fmt::format(
        "hot, and the {} at 0x{:x} is {} in {} of {} records: waits up to {:.0f} ms for {:.0f} records",
        to_string(operand->site), operand->at.value, operand->values.front().value,
        operand->values.front().records, operand->records, 1e3 * config.max_seconds_to_wait_for_values,
        config.min_value_records)};
  }

  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("specialize code for the usual value of {} operand{}", count, plural(count),
                       count == 1 ? "is" : "are");
  }
};

}  // namespace

const ChangePolicy& values_policy() {
  static const Values policy;
  return policy;
}

}  // namespace hindsight::feedback
