// Weigh branches: the compiler is told how often each branch or select went which way, for the layout. The counts together are
// on trial with a whole version.
#include <fmt/format.h>

#include "feedback/policy/changes/branches.h"

namespace hindsight::feedback {
namespace {

class WeighBranches final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kWeighBranches};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    if (!config.changes[kKind[0]] ||
        e.changes.state(version_site(kKind[0], e.version_at)) == ChangeState::kRolledBack)
      return;
    const auto propose_each = [&](const std::vector<BranchEvidence>& branches) {
      for (const BranchEvidence& b : branches) {
        if (static_cast<double>(b.seen()) < config.min_branch_seen) continue;
        out.push_back({.request = {.site = {kKind[0], b.branch}, .what = counts_of(b)}});
      }
    };
    propose_each(e.branches);
    // Where one of these is inlined, passes look at how long its loops are.
    for (const CalleeEvidence& callee : e.callees) propose_each(callee.branches);
  }

  std::vector<Reported> report(const Episode& decision, const PolicyConfig&) const override {
    const std::vector<WasmOffset> branches = decision.asked_for(kKind[0]);
    if (branches.empty()) return {};
    return {{.at = branches.front(),
             .reason = fmt::format("{} branches and selects were executed often enough to weigh them",
                                   branches.size()),
             .alternatives = {"nothing: the compiler guesses how often branches are taken",
                              "weigh-branches: costs nothing, improves layout, spills and trip counts"}}};
  }
};

}  // namespace

const ChangePolicy& weigh_branches_policy() {
  static const WeighBranches policy;
  return policy;
}

}  // namespace hindsight::feedback
