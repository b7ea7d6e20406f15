#include "runtime/adaptive/experiments/page_move.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/experiments/module_move.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr double kMoveStepSeconds = 0.02;
constexpr size_t kMostSizes = 1024;
constexpr size_t kMostTold = 64;  // of a module, that have ended
constexpr double kMostly = 0.8;   // of a range: not worth moving the rest

// What has moved of it and is not told yet goes with what the profile's trial is told.
template <typename Move>
void collect_moved(Move& move) {
  const size_t done = move.under_way->done();
  for (; move.marked < done; ++move.marked)
    if (move.under_way->has_moved(move.marked))
      move.unmarked.push_back(move.under_way->order()[move.marked] / feedback::kHugePageBytes);
}

}  // namespace

PageMoves::PageMoves(const EngineParts& engine, Measurement& measurement, TimedLoops timed_loops)
    : engine_(engine), measurement_(measurement), timed_loops_(std::move(timed_loops)) {}

// ---------------------------------------------------------------- what earlier runs decided

void PageMoves::remember(const wasm::Module* module, std::vector<feedback::PageEpisode> known) {
  const std::lock_guard lock(mutex_);
  known_[module] = std::move(known);
}

void PageMoves::on_instance(const ModuleCode& code, const Instance& instance) {
  const wasm::Module* const module = code.module().get();
  std::vector<feedback::PageEpisode> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(module);
    if (found == known_.end()) return;
    known = found->second;
  }
  const bool again = code.instance_count() > 1;
  for (feedback::PageEpisode& earlier : known) {
    const feedback::PageStart start = feedback::decide_pages_at_start(earlier, engine_.policy);
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
    Move move;
    move.module = module;
    move.evidence = earlier.evidence;
    move.plan.estimated_gain = earlier.estimated_gain;
    move.plan.reason = start.reason;
    move.measured_gain = earlier.measured_gain;
    move.places = earlier.places;
    move.state = asked ? DecisionState::kKept : DecisionState::kFailed;
    move.outcome = asked ? "asked for before the first touch" : "the kernel refused";
    move.seconds = engine_.clock.now();
    move.earlier = std::move(earlier);
    const std::lock_guard lock(mutex_);
    moves_.push_back(std::move(move));
  }
}

bool PageMoves::kept_from_earlier(const wasm::Module* module) const {
  const std::lock_guard lock(mutex_);
  if (const auto dropped = dropped_.find(module); dropped != dropped_.end())
    if (dropped->second.kept_from_earlier) return true;
  return std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
    return move.module == module && move.earlier && move.state == DecisionState::kKept;
  });
}

uint64_t PageMoves::kept_from_earlier(const wasm::Module* module, uint32_t memory) const {
  const std::lock_guard lock(mutex_);
  uint64_t end = 0;
  for (const Move& move : moves_)
    if (move.module == module && move.earlier && move.state == DecisionState::kKept)
      for (const feedback::PageEpisode::Place& place : move.places)
        if (place.memory == memory) end = std::max(end, place.end);
  return end;
}

// Whether an earlier run's decision has brought about what `plan`, or what it is a part of, is to do.
bool PageMoves::already_huge(const wasm::Module* module, const feedback::PagePlan& plan) const {
  if (!kept_from_earlier(module)) return false;
  uint64_t huge = 0, bytes = 0;
  for (const feedback::PageRange& range : plan.whole) {
    huge += bytes_on_huge_pages(range.begin, range.end);
    bytes += range.end - range.begin;
  }
  return static_cast<double>(huge) >= kMostly * static_cast<double>(bytes);
}

// ---------------------------------------------------------------- monitor thread

void PageMoves::round(const Round& round) {
  drop_old();
  follow(round);
  if (!round.look) return;
  judge(round.now);
  ask();
}

