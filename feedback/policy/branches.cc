#include "feedback/policy/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace hindsight::feedback {
namespace {

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
    return Rate{b.mispredict_rate(), fmt::format("mispredicted {} of {} times ({:.1f} %, estimate)",
                                                 b.mispredicted, b.judged, 100 * b.mispredict_rate())};
  }
  // A predictor that says the same always errs that often.
  const double minority = minority_of(b);
  if (minority > config.max_branch_rate) return std::nullopt;
  return Rate{minority,
              fmt::format("the same way {:.1f} % of {} times seen", 100 * (1 - minority), b.seen())};
}

jit::BranchHint::Form form_of(const BranchEvidence& b, double rate, const PolicyConfig& config) {
  using Form = jit::BranchHint::Form;
  if (b.outcome != PrefetchOutcome::kNone && !in_use(b.outcome)) return Form::kAsItComes;
  if (config.select && !b.chooses && rate >= config.min_select_rate) return Form::kSelect;
  // Of a branch too: the compiler may have made a select of it.
  if (config.branch && rate <= config.max_branch_rate &&
      (b.chooses || minority_of(b) >= config.min_branch_minority))
    return Form::kBranch;
  return Form::kAsItComes;
}

}  // namespace

std::vector<BranchPlan> plan_branches(const FunctionEvidence& e, const PolicyConfig& config) {
  using Form = jit::BranchHint::Form;
  std::vector<BranchPlan> plans;
  size_t conversions = 0;
  for (const BranchEvidence& b : e.branches) {
    BranchPlan plan;
    plan.hint.branch = b.branch;
    plan.hint.taken = b.taken + b.sampled_taken;
    plan.hint.not_taken = b.seen() - plan.hint.taken;
    plan.hint.one_sided = config.code_layout && e.outcomes.split_cold != PrefetchOutcome::kRolledBack &&
                          !b.chooses && static_cast<double>(b.seen()) >= config.min_branch_seen_one_sided &&
                          (plan.hint.taken == 0 || plan.hint.not_taken == 0);
    if (static_cast<double>(b.seen()) < config.min_branch_seen) {
      plan.hint.weigh = false;
      if (plan.hint.one_sided) plans.push_back(std::move(plan));
      continue;
    }
    plan.hint.weigh = config.weigh_branches && e.outcomes.weigh_branches != PrefetchOutcome::kRolledBack;
    if (const auto rate = misprediction_rate(b, config); rate && conversions < config.max_conversions) {
      plan.hint.mispredicted = rate->share;
      plan.hint.form = form_of(b, rate->share, config);
      const double executions =
          static_cast<double>(b.sampled) * (b.chooses ? config.calls_per_record : kBranchInterval);
      if (plan.hint.form != Form::kAsItComes) {
        ++conversions;
        plan.estimated_gain =
            executions *
            (plan.hint.form == Form::kSelect ? rate->share * kSecondsMispredicted : kSecondsChosen);
        plan.reason = fmt::format("the {} at 0x{:x} is {}", b.chooses ? "select" : "branch", b.branch.value,
                                  rate->words);
      }
    }
    if (!plan.hint.weigh && !plan.hint.one_sided && plan.hint.form == Form::kAsItComes) continue;
    plans.push_back(std::move(plan));
  }
  return plans;
}

const BranchEvidence* not_judged_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.select) return nullptr;
  const auto waits = [&](const BranchEvidence& b) {
    return !b.chooses && b.outcome == PrefetchOutcome::kNone &&
           static_cast<double>(b.sampled) >= config.min_branch_records &&
           minority_of(b) >= config.min_minority_to_wait &&
           static_cast<double>(b.judged) < config.min_branch_judged;
  };
  const auto found = std::find_if(e.branches.begin(), e.branches.end(), waits);
  return found == e.branches.end() ? nullptr : &*found;
}

const BranchEvidence* not_seen_often_yet(const FunctionEvidence& e, const PolicyConfig& config) {
  if (!config.branch) return nullptr;
  const auto waits = [&](const BranchEvidence& b) {
    return b.chooses && b.outcome == PrefetchOutcome::kNone && minority_of(b) <= config.max_branch_rate &&
           static_cast<double>(b.seen()) >= config.min_select_seen_to_wait &&
           static_cast<double>(b.seen()) < config.min_branch_seen;
  };
  const auto found = std::find_if(e.branches.begin(), e.branches.end(), waits);
  return found == e.branches.end() ? nullptr : &*found;
}

void offer_forms(FunctionPlan& plan, const std::vector<BranchPlan>& branches, double cost, double gain) {
  using Form = jit::BranchHint::Form;
  for (const auto& [form, words] :
       {std::pair{Form::kSelect, "selects in place of"}, {Form::kBranch, "branches in place of"}}) {
    size_t count = 0;
    double more = 0;
    for (const BranchPlan& b : branches) {
      if (b.hint.form != form) continue;
      ++count;
      more += b.estimated_gain;
    }
    if (count > 0)
      plan.alternatives.push_back(
          {fmt::format("optimize + {} up to {} {}", words, count,
                       form == Form::kSelect ? "branches" : "choices that a chain waits for"),
           cost, gain + more});
  }
}

}  // namespace hindsight::feedback
