// Inline calls: the usual targets of calls through a table or a reference stand in place of the call. Testing for them
// costs a comparison where the call through the table costs two checks, and a miss of the branch predictor as before. A
// trial of whole versions (versions.h) may have taken them back: then none.
#include "feedback/policy/changes/inline_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::feedback {
namespace {

struct LikelyTarget {
  uint32_t element;
  double share;
  std::string words;
};

// Estimates the calls at a site since optimized code was published, in records, that went to targets that it has in
// place. They are not recorded there. They are what is left of the calls that baseline code made a second, which
// optimized code makes faster. So few records that no target was believed from them have none in place.
double foreseen_records(const CallEvidence& call, const FunctionEvidence& e, const PolicyConfig& config) {
  // Records do not decay, as the time in which they were made does not.
  const double seconds = std::max(e.seconds_baseline, e.seconds_run_baseline);
  if (static_cast<double>(call.records) < config.min_call_records || seconds <= 0) return 0;
  const double a_second = config.optimized_speedup * static_cast<double>(call.records) / seconds;
  return std::max(0.0, a_second * e.seconds_since_published - static_cast<double>(call.unforeseen_records));
}

// The targets worth a comparison, the likeliest first: of calls that the published code did not foresee, and
// of what was seen before.
std::vector<LikelyTarget> likely_targets(const CallEvidence& call, const FunctionEvidence& e,
                                         const PolicyConfig& config) {
  std::vector<LikelyTarget> likely;
  const bool later = static_cast<double>(call.unforeseen_records) >= config.min_call_records;
  const auto unforeseen = static_cast<double>(call.unforeseen_records);
  // An estimate: what was seen before is not dropped for it where there is room.
  constexpr double kMostUnforeseen = 0.8;
  const double weight =
      !later ? 0
      : static_cast<double>(call.records) < config.min_call_records
          ? 1
          : std::min(kMostUnforeseen, unforeseen / (unforeseen + foreseen_records(call, e, config)));
  const auto add = [&](const std::vector<CallEvidence::Target>& targets, uint64_t records, double part,
                       const char* where) {
    if (static_cast<double>(records) < config.min_call_records) return;
    for (const CallEvidence::Target& target : targets) {
      const double share = part * static_cast<double>(target.records) / static_cast<double>(records);
      const auto same = std::find_if(likely.begin(), likely.end(), [&](const LikelyTarget& other) {
        return other.element == target.element;
      });
      if (same != likely.end()) {
        same->share += share;
        continue;
      }
      likely.push_back({target.element, share,
                        fmt::format("{} {} ({} of {}{})", call.by_reference ? "function" : "element",
                                    target.element, target.records, records, where)});
    }
  };
  if (later) add(call.unforeseen, call.unforeseen_records, weight, " not inlined");
  add(call.targets, call.records, 1 - weight, "");
  std::stable_sort(likely.begin(), likely.end(),
                   [](const LikelyTarget& a, const LikelyTarget& b) { return a.share > b.share; });
  std::erase_if(likely, [&](const LikelyTarget& target) { return target.share < config.min_call_share; });
  if (likely.size() > config.max_call_targets) likely.resize(config.max_call_targets);
  return likely;
}

class InlineCalls final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kInlineCalls};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    if (!config.changes[kKind[0]] ||
        e.changes.state(version_site(kKind[0], e.version_at)) == ChangeState::kRolledBack)
      return;
    for (const CallEvidence& call : e.calls) {
      jit::CallTargets targets;
      targets.by_reference = call.by_reference;
      double coverage = 0;
      std::string words;
      for (const LikelyTarget& target : likely_targets(call, e, config)) {
        targets.targets.push_back({target.element, target.share});
        coverage += target.share;
        words += (words.empty() ? " " : ", ") + target.words;
      }
      if (targets.targets.empty() || coverage < config.min_call_coverage) continue;
      out.push_back(
          {.request = {.site = {kKind[0], call.call}, .what = std::move(targets)},
           .reason = fmt::format("the call at 0x{:x} usually goes through{}", call.call.value, words)});
    }
  }

  std::vector<Reported> report(const Episode& decision, const PolicyConfig& config) const override {
    const std::vector<WasmOffset> asked = decision.asked_for(kKind[0]);
    // The evidence says which they were: the policy is pure.
    std::vector<Candidate> calls;
    propose(decision.evidence, config, calls);
    std::vector<Reported> all;
    for (Candidate& call : calls) {
      if (std::find(asked.begin(), asked.end(), call.at()) == asked.end()) continue;
      const size_t targets = jit::what_of<jit::CallTargets>(call.request).targets.size();
      all.push_back(
          {.at = call.at(),
           .reason = std::move(call.reason),
           .alternatives = {
               "nothing: every call goes through its table",
               fmt::format("inline-calls: compares with {} target{}, saves the call where one matches",
                           targets, targets == 1 ? "" : "s")}});
    }
    return all;
  }
};

}  // namespace

// Records of calls whose targets a new version would have inlined and the published one has not. Those for which it would
// be the other way round are taken off.
double unforeseen_records(const FunctionEvidence& e, const PolicyConfig& config) {
  double records = 0;
  for (const CallEvidence& call : e.calls) {
    if (static_cast<double>(call.unforeseen_records) < config.min_call_records) continue;
    const double foreseen = foreseen_records(call, e, config);
    double share = 0;
    for (const LikelyTarget& target : likely_targets(call, e, config)) share += target.share;
    records += std::max(0.0, share * (foreseen + static_cast<double>(call.unforeseen_records)) - foreseen);
  }
  return records;
}

const ChangePolicy& inline_calls_policy() {
  static const InlineCalls policy;
  return policy;
}

}  // namespace hindsight::feedback
