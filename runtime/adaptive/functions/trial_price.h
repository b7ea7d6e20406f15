// TrialPrice: what a second of compiling for trials has to be expected to save in this process (feedback/policy/stakes.h), by how
// its compiles and trials went so far.
//
// Any thread. Nothing is published by the atomics (relaxed): of two compiles that end at the same time, one may not count.
#pragma once

#include <algorithm>
#include <atomic>

#include "feedback/policy/stakes.h"

namespace hindsight::rt {

class TrialPrice {
 public:
  // Before anything is known compiles take from the guest what the policy charges for them. `policy` outlives this.
  explicit TrialPrice(const feedback::PolicyConfig& policy)
      : policy_(policy), taken_(policy.background_cost) {}

  // Of compiles' CPU time, how much longer they waited for the processor: 0 to 1.
  double taken() const { return taken_.load(std::memory_order_relaxed); }
  // Of trials, how many are expected to be won.
  double share_won() const { return feedback::share_won(record(), policy_); }
  double get() const { return feedback::price_of_trying(record(), policy_); }
  bool is_paid_by(const feedback::Stake& stake) const {
    return feedback::is_worth_trying(stake, record(), policy_);
  }
  void note_compile(double cpu_seconds, double wall_seconds) {
    if (cpu_seconds < kLeastSeconds) return;
    const double taken = std::clamp((wall_seconds - cpu_seconds) / cpu_seconds, 0.0, 1.0);
    taken_.store((1 - kWeight) * taken_.load(std::memory_order_relaxed) + kWeight * taken,
                 std::memory_order_relaxed);
  }
  void note_verdict(bool won) { (won ? won_ : lost_).fetch_add(1, std::memory_order_relaxed); }

 private:
  feedback::TrialRecord record() const {
    return {taken(), won_.load(std::memory_order_relaxed), lost_.load(std::memory_order_relaxed)};
  }

  static constexpr double kLeastSeconds = 0.005;  // shorter ones say little
  static constexpr double kWeight = 0.25;         // of the last compile

  const feedback::PolicyConfig& policy_;
  std::atomic<double> taken_;
  std::atomic<uint32_t> won_{0}, lost_{0};
};

}  // namespace hindsight::rt
