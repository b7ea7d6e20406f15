#include "runtime/adaptive/functions/recompile.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "jit/code/code_image.h"

namespace hindsight::rt {
namespace {

// Changes by their kind and place. `follows` is not asked: which of the loads of a loop its change is told of
// depends on which of them were hinted at.
std::set<jit::Site> applied_sites(const jit::CodeVersion& version) {
  std::set<jit::Site> sites;
  for (const jit::Answer& answer : version.answers)
    if (answer.is_applied()) sites.insert(answer.site);
  return sites;
}

// For the operators that have code for their usual number: which number.
std::map<uint32_t, uint64_t> applied_values(const MadeVersion& made) {
  std::map<uint32_t, uint64_t> values;
  for (const jit::Answer& answer : made.version.answers) {
    if (!answer.is_applied() || answer.site.kind != jit::ChangeKind::kValue) continue;
    for (const feedback::Candidate& candidate : made.told)
      if (candidate.site() == answer.site)
        values[answer.site.at.value] = jit::what_of<jit::UsualValue>(candidate.request).value;
  }
  return values;
}

// All that the compiler is told of branches beside their form, which is a change on trial.
std::map<jit::Site, std::pair<uint64_t, uint64_t>> weights(std::span<const feedback::Candidate> told) {
  std::map<jit::Site, std::pair<uint64_t, uint64_t>> weights;
  for (const feedback::Candidate& candidate : told) {
    if (!jit::is_of_version(candidate.kind())) continue;
    if (const auto* counts = std::get_if<jit::BranchCounts>(&candidate.request.what))
      weights[candidate.site()] = {counts->taken, counts->not_taken};
  }
  return weights;
}

// A copy of a part of a version elsewhere does not have the bytes of the whole.
bool same_bytes(const jit::CodeVersion& a, const jit::CodeVersion& b) {
  return a.relocations && b.relocations && a.whole == nullptr && b.whole == nullptr &&
         a.code_size == b.code_size && a.memory.size() == b.memory.size() &&
         jit::bytes_without_place(a) == jit::bytes_without_place(b);
}

template <typename Place>
bool has_loops(const std::vector<Place>& places, const std::vector<Place>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Place& want) {
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& place) { return place.loop == want.loop; });
  });
}

}  // namespace

std::map<uint32_t, std::vector<uint32_t>> usual_targets(std::span<const feedback::Candidate> told) {
  std::map<uint32_t, std::vector<uint32_t>> targets;
  for (const feedback::Candidate& candidate : told)
    for (const jit::CallTargets::Target& target : jit::what_of<jit::CallTargets>(candidate.request).targets)
      targets[candidate.at().value].push_back(target.element);
  return targets;
}

std::string_view what_is_new(const MadeVersion& running, const MadeVersion& made, bool loops_wait) {
  const jit::CodeVersion& before = running.version;
  const jit::CodeVersion& after = made.version;
  if (before.function != after.function || before.tier != after.tier) return "another function or tier";
  if ((before.entry == nullptr) != (after.entry == nullptr)) return "an entry for calls";
  if (loops_wait && !has_loops(before.osr_entries, after.osr_entries))
    return "an OSR entry for a running loop";
  if (loops_wait && !has_loops(before.osr_exits, after.osr_exits)) return "an OSR exit of a running loop";
  if (applied_sites(before) != applied_sites(after)) return "changes of loops";
  if (applied_values(running) != applied_values(made)) return "usual values";
  const std::string_view told = usual_targets(running.told) != usual_targets(made.told) ? "targets of calls"
                                : before.inlined != after.inlined                       ? "inlined bodies"
                                : weights(running.told) != weights(made.told) ? "weights of branches"
                                                                              : "";
  return told.empty() || same_bytes(before, after) ? "" : told;
}

}  // namespace hindsight::rt
