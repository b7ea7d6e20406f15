// Jump pointers: for loads that stall, under two conditions. Their address turns out to be what the loop has just loaded,
// which only the compiler sees. And the loop goes the same way again, which only running shows: for as long as it does
// not, no trial begins. Where a prefetch or interleaved searches were won, there is nothing to follow.
#include <fmt/format.h>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class JumpPointers final : public LoadPolicy {
 public:
  JumpPointers() : LoadPolicy(jit::ChangeKind::kJumpPointers) {}

  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("add jump pointers for {} load{}, if they follow pointers", count, plural(count));
  }
  std::string_view condition(jit::ChangeKind) const override { return "if it follows pointers"; }
  std::string_view of_load() const override { return "jump pointers for"; }

 private:
  bool is_worth_trying(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e,
                       const PolicyConfig& config) const override {
    const auto is_kept = [&](jit::ChangeKind other) {
      return e.changes.state({other, load.load}) == ChangeState::kKept;
    };
    // What goes the same way again does so in the function itself: the loop that calls it adds nothing to see.
    return !load.callee && is_open(jit::ChangeKind::kJumpPointers, load, e, config) &&
           !is_kept(jit::ChangeKind::kPrefetch) && !is_kept(jit::ChangeKind::kInterleave) &&
           !is_kept(jit::ChangeKind::kSpeculate) && stalls.are_worth_remembering(load);
  }
};

}  // namespace

const ChangePolicy& jump_pointers_policy() {
  static const JumpPointers policy;
  return policy;
}

}  // namespace hindsight::feedback
