// Interleave: loads that stall, or that hold much of the time in a near cache, if they turn out to be those of searches.
// Only the compiler sees that. All of w searches at once wait for a stall together, so 1/w of it stays. A prefetch that
// was won stays instead, or jump pointers.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/loads.h"

namespace hindsight::feedback {
namespace {

class Interleave final : public LoadPolicy {
 public:
  Interleave() : LoadPolicy(jit::ChangeKind::kInterleave) {}

  std::string offer(jit::ChangeKind, size_t count) const override {
    return fmt::format("interleave the searches of {} load{}, if they are searches", count, plural(count));
  }
  std::string_view condition(jit::ChangeKind) const override { return "if it searches"; }
  std::string_view of_load() const override { return "interleaving the searches of"; }

 private:
  bool is_worth_trying(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e,
                       const PolicyConfig& config) const override {
    return is_open(jit::ChangeKind::kInterleave, load, e, config) && !lost_around(load, e) &&
           !is_won_otherwise(load, e) && (stalls.are_worth_a_change(load) || stalls.are_worth_a_search(load));
  }
  // Whole iterations that run ahead wait at all loads that stall. So the compiler is told of those, too, that are in no search, and of
  // what hardly stalls as the program has it: the first of several loads that lead to each other waits for nothing, so that the
  // processor overlaps it with other iterations, and it would be waited for where the others are not.
  bool joins(const LoadEvidence& load, const Stalls& stalls, const FunctionEvidence& e) const override {
    if (is_won_otherwise(load, e)) return false;
    const ChangeState state = e.changes.state({jit::ChangeKind::kInterleave, load.load});
    if (stalls.are_worth_a_change(load)) return state == ChangeState::kNotPossible;
    return state == ChangeState::kNone && stalls.may_be_far(load) &&
           std::ranges::any_of(e.loads, [&](const LoadEvidence& other) {
             return stalls.are_worth_a_change(other) && is_around_search_of(other, load, e);
           });
  }
  // Whether the load is in the loop around that in which the other one is.
  static bool is_around_search_of(const LoadEvidence& other, const LoadEvidence& load,
                                  const FunctionEvidence& e) {
    if (load.callee || other.callee) return false;
    const LoopEvidence* innermost = nullptr;
    for (const LoopEvidence& loop : e.loops)
      if (is_in(loop, other.load) && (innermost == nullptr || innermost->depth < loop.depth))
        innermost = &loop;
    if (innermost == nullptr) return false;
    return is_in(*innermost, load.load) ||
           (innermost->parent >= 0 && is_in(e.loops[static_cast<size_t>(innermost->parent)], load.load));
  }
  static bool is_won_otherwise(const LoadEvidence& load, const FunctionEvidence& e) {
    constexpr jit::ChangeKind kOthers[] = {jit::ChangeKind::kPrefetch, jit::ChangeKind::kJumpPointers,
                                           jit::ChangeKind::kSpeculate};
    return std::ranges::any_of(kOthers, [&](jit::ChangeKind other) {
      return e.changes.state({other, load.load}) == ChangeState::kKept;
    });
  }
  // Searches in the loop that calls this one's function were on trial, and did not pay: a dry run of another search finds
  // the same heads, and as few iterations that come to it.
  static bool lost_around(const LoadEvidence& load, const FunctionEvidence& e) {
    const CalleeEvidence* const callee = callee_of(load, e);
    if (!callee) return false;
    const LoopEvidence& loop = e.loops[callee->called_in.value];
    return std::any_of(e.changes.begin(), e.changes.end(), [&](const ChangeLedger::Entry& entry) {
      return entry.site.kind == jit::ChangeKind::kInterleave &&
             entry.outcome.state == ChangeState::kRolledBack && loop.offset <= entry.site.at &&
             entry.site.at < loop.end;
    });
  }
  double share_saved() const override {
    return 1 - 1.0 / jit::traits_of(jit::ChangeKind::kInterleave).knob.first;
  }
};

}  // namespace

const ChangePolicy& interleave_policy() {
  static const Interleave policy;
  return policy;
}

}  // namespace hindsight::feedback
