// Prefetch: the address of a load that stalls is computed some iterations ahead. Loads whose trial was won keep theirs in any
// new version, those that lost stay without.
#include <fmt/format.h>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class Prefetch final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kPrefetch};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    const Stalls stalls(e, config);
    if (!config.prefetch || !stalls.known()) return;
    size_t proposed = 0;
    for (const LoadEvidence& load : e.loads) {
      if (proposed >= config.max_prefetches) break;
      const bool fresh = is_untried(load, e, config) && stalls.are_worth_a_change(load);
      if (!in_use(e.changes.state({kKind[0], load.load})) && !fresh) continue;
      out.push_back(stalls.candidate(kKind[0], load));
      ++proposed;
    }
  }

  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const override {
    return config.prefetch ? wait_for_stalls(e, config) : std::nullopt;
  }
  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("prefetch {} load{}", count, plural(count));
  }
  std::string_view of_load() const override { return "the prefetch at"; }
};

}  // namespace

const ChangePolicy& prefetch_policy() {
  static const Prefetch policy;
  return policy;
}

}  // namespace hindsight::feedback