// What those that go say of the next ones stays. Only after new ones came is there anything to drop.
void PageMoves::drop_old() {
  std::list<Move> old;  // goes without the lock
  {
    const std::lock_guard lock(mutex_);
    const bool came = moves_.size() > moves_seen_;
    moves_seen_ = moves_.size();
    if (!came || moves_.size() <= kMostTold) return;
    std::map<const wasm::Module*, size_t> ended;
    for (const Move& move : moves_)
      if (move.has_ended()) ++ended[move.module];
    for (auto next = moves_.begin(); next != moves_.end();) {
      const auto move = next++;
      if (!move->has_ended() || ended[move->module] <= kMostTold) continue;
      --ended[move->module];
      Dropped& dropped = dropped_[move->module];
      ++dropped.count;
      dropped.vain.add(*move, engine_.policy);
      dropped.kept_from_earlier |= move->earlier && move->state == DecisionState::kKept;
      old.splice(old.end(), moves_, move);
    }
    moves_seen_ = moves_.size();
  }
  if (!old.empty())
    say(LogLevel::kDebug, "pages",
        fmt::format("{} of the oldest decisions about huge pages are not told any more; counted in reports",
                    old.size()));
}

// What has moved since the last round is known to the profile, and what that gives to the move, also after its end. Samples of a
// round that came before a page moved in that round are taken for the other kind: rounds are short while something moves.
void PageMoves::follow(const Round& round) {
  struct Moving {
    Move* move;
    const wasm::Module* module;
    std::vector<uint64_t> moved = {};
    double left_seconds = 0;
  };
  std::vector<Moving> all;
  {
    const std::lock_guard lock(mutex_);
    const double seconds_a_byte = bytes_copied_ > 0 ? copy_seconds_ / static_cast<double>(bytes_copied_)
                                                    : engine_.policy.most_move_seconds_per_byte;
    for (Move& move : moves_) {
      if (!move.compared || !move.is_open()) continue;
      if (move.under_way != nullptr) collect_moved(move);
      // What it gave is looked for at every look, after its end.
      if (move.under_way == nullptr && move.unmarked.empty() && !round.look) continue;
      Moving moving{.move = &move, .module = move.module, .moved = std::exchange(move.unmarked, {})};
      if (move.under_way != nullptr)
        moving.left_seconds = static_cast<double>(move.under_way->order().size() - move.marked) *
                              feedback::kHugePageBytes * seconds_a_byte;
      all.push_back(std::move(moving));
    }
  }
  std::vector<Move*> released;
  for (Moving& moving : all) {
    feedback::PageGain gain;
    double seconds = 0;
    engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      const auto found = profiles.find(moving.module);
      if (found == profiles.end() || !found->second->pages().trial) return;
      for (const uint64_t region : moving.moved) found->second->pages().trial->moved(region);
      gain = found->second->pages().trial->gain();
      seconds = found->second->seconds_seen();
    });
    const std::lock_guard lock(mutex_);
    Move& move = *moving.move;
    move.gain = gain;
    if (move.under_way == nullptr || moving.left_seconds == 0) continue;
    // More than nothing, also in the round in which it holds.
    const double held_seconds =
        move.held_since ? std::max(1e-9, std::chrono::duration<double>(round.now - *move.held_since).count())
                        : 0;
    const feedback::PageJudgement judgement =
        feedback::judge_pages({.gain = gain,
                               .seconds = seconds - move.first_stall_seconds,
                               .left_seconds = moving.left_seconds,
                               .held_seconds = held_seconds,
                               .timed = !move.before.empty()},
                              move.plan, engine_.policy);
    if (judgement.verdict == feedback::PageVerdict::kHold) continue;
    if (judgement.verdict == feedback::PageVerdict::kGoOn) {
      if (!move.held_since) continue;
      move.under_way->go_on();
    } else {
      move.under_way->stop_here();
    }
    if (std::exchange(move.held_since, std::nullopt)) released.push_back(&move);
  }
  for (Move* move : released) step_again(*move);
}

