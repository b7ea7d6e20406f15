// SamplingGovernor: how often guest threads are sampled, how often the monitor has its round, and when bursts of
// branches are asked for. The rates are the policy's (feedback/policy/sampling.h).
//
// Concurrency: round() on the monitor thread, the rest on any. Nothing is published by the atomics (relaxed): the two
// times are hints, the three sums are for reports and written by the monitor thread alone.
#pragma once

#include <atomic>
#include <cstdint>

#include "feedback/monitor/monitor.h"
#include "feedback/policy/sampling.h"
#include "runtime/adaptive/engine_clock.h"
#include "runtime/code/code_services.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

class SamplingGovernor {
 public:
  // Between the monitor's rounds.
  static constexpr std::chrono::microseconds kBurstPeriod{1000}, kSteadyPeriod{50000};
  // While a loop is measured, or code is new: what is decided then is acted upon soon.
  static constexpr std::chrono::microseconds kTrialPeriod{5000};
  // So long after a loop without code was seen in baseline code, what runs there is looked at as often.
  static constexpr double kSecondsOfPlace = 0.1;

  // All outlive this.
  SamplingGovernor(const CodeServices& services, feedback::Monitor& monitor, const EngineClock& clock);

  // With which an engine begins; `learning`: its policy may do something with what is learned.
  static uint32_t first_hz(bool learning) {
    const feedback::SamplingConfig config;
    return learning ? config.learn_hz : config.steady_hz;
  }

  // Baseline code was published.
  void note_code() { note(new_code_); }
  // A compile was asked for, or is done.
  void note_version() { note(new_version_); }
  double seconds_since_version() const { return clock_.now() - at(new_version_); }

  struct Now {
    EngineClock::Time time;
    bool adapts = false;             // false: only bursts of branches are asked for
    bool policy_waits = false;       // the policy answered "wait" about some function
    uint64_t new_places = 0;         // loops that began to run in baseline code so far
    bool sees_places = false;        // some that have no code were seen in the last round
    bool versions_compared = false;  // their chunks begin and end with calls, as near as rounds come to them
    bool loops_measured = false;
    bool pages_compared = false;
  };
  void round(const Now& now);

  void report(BurstReport& report) const;

 private:
  using Rep = EngineClock::Clock::rep;
  static void note(std::atomic<Rep>& time) {
    time.store(EngineClock::Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  double at(const std::atomic<Rep>& time) const {
    return clock_.seconds(
        EngineClock::Time{EngineClock::Clock::duration(time.load(std::memory_order_relaxed))});
  }

  const CodeServices& services_;
  feedback::Monitor& monitor_;
  const EngineClock& clock_;
  const feedback::SamplingConfig config_;
  std::atomic<Rep> new_code_{0}, new_version_{0};
  // Monitor thread only.
  feedback::SamplingState state_;
  EngineClock::Time last_round_;
  Rep burst_series_at_ = 0;               // new_code_ when bursts of branches were last asked for
  double place_seen_ = -kSecondsOfPlace;  // seconds, when sees_places was last true
  uint32_t rate_hz_ = 0;
  // For reports.
  std::atomic<uint64_t> bursts_{0};
  std::atomic<double> burst_seconds_{0}, burst_cost_{0};
};

}  // namespace hindsight::rt
