// Select and branch: the form that a branch has in the code, whatever it is in the program. One that is mispredicted in a
// share r of its executions loses r times what a misprediction takes. A select in its place loses nothing that way, and
// makes everything after it wait for both sides. How much that is depends on the code around it, which only the compiler
// sees (jit/optimizing/changes/branch_form/form_pass.h). The compiler is given the rate, and a trial has the last word.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "feedback/policy/changes/branches.h"

namespace hindsight::feedback {
namespace {

using jit::ChangeKind;

double minority_of(const BranchEvidence& b) {
  return std::min(b.taken_share(), 1 - b.taken_share());
}

struct Rate {
  double share = 0;
  std::string words;
};

// How often an execution is mispredicted, at most; nothing if that is not known.
std::optional<Rate> misprediction_rate(const BranchEvidence& b, const PolicyConfig& config) {
  if (static_cast<double>(b.judged) >= config.min_branch_judged) {
    return Rate{b.mispredict_rate(),
                fmt::format("was mispredicted in {} of {} executions ({:.1f} %, estimate)", b.mispredicted,
                            b.judged, 100 * b.mispredict_rate())};
  }
  // A predictor that says the same always errs that often.
  const double minority = minority_of(b);
  if (minority > config.max_branch_rate) return std::nullopt;
  return Rate{minority,
              fmt::format("went the same way in {:.1f} % of {} executions", 100 * (1 - minority), b.seen())};
}

// Whether giving it either of its forms was tried and lost.
bool was_lost(const BranchEvidence& b, const FunctionEvidence& e) {
  const auto lost = [&](ChangeKind form) {
    const ChangeState state = e.changes.state({form, b.branch});
    return state != ChangeState::kNone && !in_use(state);
  };
  return lost(ChangeKind::kSelect) || lost(ChangeKind::kBranch);
}

bool was_tried(const BranchEvidence& b, const FunctionEvidence& e) {
  return e.changes.state({ChangeKind::kSelect, b.branch}) != ChangeState::kNone ||
         e.changes.state({ChangeKind::kBranch, b.branch}) != ChangeState::kNone;
}

// Empty: as it comes.
std::optional<ChangeKind> form_of(const BranchEvidence& b, double rate, const FunctionEvidence& e,
                                  const PolicyConfig& config) {
  if (was_lost(b, e)) return std::nullopt;
  if (config.changes[ChangeKind::kSelect] && !b.chooses && rate >= config.min_select_rate)
    return ChangeKind::kSelect;
  // Also for a branch: the compiler may have made a select of it.
  if (config.changes[ChangeKind::kBranch] && rate <= config.max_branch_rate &&
      (b.chooses || minority_of(b) >= config.min_branch_minority))
    return ChangeKind::kBranch;
  return std::nullopt;
}

// A hot branch that goes both ways, and nobody has said yet how well it is predicted. The next compile is the last time
// that this can be seen. Null: there is none.
const BranchEvidence* not_judged_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.changes[ChangeKind::kSelect]) return nullptr;
  const auto waits = [&](const BranchEvidence& b) {
    return !b.chooses && !was_tried(b, e) && static_cast<double>(b.sampled) >= config.min_branch_records &&
           minority_of(b) >= config.min_minority_to_wait &&
           static_cast<double>(b.judged) < config.min_branch_judged;
  };
  const auto found = std::find_if(e.branches.begin(), e.branches.end(), waits);
  return found == e.branches.end() ? nullptr : &*found;
}

// A select of an innermost loop that may be better a branch, of which too little was seen yet, for the same reason.
// Null: there is none.
const BranchEvidence* not_seen_often_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.changes[ChangeKind::kBranch]) return nullptr;
  const auto waits = [&](const BranchEvidence& b) {
    return b.chooses && !was_tried(b, e) && minority_of(b) <= config.max_branch_rate &&
           static_cast<double>(b.seen()) >= config.min_select_seen_to_wait &&
           static_cast<double>(b.seen()) < config.min_branch_seen;
  };
  const auto found = std::find_if(e.branches.begin(), e.branches.end(), waits);
  return found == e.branches.end() ? nullptr : &*found;
}

class BranchForms final : public ChangePolicy {
 public:
  static constexpr ChangeKind kKinds[] = {ChangeKind::kSelect, ChangeKind::kBranch};
  std::span<const ChangeKind> kinds() const override { return kKinds; }

  void propose(const FunctionEvidence& e, const PolicyConfig& config,
               std::vector<Candidate>& out) const override {
    size_t proposed = 0;
    for (const BranchEvidence& b : e.branches) {
      if (proposed >= config.max_conversions) break;
      if (static_cast<double>(b.seen()) < config.min_branch_seen) continue;
      const auto rate = misprediction_rate(b, config);
      const auto form = rate ? form_of(b, rate->share, e, config) : std::nullopt;
      if (!form) continue;
      ++proposed;
      const double executions =
          static_cast<double>(b.sampled) * (b.chooses ? config.calls_per_record : kBranchInterval);
      const double gain = *form == ChangeKind::kSelect
                              ? rate->share * config.cycles_mispredicted * config.seconds_a_cycle
                              : kSecondsChosen;
      jit::BranchCounts counts = counts_of(b);
      counts.mispredicted = rate->share;
      out.push_back({.request = {.site = {*form, b.branch}, .what = counts},
                     .estimate = {.seconds = executions * gain},
                     .reason = fmt::format("the {} at 0x{:x} {}", b.chooses ? "select" : "branch",
                                           b.branch.value, rate->words)});
    }
  }

  std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) const override {
    if (const BranchEvidence* branch = not_judged_yet(e, config);
        branch != nullptr && e.seconds_baseline < config.max_seconds_to_wait_for_outcomes)
      return Wait{
          fmt::format("hot, and the branch at 0x{:x} was taken in {:.0f} % of {} executions: waits up to "
                      "{:.0f} ms for how well it is predicted",
                      branch->branch.value, 100 * branch->taken_share(), branch->seen(),
                      1e3 * config.max_seconds_to_wait_for_outcomes)};
    if (const BranchEvidence* choice = not_seen_often_yet(e, config);
        choice != nullptr && e.seconds_baseline < config.max_seconds_to_wait_for_selects)
      return Wait{
          fmt::format("hot, and the select at 0x{:x} went the same way in nearly all of {} executions: waits "
                      "up to {:.0f} ms for {:.0f} executions",
                      choice->branch.value, choice->seen(), 1e3 * config.max_seconds_to_wait_for_selects,
                      config.min_branch_seen)};
    return std::nullopt;
  }

  std::string offer(ChangeKind kind, size_t count) const override {
    return kind == ChangeKind::kSelect
               ? fmt::format("replace up to {} branches by selects", count)
               : fmt::format("replace up to {} selects by branches, if loop-carried values wait for them",
                             count);
  }
  std::string_view condition(ChangeKind kind) const override {
    return kind == ChangeKind::kSelect ? "if both sides can be executed"
                                       : "if loop-carried values wait for the select";
  }
};

}  // namespace

const ChangePolicy& branch_forms_policy() {
  static const BranchForms policy;
  return policy;
}

}  // namespace hindsight::feedback