void PageMoves::step_again(Move& move) {
  if (engine_.queue.run([this] { move_pages(); })) return;
  const std::lock_guard lock(mutex_);
  move.under_way.reset();
  fail(move, "no thread could be created to move them");
}

void PageMoves::fail(Move& move, const char* why) {
  move.state = DecisionState::kFailed;
  move.outcome += why;
  for (Move& part : moves_)
    if (part.rest == &move) part.rest = nullptr;
}

void PageMoves::ask() {
  if (!engine_.policy.huge_pages || beside_huge_.is_awaited()) return;
  std::optional<Measurement::Lease> lease = measurement_.try_begin(Disturbs::kMemory);
  if (!lease) return;
  double move_seconds_per_byte = 0, moving_seconds_per_byte = 0;
  {
    const std::lock_guard lock(mutex_);
    // What is under way says what the next one takes.
    if (std::any_of(moves_.begin(), moves_.end(), [](const Move& move) { return move.is_moving(); })) return;
    if (bytes_copied_ > 0) {
      // A part may be through before the guest comes by, which says little of the whole: as many bytes more as a part
      // has count as if they had taken what they usually do.
      const double usual = engine_.policy.page_probe_bytes;
      const auto copied = static_cast<double>(bytes_copied_);
      move_seconds_per_byte =
          (copy_seconds_ + usual * engine_.policy.least_move_seconds_per_byte) / (copied + usual);
      moving_seconds_per_byte = moving_seconds_ / copied;
    }
  }
  std::vector<Wanted> wanted;
  std::vector<std::string> reasons;  // of those that stay
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (auto& [module, profile] : profiles) {
      if (profile->pages().addresses == 0) continue;
      feedback::PageEvidence evidence = profile->page_evidence();
      evidence.move_seconds_per_byte = move_seconds_per_byte;
      evidence.moving_seconds_per_byte = moving_seconds_per_byte;
      evidence.vain_bytes = vain_bytes(module, evidence.seconds);
      feedback::PagePlan plan = feedback::decide_pages(evidence, engine_.policy);
      if (plan.ranges.empty()) {
        reasons.push_back(std::move(plan.reason));
        continue;
      }
      const double first_stall_seconds = profile->seconds_seen() - evidence.seconds;
      wanted.push_back({module, std::move(plan), std::move(evidence), first_stall_seconds});
    }
  });
  for (const std::string& reason : reasons) say(LogLevel::kDebug, "policy", "no huge-pages: " + reason);
  for (Wanted& want : wanted) {
    if (has_grown(want.module)) {
      say(LogLevel::kDebug, "policy",
          "no huge-pages: the memory grows, and most of what it will be is not known");
      continue;
    }
    // A move is some of the memory at first and most of it at last, and is judged by what has not moved.
    if (beside_huge_.is_slower()) {
      settle(want.module, want.plan.whole);
      say(LogLevel::kInfo, "policy",
          fmt::format("no huge-pages: {}; but small pages are slower here beside huge ones, and a move makes "
                      "both of one memory",
                      want.plan.reason));
      continue;
    }
    if (already_huge(want.module, want.plan)) {
      settle(want.module, want.plan.whole);
      say(LogLevel::kInfo, "policy",
          "no huge-pages: the memory has them already, as asked before its first touch");
      continue;
    }
    settle(want.module, want.plan.ranges);
    say(LogLevel::kInfo, "policy", fmt::format("huge-pages: {}", want.plan.reason));
    begin(want);
  }
  // From here on it is held as long as any of them needs it.
  const std::lock_guard lock(mutex_);
  lease_ = std::move(lease);
  end_lease();
}

bool PageMoves::has_grown(const wasm::Module* module) {
  if (sizes_.size() > kMostSizes) sizes_.clear();  // of modules that are gone
  uint64_t bytes = 0;
  if (const std::shared_ptr<ModuleCode> code = engine_.modules.find(module))
    for (const ModuleCode::MemorySpan& span : code->memories()) bytes += span.bytes;
  return std::exchange(sizes_[module], bytes) != bytes;
}

