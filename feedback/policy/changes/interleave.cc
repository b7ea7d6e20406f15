// Interleave: loads that stall, or that hold much of the time in a near cache, if they turn out to be those of searches, which
// only the compiler sees. Of w searches at once a stall is waited for by all together, so 1/w of it stays. A prefetch that was
// won stays instead, or jump pointers.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class Interleave final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kInterleave};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    const Stalls stalls(e, config);
    if (!config.interleave || !stalls.known()) return;
    size_t proposed = 0;
    for (const LoadEvidence& load : e.loads) {
      if (proposed >= config.max_prefetches) break;
      const auto is_kept = [&](jit::ChangeKind other) {
        return e.changes.state({other, load.load}) == ChangeState::kKept;
      };
      const bool fresh = is_open(kKind[0], load, e, config) && !is_kept(jit::ChangeKind::kPrefetch) &&
                         !is_kept(jit::ChangeKind::kJumpPointers) &&
                         (stalls.are_worth_a_change(load) || stalls.are_worth_a_search(load));
      if (!in_use(e.changes.state({kKind[0], load.load})) && !fresh) continue;
      Candidate candidate = stalls.candidate(kKind[0], load);
      candidate.request.setting = jit::traits_of(jit::ChangeKind::kInterleave).knob.first;
      candidate.estimate.share *= 1 - 1.0 / candidate.request.setting;
      out.push_back(std::move(candidate));
      ++proposed;
    }
  }

  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const override {
    return config.interleave ? wait_for_stalls(e, config) : std::nullopt;
  }
  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("interleave the searches of {} load{}, where they are searches", count, plural(count));
  }
  std::string_view condition(jit::ChangeKind) const override { return "if it searches"; }
  std::string_view of_load() const override { return "interleaving the searches of"; }
};

}  // namespace

const ChangePolicy& interleave_policy() {
  static const Interleave policy;
  return policy;
}

}  // namespace hindsight::feedback
