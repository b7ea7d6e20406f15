// What moves of pages are judged by, and what they have come to: the figure with which each ends, what of it is kept for later
// runs, and what those make of it.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/experiments/module_move.h"
#include "runtime/adaptive/experiments/page_move.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr auto kJudgeAfter = 100ms;
constexpr double kWorthUndoing = -0.05;
// One after the other: the kernel has given huge pages there by itself.
constexpr uint32_t kMostProbesOfHugePages = 3;

void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += "; ";
  text += more;
}

// Those of the ranges, also where nothing was seen to stall.
std::map<uint64_t, uint64_t> stalls_by_region(const std::vector<feedback::PageRange>& ranges,
                                              const feedback::PageEvidence& evidence) {
  std::map<uint64_t, uint64_t> stalls;
  for (const feedback::PageRange& range : ranges)
    for (uint64_t at = range.begin; at < range.end; at += feedback::kHugePageBytes)
      stalls.try_emplace(at / feedback::kHugePageBytes, 0);
  for (const feedback::PageEvidence::Region& region : evidence.regions)
    if (const auto found = stalls.find(region.index); found != stalls.end()) found->second = region.addresses;
  return stalls;
}

}  // namespace

// Stalls in what moves are counted apart from here on. Of a part, what it is to be compared with does not move yet.
void PageMoves::compare(const std::vector<Wanted>& parts, const Wanted& move) {
  std::map<uint64_t, uint64_t> addresses = stalls_by_region(move.plan.whole, move.evidence);
  for (const Wanted& part : parts) {
    const std::map<uint64_t, uint64_t> of_part = stalls_by_region(part.plan.ranges, part.evidence);
    // A part was seen to stall until it moved, and all others until now: as much longer as these have more stalls.
    double then = 0, now = 0;
    for (const feedback::PageEvidence::Region& region : part.evidence.regions)
      if (!of_part.contains(region.index)) then += static_cast<double>(region.addresses);
    for (const feedback::PageEvidence::Region& region : move.evidence.regions)
      now += static_cast<double>(region.addresses);
    for (const auto& [region, count] : of_part)
      addresses[region] = static_cast<uint64_t>(then > 0 ? static_cast<double>(count) * now / then : 0);
  }
  std::vector<feedback::PageEvidence::Region> regions;
  for (const auto& [region, count] : addresses) regions.push_back({region, count});
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(move.module);
    if (found == profiles.end()) return;
    feedback::PageTrial& trial = found->second->pages().trial.emplace(regions);
    for (const Wanted& part : parts)
      for (const auto& [region, count] : stalls_by_region(part.plan.ranges, part.evidence))
        trial.moved(region);
  });
}

PageMoves::Outcome PageMoves::outcome_of(const Move& move) const {
  std::vector<double> gains;
  for (const auto& [trial, before] : move.before)
    if (const double after = trial->settled_ticks_an_iteration(); after > 0)
      gains.push_back(before / after - 1);
  const feedback::PageJudgement judgement =
      feedback::judge_pages({.gain = move.gain}, move.plan, engine_.policy);
  Outcome outcome{.words = judgement.words};
  bool undo = false;
  if (!gains.empty()) {
    std::sort(gains.begin(), gains.end());
    outcome.measured_gain = gains[gains.size() / 2];
    outcome.words += fmt::format("; {:+.1f} % (median of {} timed loop{})", 100 * outcome.measured_gain,
                                 gains.size(), gains.size() == 1 ? "" : "s");
    undo = outcome.measured_gain < kWorthUndoing;
  } else if (feedback::is_told(move.gain, engine_.policy)) {
    outcome.measured_gain = move.gain.saved * move.plan.stall_share;
    outcome.words += fmt::format("; {:+.1f} % with {:.0f} % of the time in such stalls",
                                 100 * outcome.measured_gain, 100 * move.plan.stall_share);
    undo = judgement.verdict == feedback::PageVerdict::kUndo;
  } else {
    // One sample can say anything: a figure would be taken for one by a later run.
    outcome.words += ": too few to judge it by";
    return outcome;
  }
  outcome.state = undo ? DecisionState::kRolledBack : DecisionState::kKept;
  return outcome;
}

// Loops may be timed again, and where a part has moved stalls go on in both kinds of pages.
bool PageMoves::may_tell_later(const Move& move, EngineClock::Time now) const {
  return std::chrono::duration<double>(now - move.moved_at).count() < engine_.policy.most_page_hold_seconds &&
         (!move.before.empty() || (move.compared && move.partly));
}

void PageMoves::conclude(Move& move, const Outcome& outcome) {
  move.state = outcome.state;
  move.measured_gain = outcome.measured_gain;
  append(move.outcome, outcome.words);
  if (move.state != DecisionState::kRolledBack) return;
  for (const feedback::PageRange& range : move.plan.ranges) leave_huge_pages(range.begin, range.end);
}