void PageMoves::settle(const wasm::Module* module, const std::vector<feedback::PageRange>& ranges) {
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    for (const feedback::PageRange& range : ranges) found->second->pages().settle(range.begin, range.end);
  });
}

void PageMoves::begin(const Wanted& wanted) {
  const wasm::Module* const module = wanted.module;
  const std::shared_ptr<ModuleCode> code = engine_.modules.find(module);
  if (!code) return;
  Move move;
  move.module = module;
  move.plan = wanted.plan;
  move.evidence = wanted.evidence;
  move.first_stall_seconds = wanted.first_stall_seconds;
  move.seconds = engine_.clock.now();
  for (const feedback::PageRange& range : move.plan.ranges)
    for (const ModuleCode::MemoryPlace& place : code->places_of(range.begin, range.end))
      move.places.push_back({.memory = place.memory, .begin = place.begin, .end = place.end});
  // Of a small part their time hardly shows what that gives, but all else that happens meanwhile.
  if (!move.plan.probe) move.before = timed_loops_(module);
  move.under_way = std::make_unique<HugePageMove>(move.plan.ranges, move.plan.most_seconds,
                                                  feedback::bytes_before_hold(move.plan, engine_.policy));
  move.compared = true;
  Move* begun = nullptr;
  std::vector<Wanted> parts;
  {
    const std::lock_guard lock(mutex_);
    move.unjudged_before = unjudged_before(module, /*fill=*/false);
    begun = &moves_.emplace_back(std::move(move));
    for (Move& other : moves_) {
      if (other.module != module || &other == begun) continue;
      other.compared = false;
      if (!other.plan.probe || other.state != DecisionState::kMoved) continue;
      other.rest = begun;
      parts.push_back({module, other.plan, other.evidence, other.first_stall_seconds});
    }
  }
  compare(parts, wanted);
  step_again(*begun);
}

void PageMoves::end_lease() {
  if (std::none_of(moves_.begin(), moves_.end(), [](const Move& move) { return move.needs_lease(); }))
    lease_.reset();
}

// ---------------------------------------------------------------- compile threads

// Queues itself again after what compiles have come meanwhile.
void PageMoves::move_pages() {
  Move* move = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto next =
        std::find_if(moves_.begin(), moves_.end(), [](const Move& other) { return other.is_waiting(); });
    if (next == moves_.end()) return;
    move = &*next;
    move->state = DecisionState::kMoving;
    move->stepping = true;
  }
  const bool ended = move->under_way->step(engine_.queue.abandon(), kMoveStepSeconds);
  const HugePageResult result = move->under_way->result();
  // Who stops the engine has told the step so, and it ends at the next one: nothing else ends the move.
  const bool holds = !ended && move->under_way->holds();
  if (!ended && !holds) {
    {
      const std::lock_guard lock(mutex_);
      move->stepping = false;
    }
    return engine_.queue.run_again([this] { move_pages(); });
  }
  std::string outcome =
      fmt::format("moved {} MiB in {:.1f} ms, for up to {:.1f} ms of which the guest may have waited",
                  result.moved_bytes >> 20, 1e3 * result.seconds, 1e3 * result.waited_seconds);
  if (ended && result.copied_bytes < result.moved_bytes)
    outcome += fmt::format(", {} MiB of them on huge pages already",
                           (result.moved_bytes - result.copied_bytes) >> 20);
  if (result.advised) outcome += ", and left the rest to the kernel, which cannot move at once";
  if (result.refused_bytes != 0)
    outcome +=
        fmt::format(", and the kernel refused {} MiB ({})", result.refused_bytes >> 20, result.first_refusal);
  if (result.stopped)
    outcome += ", and left the rest where it is, as what had moved was seen to bring too little";
  if (result.late)
    outcome += ", and left the rest where it is, as the move took longer than its gain is worth";
  if (holds) outcome += ", and holds until it is seen what that gives";
  say(LogLevel::kInfo, "pages", outcome);
  const std::lock_guard lock(mutex_);
  move->stepping = false;
  if (holds) {
    move->outcome = outcome;
    move->held_since = EngineClock::Clock::now();
    return;
  }
  bytes_copied_ += result.copied_bytes;
  if (result.copied_bytes > 0) {
    moving_seconds_ += result.seconds;
    copy_seconds_ += result.waited_seconds + engine_.policy.background_cost * result.prepared_seconds;
  }
  collect_moved(*move);
  move->under_way.reset();
  move->partly = move->plan.probe || result.moved_bytes < move->plan.bytes;
  move->stopped = result.stopped;
  move->found_huge =
      move->plan.probe && result.moved_bytes != 0 &&
      static_cast<double>(result.copied_bytes) <= (1 - kMostly) * static_cast<double>(result.moved_bytes);
  move->outcome = outcome;
  move->moved_at = EngineClock::Clock::now();
  move->state = DecisionState::kMoved;
  if (result.moved_bytes == 0 && !result.advised) fail(*move, "");
  measured_.store(move->plan.probe, std::memory_order_relaxed);
  end_lease();
}

