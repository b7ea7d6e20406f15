// Jump pointers: loads that stall, if their address turns out to be what the loop has just loaded, which only the compiler
// sees, and if the loop goes the same way again, which only running shows: for as long as it does not, no trial begins. Where a
// prefetch or interleaved searches were won, there is nothing to follow.
#include <fmt/format.h>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class JumpPointers final : public ChangePolicy {
 public:
  static constexpr jit::ChangeKind kKind[] = {jit::ChangeKind::kJumpPointers};
  std::span<const jit::ChangeKind> kinds() const override { return kKind; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    const Stalls stalls(e, config);
    if (!config.jump_pointers || !stalls.known()) return;
    size_t proposed = 0;
    for (const LoadEvidence& load : e.loads) {
      if (proposed >= config.max_prefetches) break;
      const auto is_kept = [&](jit::ChangeKind other) {
        return e.changes.state({other, load.load}) == ChangeState::kKept;
      };
      const bool fresh = is_open(kKind[0], load, e, config) && !is_kept(jit::ChangeKind::kPrefetch) &&
                         !is_kept(jit::ChangeKind::kInterleave) && stalls.are_worth_a_change(load);
      if (!in_use(e.changes.state({kKind[0], load.load})) && !fresh) continue;
      out.push_back(stalls.candidate(kKind[0], load));
      ++proposed;
    }
  }

  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const override {
    return config.jump_pointers ? wait_for_stalls(e, config) : std::nullopt;
  }
  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("jump pointers for {} load{}, where they follow pointers", count, plural(count));
  }
  std::string_view condition(jit::ChangeKind) const override { return "if it follows pointers"; }
  std::string_view of_load() const override { return "following the history at"; }
};

}  // namespace

const ChangePolicy& jump_pointers_policy() {
  static const JumpPointers policy;
  return policy;
}

}  // namespace hindsight::feedback
