#include "feedback/policy/changes/change_policy.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace hindsight::feedback {

// Each in a file of its own.
const ChangePolicy& prefetch_policy();
const ChangePolicy& interleave_policy();
const ChangePolicy& jump_pointers_policy();
const ChangePolicy& inline_calls_policy();
const ChangePolicy& weigh_branches_policy();
const ChangePolicy& branch_forms_policy();
const ChangePolicy& values_policy();
const ChangePolicy& split_cold_policy();
const ChangePolicy& speculate_policy();

std::span<const ChangePolicy* const> change_policies() {
  static const std::array policies = {
      &prefetch_policy(),     &interleave_policy(),     &jump_pointers_policy(),
      &inline_calls_policy(), &weigh_branches_policy(), &branch_forms_policy(),
      &values_policy(),       &split_cold_policy(),     &speculate_policy(),
  };
  return policies;
}

std::vector<Reported> ChangePolicy::report(const Episode& decision, const PolicyConfig& config) const {
  const jit::ChangeKind kind = kinds().front();
  const std::vector<WasmOffset> places = decision.asked_for(kind);
  if (places.empty()) return {};
  Reported reported{.at = {}, .reason = {}, .alternatives = {"nothing", std::string(to_string(kind))}};
  if (places.front() != WasmOffset()) reported.at = places.front();
  std::vector<Candidate> again;
  propose(decision.evidence, config, again);
  if (!again.empty()) reported.reason = again.front().reason;
  return {reported};
}

const ChangePolicy& change_policy(jit::ChangeKind kind) {
  const auto policies = change_policies();
  const auto found = std::find_if(policies.begin(), policies.end(), [&](const ChangePolicy* policy) {
    const auto kinds = policy->kinds();
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  });
  assert(found != policies.end() && "no policy asks for this kind of change");
  return **found;
}

std::vector<Candidate> propose(jit::ChangeKind kind, const FunctionEvidence& e, const PolicyConfig& config) {
  std::vector<Candidate> candidates;
  change_policy(kind).propose(e, config, candidates);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.kind() != kind; });
  return candidates;
}

std::vector<Candidate> propose_for_loads(const FunctionEvidence& e, const PolicyConfig& config) {
  std::vector<Candidate> candidates;
  for (const ChangePolicy* policy : change_policies())
    if (policy->is_about_loads()) policy->propose(e, config, candidates);
  return candidates;
}

std::vector<Candidate> propose_for_version(const FunctionEvidence& e, const PolicyConfig& config) {
  std::vector<Candidate> candidates;
  for (const ChangePolicy* policy : change_policies())
    if (!policy->is_about_loads()) policy->propose(e, config, candidates);
  return candidates;
}

}  // namespace hindsight::feedback
