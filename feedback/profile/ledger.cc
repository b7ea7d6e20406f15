#include "feedback/profile/ledger.h"

#include <algorithm>

#include "base/immortal.h"

namespace hindsight::feedback {

const char* to_string(ChangeState state) {
  switch (state) {
    case ChangeState::kNone:
      return "none";
    case ChangeState::kInTrial:
      return "in trial";
    case ChangeState::kKept:
      return "kept";
    case ChangeState::kRolledBack:
      return "rolled back";
    case ChangeState::kNotPossible:
      return "not possible";
  }
  return "unknown";
}

const Outcome* ChangeLedger::find(jit::Site site) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.site == site; });
  return found == entries_.end() ? nullptr : &found->outcome;
}

Outcome* ChangeLedger::find(jit::Site site) {
  return const_cast<Outcome*>(std::as_const(*this).find(site));
}

const Outcome& ChangeLedger::of(jit::Site site) const {
  static const Immortal<Outcome> nothing;
  const Outcome* const known = find(site);
  return known != nullptr ? *known : *nothing;
}

void ChangeLedger::put(jit::Site site, Outcome outcome) {
  if (Outcome* const known = find(site)) {
    *known = std::move(outcome);
    return;
  }
  if (entries_.size() >= kMostEntries) entries_.erase(entries_.begin());
  entries_.push_back({site, std::move(outcome)});
}

void ChangeLedger::begin(jit::Site site) {
  if (state(site) != ChangeState::kKept) settle(site, ChangeState::kInTrial);
}

void ChangeLedger::settle(jit::Site site, Outcome outcome) {
  const Outcome& before = of(site);
  const bool taken_back =
      outcome.state == ChangeState::kRolledBack && before.state != ChangeState::kRolledBack;
  outcome.rejections = before.rejections + (taken_back ? 1 : 0);
  put(site, std::move(outcome));
}

void ChangeLedger::settle(jit::Site site, ChangeState state) {
  Outcome outcome = of(site);
  outcome.state = state;
  settle(site, std::move(outcome));
}

void ChangeLedger::forget(jit::Site site) {
  forget_if([&](const Entry& entry) { return entry.site == site; });
}

void ChangeLedger::age(uint64_t runs) {
  for (Entry& entry : entries_) entry.outcome.runs_ago = older(entry.outcome.runs_ago, runs);
}

void merge(ChangeLedger& to, const ChangeLedger& run) {
  for (const auto& [site, later] : run) {
    Outcome* const known = to.find(site);
    if (known == nullptr) {
      to.put(site, later);
      continue;
    }
    const uint32_t rejections = std::max(known->rejections, later.rejections);
    if (later.state == known->state && later.setting == known->setting)
      known->runs_ago = later.runs_ago;  // as it was: how it was found out stays
    else if (judged(later.state) || !judged(known->state))
      *known = later;
    known->rejections = rejections;
  }
}

ChangeLedger seed_of(const ChangeLedger& earlier) {
  ChangeLedger seed;
  for (const auto& [site, outcome] : earlier) {
    if (judged(outcome.state))
      seed.put(site, {.state = outcome.state, .rejections = outcome.rejections});
    else if (outcome.rejections != 0)
      seed.put(site, {.rejections = outcome.rejections});
  }
  return seed;
}

uint32_t older(uint32_t runs_ago, uint64_t runs) {
  return static_cast<uint32_t>(std::min<uint64_t>(runs_ago + runs, 1'000'000));
}

}  // namespace hindsight::feedback
