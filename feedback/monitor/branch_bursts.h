// What the monitor keeps about one thread's branch-outcome bursts. That is when the next is due, and the
// predictor model that its outcomes run through, in one history for all branches of the thread.
#pragma once

#include <chrono>
#include <vector>

#include "feedback/lwp/model/branch_replay.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/burst_schedule.h"
#include "feedback/monitor/misprediction_rate.h"

namespace hindsight::feedback {

// A predictor's tables are some hundred kilobytes: they are made with the first outcome.
struct ThreadBranches {
  explicit ThreadBranches(const lwp::Unit* unit)
      : schedule(reinterpret_cast<uintptr_t>(unit)), begin(std::chrono::steady_clock::now()) {}

  BurstSchedule schedule;
  std::chrono::steady_clock::time_point begin;
  std::unique_ptr<lwp::BranchReplay> replay;
  BurstRates rates;
  std::vector<lwp::BranchOutcome> outcomes;  // of the round; kept so that steady state allocates nothing
};

}  // namespace hindsight::feedback
