#include "runtime/adaptive/experiments/memory_growth.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <ctime>
#include <utility>

#include "feedback/policy/populate.h"
#include "runtime/adaptive/experiments/memory_fill.h"
#include "runtime/adaptive/experiments/populate_pages.h"

namespace hindsight::rt {
namespace {

constexpr uint64_t kSmallPage = 4096;
// What is known of a memory's growth is mostly about the last so many bytes of it.
constexpr uint64_t kRemembered = uint64_t{8} << 20;
// Memories that are known at a time: where there are more, all are learned anew.
constexpr size_t kMostMemories = 4096;

}  // namespace

void MemoryGrowth::grown(const wasm::Module* module, uint64_t base, uint64_t old_bytes, uint64_t bytes) {
  if (!engine_.policy.populate || bytes <= old_bytes) return;
  const std::lock_guard lock(mutex_);
  if (refused_) return;
  if (watched_.size() >= kMostMemories) watched_.clear();
  Watched& watch = watched_[base];
  // Another memory in the place of one that is gone.
  if (watch.module != module || old_bytes < watch.bytes) watch = {.module = module};
  watch.bytes = bytes;
  if (watch.step.bytes != 0) end_step(watch, read_thread());
  look_at_left(watch);
  const feedback::GrowthEvidence evidence{.step_bytes = bytes - old_bytes,
                                          .watched_bytes = watch.watched_bytes,
                                          .touched_bytes = watch.touched_bytes};
  if (static_cast<double>(evidence.step_bytes) > engine_.policy.max_growth_step_bytes || watch.lost) return;
  watch.populates = feedback::populates_growth(evidence, engine_.policy);
  const uint64_t begin = base + old_bytes, end = base + bytes;
  if (!watch.populates || feedback::watches_growth(watch.populated_steps + 1, engine_.policy)) {
    if (watch.populates) ++watch.populated_steps;
    watch.left_begin = begin;
    watch.left_end = end;
    return begin_step(watch, {.bytes = end - begin}, read_thread());
  }
  if (feedback::growth_lost(watch.trial.times(), engine_.policy)) {
    watch.lost = true;
    watch.populates = false;
    return;
  }
  const Reading begun = read_thread();
  const Populated populated = populate_pages(begin, end);
  refused_ = populated.error != 0;
  if (refused_) return;
  watch.seconds += populated.seconds;
  if (watch.populated_bytes == 0) watch.begun_at = engine_.clock.now();
  ++watch.populated_steps;
  watch.populated_bytes += end - begin;
  const Reading made = read_thread();
  begin_step(watch, {.bytes = end - begin, .seconds = made.seconds - begun.seconds, .made = true}, made);
}

MemoryGrowth::Reading MemoryGrowth::read_thread() {
  timespec time{};
  rusage usage{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0 || ::getrusage(RUSAGE_THREAD, &usage) != 0)
    return {};
  return {static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec),
          static_cast<uint64_t>(usage.ru_minflt)};
}

// Another thread's time says nothing about it.
void MemoryGrowth::end_step(Watched& watch, const Reading& now) {
  GrowthTrial::Step step = std::exchange(watch.step, {});
  if (watch.grower != std::this_thread::get_id()) return watch.trial.interrupt();
  step.seconds += now.seconds - watch.step_begun.seconds;
  step.faults = now.faults - watch.step_begun.faults;
  watch.trial.add(step);
}

void MemoryGrowth::begin_step(Watched& watch, const GrowthTrial::Step& step, const Reading& now) {
  watch.step = step;
  watch.step_begun = now;
  watch.grower = std::this_thread::get_id();
}

// The step before this one, if the guest had it to itself.
void MemoryGrowth::look_at_left(Watched& watch) {
  if (const auto pages = touched_pages(watch.left_begin, watch.left_end)) {
    watch.watched_bytes += watch.left_end - watch.left_begin;
    watch.touched_bytes += *pages * kSmallPage;
  }
  watch.left_begin = watch.left_end = 0;
  if (watch.watched_bytes <= kRemembered) return;
  watch.watched_bytes /= 2;
  watch.touched_bytes /= 2;
}

std::string MemoryGrowth::reason_of(const Watched& watch) {
  return fmt::format("{} of {} KiB by which the memory grew, and that were left to the guest, were touched",
                     watch.touched_bytes >> 10, watch.watched_bytes >> 10);
}

std::string MemoryGrowth::outcome_of(const Watched& watch) const {
  std::string outcome = fmt::format(
      "made the pages of {:.1f} MiB in {} steps, as the memory grew, in {:.1f} ms",
      static_cast<double>(watch.populated_bytes) / (1 << 20), watch.populated_steps, 1e3 * watch.seconds);
  const feedback::GrowthTimes times = watch.trial.times();
  outcome += fmt::format("; {} KiB have {:.1f} page faults so, and {:.1f} without",
                         GrowthTrial::kUnitBytes >> 10, times.made_faults, times.left_faults);
  if (!feedback::is_told(times, engine_.policy))
    return outcome +
           fmt::format("; {} pairs of steps, one with and one without: too few to judge it by", times.pairs);
  outcome += fmt::format(
      "; up to the next step they take the guest {:.1f} us, and {:.1f} without: {:+.1f} % "
      "(medians of {} pairs)",
      1e6 * times.made_seconds, 1e6 * times.left_seconds, 100 * (times.ratio - 1), times.pairs);
  return watch.lost ? outcome + ": left to the guest from then on" : outcome;
}

void MemoryGrowth::round(const Round& round) {
  if (!round.look) return;
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [base, watch] : watched_)
      if (watch.populated_bytes != 0 && !std::exchange(watch.said, true))
        lines.push_back(fmt::format("populate: {}: makes pages as the memory grows", reason_of(watch)));
  }
  for (const std::string& line : lines) engine_.services.say(LogLevel::kInfo, "policy", line);
}

size_t MemoryGrowth::forget_decisions(const wasm::Module* module) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(watched_, [&](const auto& watch) { return watch.second.module == module; });
}

void MemoryGrowth::report(DecisionSink& decisions) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [base, watch] : watched_) {
    if (watch.populated_bytes == 0) continue;
    DecisionReport decision;
    decision.id = decisions.size() + 1;
    decision.kind = "populate";
    decision.function = "linear memory";
    decision.reason = reason_of(watch);
    const feedback::GrowthTimes times = watch.trial.times();
    const bool told = feedback::is_told(times, engine_.policy);
    decision.state = !watch.populates ? DecisionState::kRolledBack
                     : told           ? DecisionState::kKept
                                      : DecisionState::kUnjudged;
    if (told) decision.measured_gain = times.ratio - 1;
    decision.outcome = outcome_of(watch);
    decision.seconds = watch.begun_at;
    decisions.push_back(std::move(decision));
  }
}

}  // namespace hindsight::rt
