#include "feedback/lwp/model/branch_replay.h"

namespace hindsight::lwp {

std::optional<bool> BranchReplay::predicted_right(uint64_t key, const BranchOutcome& outcome) {
  if (outcome.first()) to_skip_ = bursts_++ == 0 ? options_.first_warm_up : options_.warm_up;
  Site& site = sites_[key];
  if (outcome.taken()) {
    // Code that was compiled again has other addresses, which do not make its branches indirect ones. In a choice that is
    // taken for one, only what path leads there would be judged, and that is always the same.
    if (site.taken_from != outcome.pc) {
      site.taken_from = outcome.pc;
      site.taken_to = outcome.target();
    }
    site.indirect |= site.taken_to != outcome.target();
  }
  const bool right = site.indirect && outcome.taken()
                         ? predictor_->target_predicted_right(key, outcome.target())
                         : predictor_->predicted_right(key, outcome.taken());
  const bool site_is_cold = site.seen < options_.site_warm_up;
  if (site_is_cold) ++site.seen;
  if (to_skip_ > 0) {
    --to_skip_;
    return std::nullopt;
  }
  if (site_is_cold) return std::nullopt;
  return right;
}

}  // namespace hindsight::lwp
