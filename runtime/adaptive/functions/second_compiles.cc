#include "runtime/adaptive/functions/second_compiles.h"

#include <utility>

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;

// In the first code, of CPU time: a loop that ran so long is taken to run as long again, which repays a trial.
constexpr double kSecondsToGoOn = 0.01;
constexpr auto kMostWaiting = 250ms;

double seconds_in_code(const feedback::Monitor::Profiles& profiles, const Job& job) {
  const auto profile = profiles.find(job.module);
  if (profile == profiles.end()) return 0;
  const auto found = profile->second->functions().find(job.plan.function.value);
  if (found == profile->second->functions().end()) return 0;
  const feedback::FunctionCounts& counts = found->second;
  if (!job.plan.nest) return counts.run_seconds_optimized;
  const auto nest = counts.nests.find(job.plan.nest->value);
  return nest == counts.nests.end() ? 0 : nest->second.run_seconds_optimized;
}

}  // namespace

void SecondCompiles::add(Job job) {
  Waiting waiting{.job = std::move(job), .since = EngineClock::Clock::now()};
  monitor_.with_profiles([&](const feedback::Monitor::Profiles& profiles) {
    waiting.seconds = seconds_in_code(profiles, waiting.job);
  });
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(waiting));
}

void SecondCompiles::round(const Round& round) {
  std::vector<Waiting> all;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    all = std::exchange(waiting_, {});
  }
  std::vector<Waiting> on;
  std::vector<Waiting> over;
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    std::erase_if(all, [&](Waiting& waiting) {
      if (seconds_in_code(profiles, waiting.job) - waiting.seconds >= kSecondsToGoOn) {
        on.push_back(std::move(waiting));
        return true;
      }
      if (round.now - waiting.since < kMostWaiting) return false;
      // They went on trial when the job was made; as it is they are as untried as before.
      if (const auto profile = profiles.find(waiting.job.module); profile != profiles.end()) {
        feedback::ChangeLedger& changes = profile->second->counts(waiting.job.plan.function).changes;
        for (const feedback::Candidate& candidate : waiting.job.plan.candidates)
          if (changes.state(candidate.site()) == feedback::ChangeState::kInTrial)
            changes.settle(candidate.site(), feedback::ChangeState::kNone);
      }
      over.push_back(std::move(waiting));
      return true;
    });
  });
  for (Waiting& waiting : on) queue_(std::move(waiting.job));
  for (const Waiting& waiting : over)
    decisions_.end(waiting.job.episode, DecisionState::kCompiled,
                   "nothing was tried in it: it hardly ran any more");
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
}

void SecondCompiles::forget(const ModuleCode& code) {
  std::vector<Waiting> gone;
  {
    const std::lock_guard lock(mutex_);
    for (Waiting& waiting : waiting_)
      if (waiting.job.module == code.module().get()) gone.push_back(std::move(waiting));
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.job.module == code.module().get(); });
  }
  for (const Waiting& waiting : gone)
    decisions_.end(waiting.job.episode, DecisionState::kCompiled, "nothing was tried in it: the run has ended");
}

}  // namespace hindsight::rt
