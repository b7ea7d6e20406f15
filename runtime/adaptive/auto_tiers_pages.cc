// What AutoTiers does about pages: asks the policy, moves ranges in the background, and looks at what it
// gave.
//
// A move cannot alternate as a prefetch does. So its trial is before against after, by the time per iteration
// of the loops whose prefetch is settled and keeps being timed; where there is none, nothing is claimed.
#include <fmt/format.h>
#include <x86intrin.h>

#include <algorithm>

#include "runtime/adaptive/auto_tiers.h"
#include "runtime/code/module_move.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr auto kJudgeAfter = 100ms;
constexpr double kWorthUndoing = -0.05;
constexpr double kMoveStepSeconds = 0.02;
constexpr double kMostly = 0.8;  // of a range: not worth moving the rest

}  // namespace

// Once a module, when its first memories come to be.
void AutoTiers::on_instance(ModuleCode& code, const Instance& instance) {
  if (!owner_.here()) return;
  std::vector<feedback::PageEpisode> known;
  bool again = false;
  {
    std::lock_guard lock(mutex_);
    ModuleState* state = state_of(code);
    if (state == nullptr) return;
    known = state->known_pages;
    again = code.instance_count() > 1;
  }
  for (feedback::PageEpisode& earlier : known) {
    const feedback::PageStart start = feedback::decide_pages_at_start(earlier, policy_);
    if (!again)
      say(start.ask ? LogLevel::kInfo : LogLevel::kDebug, "policy",
          fmt::format("{}huge-pages: {}", start.ask ? "" : "no ", start.reason));
    if (!start.ask) continue;
    bool asked = false;
    for (const feedback::PageEpisode::Place& place : earlier.places) {
      const Memory* const memory = instance.memory(place.memory);
      if (memory == nullptr) continue;
      // What it may grow to is reserved; a file may name more.
      const uint64_t most = memory->record()->max_pages * wasm::kPageBytes;
      const auto base = reinterpret_cast<uint64_t>(memory->base());
      asked |= ask_for_huge_pages(base + std::min(place.begin, most), base + std::min(place.end, most));
    }
    if (again) continue;
    PageMove move;
    move.module = code.module().get();
    move.evidence = earlier.evidence;
    move.plan.estimated_gain = earlier.estimated_gain;
    move.plan.reason = start.reason;
    move.measured_gain = earlier.measured_gain;
    move.places = earlier.places;
    move.state = asked ? "kept" : "failed";
    move.outcome = asked ? "asked for before the first touch" : "the kernel refused";
    move.seconds = now_seconds();
    move.earlier = std::move(earlier);
    std::lock_guard lock(mutex_);
    page_moves_.push_back(std::move(move));
  }
}

// Whether an earlier run's decision has brought about what `plan`, or what it is a part of, is to do.
bool AutoTiers::already_huge(const wasm::Module* module, const feedback::PagePlan& plan) {
  if (!kept_from_earlier(module)) return false;
  uint64_t huge = 0, bytes = 0;
  for (const feedback::PageRange& range : plan.whole) {
    huge += bytes_on_huge_pages(range.begin, range.end);
    bytes += range.end - range.begin;
  }
  return static_cast<double>(huge) >= kMostly * static_cast<double>(bytes);
}

void AutoTiers::ask_pages() {
  // A range that moves under a trial would be taken for the trial's doing.
  if (!policy_.huge_pages || gate_.busy(__rdtsc())) return;
  double move_seconds_per_byte = 0;
  {
    std::lock_guard lock(mutex_);
    // What is under way says what the next one takes.
    if (std::any_of(page_moves_.begin(), page_moves_.end(),
                    [](const PageMove& move) { return move.state == "queued" || move.state == "moving"; }))
      return;
    if (page_bytes_copied_ > 0)
      move_seconds_per_byte = page_seconds_ / static_cast<double>(page_bytes_copied_);
  }
  struct Wanted {
    const wasm::Module* module;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;
  };
  std::vector<Wanted> wanted;
  std::vector<std::string> reasons;  // of those that stay
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (auto& [module, profile] : profiles) {
      if (profile->pages().addresses == 0) continue;
      feedback::PageEvidence evidence = profile->page_evidence();
      evidence.move_seconds_per_byte = move_seconds_per_byte;
      feedback::PagePlan plan = feedback::decide_pages(evidence, policy_);
      if (plan.ranges.empty()) {
        reasons.push_back(std::move(plan.reason));
        continue;
      }
      wanted.push_back({module, std::move(plan), std::move(evidence)});
    }
  });
  const auto settle = [this](const wasm::Module* module, const std::vector<feedback::PageRange>& ranges) {
    monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
      const auto found = profiles.find(module);
      if (found == profiles.end()) return;
      for (const feedback::PageRange& range : ranges) found->second->pages().settle(range.begin, range.end);
    });
  };
  for (const std::string& reason : reasons) say(LogLevel::kDebug, "policy", "no huge-pages: " + reason);
  for (Wanted& want : wanted) {
    if (already_huge(want.module, want.plan)) {
      settle(want.module, want.plan.whole);
      say(LogLevel::kInfo, "policy", "no huge-pages: asked for before the first touch, and there by now");
      continue;
    }
    settle(want.module, want.plan.ranges);
    say(LogLevel::kInfo, "policy", fmt::format("huge-pages: {}", want.plan.reason));
    std::lock_guard lock(mutex_);
    ModuleState* state = state_of(want.module);
    if (stopping_ || !state || state->gone) continue;
    PageMove move;
    move.module = want.module;
    move.plan = std::move(want.plan);
    move.evidence = std::move(want.evidence);
    move.seconds = now_seconds();
    if (const std::shared_ptr<ModuleCode> code = state->code.lock()) {
      for (const feedback::PageRange& range : move.plan.ranges)
        for (const ModuleCode::MemoryPlace& place : code->places_of(range.begin, range.end))
          move.places.push_back({.memory = place.memory, .begin = place.begin, .end = place.end});
    }
    for (const auto& [function, watch] : state->watches) {
      for (const auto& trial : watch.trials) {
        if (const LoopTrial::Status status = trial->status(); status.ticks_an_iteration > 0)
          move.before.emplace_back(trial, status.ticks_an_iteration);
      }
    }
    page_moves_.push_back(std::move(move));
    if (enqueue(&AutoTiers::move_pages)) continue;
    page_moves_.back().state = "failed";
    page_moves_.back().outcome = "there is no thread to move them on";
  }
}

