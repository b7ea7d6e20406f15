#include "runtime/adaptive/functions/second_compiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/adaptive/counts_of.h"
#include "runtime/adaptive/functions/function_plans.h"

namespace hindsight::rt {
namespace {

// In the first code, of CPU time: a loop that ran so long is taken to run as long again, which repays a trial.
constexpr double kSecondsToGoOn = 0.02;
// Of each second. Less is not worth a compile in any run.
constexpr double kLeastSaved = 1e-4;

double seconds_in_code(const feedback::Monitor::Profiles& profiles, const Job& job) {
  const feedback::FunctionCounts* const counts = counts_of(profiles, job.module, job.plan.function);
  return counts == nullptr ? 0 : counts->run_seconds_in_code(job.plan.nest);
}

}  // namespace

bool has_newer_code_around(jit::Unit unit, const ModuleCode& code) {
  const std::shared_ptr<jit::CodeVersion> own = code.optimized(unit);
  if (own == nullptr || !unit.nest) return false;
  const auto is_newer = [&](const std::shared_ptr<jit::CodeVersion>& other) {
    return other != nullptr && other->id.value > own->id.value;
  };
  const std::vector<wasm::LoopInfo>& loops = code.module()->body(unit.function).loops;
  return is_newer(code.version(unit.function, jit::Tier::kOptimized)) ||
         std::ranges::any_of(code.nests(unit.function), [&](const auto& nest) {
           return is_newer(nest) && is_loop_in(loops, *unit.nest, *nest->nest);
         });
}

void SecondCompiles::add(Job job) {
  Waiting waiting{.job = std::move(job)};
  waiting.may_save = feedback::may_save(waiting.job.plan, decisions_.at(waiting.job.episode).evidence);
  monitor_.with_profiles([&](const feedback::Monitor::Profiles& profiles) {
    waiting.seconds = seconds_in_code(profiles, waiting.job);
  });
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(waiting));
}

bool SecondCompiles::is_worth_it(const Waiting& waiting) const {
  // The time is its callees': its own says nothing.
  if (waiting.job.plan.for_callees) return true;
  return waiting.seconds_run >= kSecondsToGoOn &&
         price_.is_paid_by({.seconds_run = waiting.seconds_run,
                            .may_save = waiting.may_save,
                            .compile_seconds = waiting.job.expected_seconds});
}

void SecondCompiles::explain(Waiting& waiting) {
  if (waiting.is_explained || waiting.seconds_run < kSecondsToGoOn) return;
  waiting.is_explained = true;
  decisions_.change(waiting.job.episode, [&](feedback::Episode& episode) {
    if (waiting.may_save < kLeastSaved) {
      episode.state_why =
          "its first code runs, and what is to be tried in it is expected to save nothing so far";
      return;
    }
    episode.state_why = fmt::format(
        "its first code runs, without what is to be tried in it. That may save {:.0f} % of its time, and its "
        "compile takes {:.0f} ms, of which each has to save {:.2f}: waits until the code ran for {:.0f} ms",
        100 * waiting.may_save, 1e3 * waiting.job.expected_seconds, price_.get(),
        1e3 * price_.get() * waiting.job.expected_seconds / waiting.may_save);
  });
}

DecisionLog::Units SecondCompiles::waiting() const {
  DecisionLog::Units units;
  const std::lock_guard lock(mutex_);
  for (const Waiting& waiting : waiting_) units.insert({waiting.job.module, waiting.job.unit()});
  return units;
}

void SecondCompiles::round(const Round& round) {
  std::vector<Waiting> all;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    all = std::exchange(waiting_, {});
  }
  monitor_.with_profiles([&](const feedback::Monitor::Profiles& profiles) {
    for (Waiting& waiting : all)
      waiting.seconds_run = seconds_in_code(profiles, waiting.job) - waiting.seconds;
  });
  // No lock is held, not of profiles either: reasons go to the log.
  std::erase_if(all, [&](Waiting& waiting) {
    const bool goes_on = is_worth_it(waiting);
    if (goes_on) {
      waiting.job.priority = Later{.seconds = waiting.seconds_run,
                                   .expected = waiting.job.expected_seconds,
                                   .saves = waiting.may_save * price_.share_won()};
      queue_(std::move(waiting.job));
    } else {
      explain(waiting);
    }
    return goes_on;
  });
  // No lock is held: whoever lets go of a module's code may be its last owner.
  if (round.look)
    std::erase_if(all, [&](const Waiting& waiting) {
      const std::shared_ptr<ModuleCode> code = waiting.job.code.lock();
      const bool gone = code == nullptr || code->optimized(waiting.job.unit()) == nullptr;
      const bool around = !gone && has_newer_code_around(waiting.job.unit(), *code);
      if (gone || around)
        decisions_.end(waiting.job.episode, DecisionState::kCompiled,
                       around ? "nothing was tried in it: code around it took over"
                              : "nothing was tried in it: it is in baseline code again");
      return gone || around;
    });
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
}

void SecondCompiles::forget(const ModuleCode& code) {
  std::vector<Waiting> gone;
  {
    const std::lock_guard lock(mutex_);
    for (Waiting& waiting : waiting_)
      if (waiting.job.module == code.module().get()) gone.push_back(std::move(waiting));
    std::erase_if(waiting_,
                  [&](const Waiting& waiting) { return waiting.job.module == code.module().get(); });
  }
  for (const Waiting& waiting : gone)
    decisions_.end(waiting.job.episode, DecisionState::kCompiled,
                   "nothing was tried in it: the run has ended");
}

}  // namespace hindsight::rt
