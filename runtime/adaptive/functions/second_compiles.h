// SecondCompiles: code that is fast comes in two steps. What gets hot runs in baseline code until its first compile has
// ended, and what is to be tried in its loops makes that take several times as long. So the first compile makes none of it,
// and its code takes over soon. Here jobs wait for their second one, until that code has run for a while, and for so long that
// it is to be expected that trials save more than the compile takes (feedback/policy/stakes.h). Many a loop has ended by then,
// and nothing is tried in it. Where loads of callees are among what is to be tried the second one is made at once: the time is
// theirs, and the loop's own code hardly runs.
//
// As V8 and HotSpot have it with their tiers, but with the same compiler twice.
//
// Concurrency: add() on a compile thread, round() on the monitor thread, the rest on any. mutex_ protects what follows it
// and is a leaf.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/functions/trial_price.h"
#include "runtime/adaptive/job.h"

namespace hindsight::rt {

// Of a nest that has code: a loop around it got its own later, or the function did, and what is tried in the nest would hardly run.
bool has_newer_code_around(jit::Unit unit, const ModuleCode& code);

class SecondCompiles final : public Experiment {
 public:
  using Queue = std::function<void(Job)>;
  // All outlive this. `queue`: called with no lock held.
  SecondCompiles(feedback::Monitor& monitor, DecisionLog& decisions, const TrialPrice& price, Queue queue)
      : monitor_(monitor), decisions_(decisions), price_(price), queue_(std::move(queue)) {}

  // Its unit's first code was published.
  void add(Job job);

  // Units that wait. Their code is published, and nothing is under way about what is around them or in them.
  DecisionLog::Units waiting() const;

  // Experiment
  void round(const Round& round) override;
  void forget(const ModuleCode& code) override;

 private:
  struct Waiting {
    Job job;
    double seconds = 0;  // in the unit's optimized code, in the whole run, when the first one was published
    double seconds_run = 0;  // there since then
    double may_save = 0;     // of each further second
    bool is_explained = false;
  };
  bool is_worth_it(const Waiting& waiting) const;
  void explain(Waiting& waiting);

  feedback::Monitor& monitor_;
  DecisionLog& decisions_;
  const TrialPrice& price_;
  const Queue queue_;

  mutable std::mutex mutex_;
  std::vector<Waiting> waiting_;
};

}  // namespace hindsight::rt
