#include "runtime/adaptive/sampling_governor.h"

#include <fmt/format.h>

namespace hindsight::rt {

SamplingGovernor::SamplingGovernor(const CodeServices& services, feedback::Monitor& monitor,
                                   const EngineClock& clock)
    : services_(services), monitor_(monitor), clock_(clock), last_round_(EngineClock::Clock::now()) {
  note_code();
}

void SamplingGovernor::round(const Now& now) {
  const double seconds = std::chrono::duration<double>(now.time - last_round_).count();
  last_round_ = now.time;
  // Code that nobody knows is looked at in its branches as well, whoever decides.
  if (const Rep at = new_code_.load(std::memory_order_relaxed); at != burst_series_at_) {
    burst_series_at_ = at;
    monitor_.begin_branch_series();
  }
  if (!now.adapts) return;
  const double cost = feedback::burst_cost(monitor_.frequency(), seconds, config_);
  if (cost > 0) {
    state_.spent_seconds += cost;
    burst_seconds_.store(burst_seconds_.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);
    burst_cost_.store(state_.spent_seconds, std::memory_order_relaxed);
  }
  state_.now = clock_.seconds(now.time);
  state_.new_code = at(new_code_);
  state_.new_version = at(new_version_);
  state_.waiting = now.policy_waits;
  if (now.new_places > static_cast<uint64_t>(state_.places)) {
    state_.places = static_cast<double>(now.new_places);
    state_.new_place = state_.now;
    // Its first code may be made of what is known within milliseconds, and its branches are seen in baseline code alone.
    monitor_.want_branch_burst();
  }
  if (now.sees_places) place_seen_ = state_.now;
  state_.comparing = now.pages_compared;
  const feedback::SamplingPlan plan = feedback::plan_sampling(state_, config_);
  const bool burst = plan.hz > config_.steady_hz;
  if (plan.hz != rate_hz_) {
    if (burst) bursts_.fetch_add(1, std::memory_order_relaxed);
    services_.say(LogLevel::kDebug, "lwp", fmt::format("{} samples a second: {}", plan.hz, plan.reason));
    rate_hz_ = plan.hz;
    monitor_.set_frequency(plan.hz);
  }
  // Rounds cost no samples: they come often also where the budget of these is spent.
  const bool attentive = now.loops_measured || now.pages_compared ||
                         state_.now - state_.new_version < config_.follow_seconds ||
                         state_.now - place_seen_ < kSecondsOfPlace;
  monitor_.set_period(burst || now.versions_compared ? kBurstPeriod
                      : attentive                    ? kTrialPeriod
                                                     : kSteadyPeriod);
}

void SamplingGovernor::report(BurstReport& report) const {
  report.rate_bursts = bursts_.load(std::memory_order_relaxed);
  report.rate_seconds = burst_seconds_.load(std::memory_order_relaxed);
  report.rate_cost_seconds = burst_cost_.load(std::memory_order_relaxed);
}

}  // namespace hindsight::rt