// A task of the compile threads, which queues itself again behind what compiles have come meanwhile.
void AutoTiers::move_pages() {
  PageMove* move = nullptr;
  {
    std::lock_guard lock(mutex_);
    for (PageMove& candidate : page_moves_) {
      if (candidate.state != "queued" && candidate.state != "moving") continue;
      move = &candidate;  // stays where it is: a list, from which nothing is removed that moves
      if (!move->under_way)
        move->under_way = std::make_unique<HugePageMove>(move->plan.ranges, move->plan.most_seconds);
      move->state = "moving";
      break;
    }
  }
  if (move == nullptr) return;
  // No other task looks at it: there is one of these at a time.
  const bool ended = move->under_way->step(abandon_, kMoveStepSeconds);
  const HugePageResult result = move->under_way->result();
  if (!ended) {
    std::lock_guard lock(mutex_);
    // Who stops the engine has told the step so, and it ends at the next one: nothing else ends the move.
    enqueue(&AutoTiers::move_pages);
    return;
  }
  std::string outcome =
      fmt::format("{} MiB moved in {:.1f} ms, of which who lives there may have waited {:.1f}",
                  result.moved_bytes >> 20, 1e3 * result.seconds, 1e3 * result.waited_seconds);
  if (result.copied_bytes < result.moved_bytes)
    outcome +=
        fmt::format(", {} MiB of them there already", (result.moved_bytes - result.copied_bytes) >> 20);
  if (result.advised) outcome += ", the rest left to the kernel, which cannot move at once";
  if (result.refused_bytes != 0)
    outcome += fmt::format(", {} MiB refused ({})", result.refused_bytes >> 20, result.first_refusal);
  if (result.late)
    outcome += ", and the rest left where it is: the move took longer than what it was to return is worth";
  say(LogLevel::kInfo, "pages", outcome);
  std::lock_guard lock(mutex_);
  page_bytes_copied_ += result.copied_bytes;
  if (result.copied_bytes > 0)
    page_seconds_ += result.waited_seconds + policy_.background_cost * result.prepared_seconds;
  move->under_way.reset();
  move->outcome = outcome;
  move->moved_at = Clock::now();
  move->state = result.moved_bytes == 0 && !result.advised ? "failed" : "moved";
  pages_measured_.store(move->plan.probe, std::memory_order_relaxed);
}

void AutoTiers::judge_pages(Clock::time_point now) {
  std::vector<std::string> lines;
  {
    std::lock_guard lock(mutex_);
    for (PageMove& move : page_moves_) {
      if (move.state != "moved" || now - move.moved_at < kJudgeAfter) continue;
      std::vector<double> gains;
      for (const auto& [trial, before] : move.before) {
        const LoopTrial::Status status = trial->status();
        if (status.ticks_an_iteration > 0) gains.push_back(before / status.ticks_an_iteration - 1);
      }
      move.state = "kept";
      if (gains.empty()) {
        move.outcome += "; what it gave is not known: no loop is timed that ran before and after";
      } else {
        std::sort(gains.begin(), gains.end());
        move.measured_gain = gains[gains.size() / 2];
        move.outcome += fmt::format("; {:+.1f} % in the median of {} timed loop{}", 100 * move.measured_gain,
                                    gains.size(), gains.size() == 1 ? "" : "s");
        if (move.measured_gain < kWorthUndoing) {
          for (const feedback::PageRange& range : move.plan.ranges) leave_huge_pages(range.begin, range.end);
          move.state = "rolled back";
        }
      }
      lines.push_back(fmt::format("huge-pages: {}, {}", move.state, move.outcome));
    }
  }
  for (const std::string& line : lines) say(LogLevel::kInfo, "trial", line);
}

std::vector<feedback::PageEpisode> AutoTiers::page_episodes(const wasm::Module* module) const {
  std::vector<feedback::PageEpisode> episodes;
  for (const PageMove& move : page_moves_) {
    if (move.module != module) continue;
    feedback::PageEpisode episode =
        move.earlier ? *move.earlier : feedback::make_page_episode(move.evidence, move.plan);
    episode.runs_ago = 0;
    episode.places = move.places;
    put_outcome(move, episodes.size() + 1, episode);
    episodes.push_back(std::move(episode));
  }
  return episodes;
}

// Under mutex_.
void AutoTiers::report_pages(FeedbackReport& report) const {
  size_t number = 0;
  for (const PageMove& move : page_moves_)
    report.decisions.push_back(report_of_move(move, ++number, "huge-pages", "linear memory"));
}

}  // namespace hindsight::rt