void PageMoves::judge(EngineClock::Time now) {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    const auto end = [&](Move& move, const Outcome& outcome) {
      conclude(move, outcome);
      lines.push_back(fmt::format("huge-pages: {}, {}", to_string(move.state), move.outcome));
    };
    for (Move& move : moves_) {
      if (move.state != DecisionState::kMoved || move.rest != nullptr || now - move.moved_at < kJudgeAfter)
        continue;
      Outcome outcome = outcome_of(move);
      if (outcome.state == DecisionState::kUnjudged && may_tell_later(move, now)) continue;
      end(move, outcome);
      outcome.words = "judged with what moved next";
      for (Move& part : moves_)
        if (part.rest == &move) end(part, outcome);
    }
    end_lease();
  }
  for (const std::string& line : lines) say(LogLevel::kInfo, "trial", line);
}

// While it is only seen by samples what a move gave, they are what is waited for.
bool PageMoves::compares() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
    return move.is_moving() ||
           (move.is_open() && move.compared && move.partly && !feedback::is_told(move.gain, engine_.policy));
  });
}

// ---------------------------------------------------------------- of earlier moves, for later ones

uint64_t PageMoves::vain_bytes(const wasm::Module* module, double seconds) const {
  const std::lock_guard lock(mutex_);
  Vain vain;
  if (const auto dropped = dropped_.find(module); dropped != dropped_.end()) vain = dropped->second.vain;
  for (const Move& move : moves_)
    if (move.module == module) vain.add(move, engine_.policy);
  if (const auto found = known_.find(module); found != known_.end())
    for (const feedback::PageEpisode& earlier : found->second)
      if (!earlier.evidence.fill)
        vain.bytes = std::max(vain.bytes, feedback::bytes_in_vain(earlier, seconds, engine_.policy));
  return vain.bytes;
}

uint64_t PageMoves::vain_bytes_filled(const wasm::Module* module) const {
  const std::lock_guard lock(mutex_);
  uint64_t most = 0;
  if (const auto found = known_.find(module); found != known_.end())
    for (const feedback::PageEpisode& earlier : found->second)
      if (earlier.evidence.fill)
        most = std::max(most, feedback::bytes_in_vain(earlier, /*seconds=*/0, engine_.policy));
  return most;
}

// Taken back, also what was left half done, and what was kept for nothing; what was tried of a part stands for the whole.
void PageMoves::Vain::add(const Move& move, const feedback::PolicyConfig& config) {
  if (!move.is_moving()) found_huge = move.found_huge ? found_huge + 1 : 0;
  const bool for_nothing = move.state == DecisionState::kKept && move.measured_gain != 0 &&
                           feedback::brought_nothing(move.measured_gain, config);
  if (move.state != DecisionState::kRolledBack && !move.stopped && !for_nothing &&
      found_huge < kMostProbesOfHugePages)
    return;
  uint64_t whole = 0;
  for (const feedback::PageRange& range : move.plan.whole) whole += range.end - range.begin;
  bytes = std::max(bytes, whole);
}

uint32_t PageMoves::unjudged_before(const wasm::Module* module, bool fill) const {
  uint32_t most = 0;
  if (const auto found = known_.find(module); found != known_.end())
    for (const feedback::PageEpisode& earlier : found->second)
      if (earlier.state == DecisionState::kUnjudged && earlier.evidence.fill.has_value() == fill)
        most = std::max(most, earlier.unjudged);
  return most;
}

// A program may end at any time: what is known by then is what the next run goes by.
void PageMoves::save(const wasm::Module* module, feedback::ModuleProfile& profile) const {
  const std::lock_guard lock(mutex_);
  for (const Move& move : moves_) {
    if (move.module != module) continue;
    feedback::PageEpisode episode =
        move.earlier ? *move.earlier : feedback::make_page_episode(move.evidence, move.plan);
    episode.runs_ago = 0;
    episode.places = move.places;
    put_outcome(move, profile.page_episodes.size() + 1, episode);
    const bool has_begun = move.is_open() && (move.under_way == nullptr || move.under_way->done() != 0);
    if (has_begun) {
      const Outcome outcome = outcome_of(move.rest != nullptr ? *move.rest : move);
      episode.state = outcome.state;
      episode.measured_gain = outcome.measured_gain;
      append(episode.outcome, outcome.words + "; the program ended then");
    } else if (move.state == DecisionState::kTrial) {
      episode.state = move.figures.empty() ? DecisionState::kUnjudged : DecisionState::kKept;
      append(episode.outcome,
             (move.figures.empty() ? "nothing was seen of it" : move.figures) + "; the program ended then");
    }
    if (episode.state == DecisionState::kUnjudged) episode.unjudged = move.unjudged_before + 1;
    profile.page_episodes.push_back(std::move(episode));
  }
}

}  // namespace hindsight::rt