// ---------------------------------------------------------------- memory that is being filled

void PageMoves::note_asked(Asked asked, bool granted) {
  Move move;
  move.module = asked.module;
  move.plan = std::move(asked.plan);
  move.evidence = std::move(asked.evidence);
  move.places = {asked.place};
  move.state = granted ? DecisionState::kTrial : DecisionState::kFailed;
  move.outcome = granted ? "asked for while the memory is being filled" : "the kernel refused";
  move.seconds = engine_.clock.now();
  const std::lock_guard lock(mutex_);
  move.unjudged_before = unjudged_before(move.module, /*fill=*/true);
  moves_.push_back(std::move(move));
}

void PageMoves::note_filling(const wasm::Module* module, const feedback::FillEvidence& asked,
                             const std::string& figures) {
  const std::lock_guard lock(mutex_);
  for (Move& move : moves_)
    if (move.module == module && move.state == DecisionState::kTrial && move.evidence.fill == asked)
      move.figures = figures;
}

void PageMoves::note_filled(const wasm::Module* module, const feedback::FillEvidence& asked,
                            DecisionState state, const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  for (Move& move : moves_) {
    if (move.module != module || move.state != DecisionState::kTrial || move.evidence.fill != asked) continue;
    move.state = state;
    move.outcome = outcome;
  }
}

// ---------------------------------------------------------------- any thread

std::set<const wasm::Module*> PageMoves::moving() const {
  std::set<const wasm::Module*> moving;
  const std::lock_guard lock(mutex_);
  for (const Move& move : moves_)
    if (move.is_moving()) moving.insert(move.module);
  return moving;
}

uint64_t PageMoves::dropped() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [module, dropped] : dropped_) sum += dropped.count;
  return sum;
}

void PageMoves::forget(const ModuleCode& code) {
  const std::lock_guard lock(mutex_);
  known_.erase(code.module().get());
}

size_t PageMoves::forget_decisions(const wasm::Module* module) {
  const std::lock_guard lock(mutex_);
  size_t forgotten =
      std::erase_if(moves_, [&](const Move& move) { return move.module == module && !move.is_moving(); });
  if (const auto dropped = dropped_.find(module); dropped != dropped_.end()) {
    forgotten += dropped->second.count;
    dropped_.erase(dropped);
  }
  end_lease();
  return forgotten;
}

void PageMoves::report(DecisionSink& decisions) const {
  const std::lock_guard lock(mutex_);
  size_t number = 0;
  for (const Move& move : moves_)
    decisions.push_back(report_of_move(move, ++number, "huge-pages", "linear memory"));
}

}  // namespace hindsight::rt
