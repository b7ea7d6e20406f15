// Split cold: in any version of the function, what hardly ever runs lies apart. It is for modules that the instruction
// TLB does not reach as a whole. On trial with a whole version. The compiler is told which branches went one way only;
// the site of the version itself is at 0.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/branches.h"

namespace hindsight::feedback {
namespace {

class SplitCold final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kSplitCold};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    if (!config.changes[kKind[0]] ||
        e.changes.state(version_site(kKind[0], e.version_at)) == ChangeState::kRolledBack)
      return;
    for (const BranchEvidence& b : e.branches) {
      const jit::BranchCounts counts = counts_of(b);
      const bool one_sided = !b.chooses && (counts.taken == 0 || counts.not_taken == 0);
      if (!one_sided || static_cast<double>(b.seen()) < config.min_branch_seen_one_sided) continue;
      out.push_back({.request = {.site = {kKind[0], b.branch}, .what = counts}});
    }
    if (static_cast<double>(e.module_bytes) > config.itlb_reach_bytes)
      out.push_back({.request = {.site = version_site(kKind[0])}});
  }

  std::vector<Reported> report(const Episode& decision, const PolicyConfig& config) const override {
    const auto& asked = decision.changes;
    if (std::find(asked.begin(), asked.end(), version_site(kKind[0])) == asked.end()) return {};
    return {{.at = std::nullopt,
             .reason = fmt::format("the module has {} KiB of code, and the instruction TLB covers {:.0f} KiB",
                                   decision.evidence.module_bytes >> 10, config.itlb_reach_bytes / 1024),
             .alternatives = {"nothing: cold code lies between hot code",
                              "code-layout: costs a jump into cold code, makes hot code dense"}}};
  }
};

}  // namespace

const ChangePolicy& split_cold_policy() {
  static const SplitCold policy;
  return policy;
}

}  // namespace hindsight::feedback
