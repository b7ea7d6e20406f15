#include "runtime/adaptive/experiments/memory_filling.h"

#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/page_fill.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr uint64_t kLeastBytes = uint64_t{24} << 20;
constexpr uint32_t kMostBlocks = 64;  // looked at at a time
constexpr auto kQuickLook = 2ms;      // while the memory changes
constexpr auto kSlowestLook = 32ms;   // while there is something left to ask for
constexpr auto kIdleLook = 256ms;     // while there is not
constexpr auto kFillingPauses = 100ms;
constexpr auto kFillingEnds = 1s;  // without a change

// Where small pages are slower beside huge ones: of the former so much of the latter.
constexpr double kMostSmallBesideHuge = 0.25;

constexpr uint32_t kLeastToTell = 3;      // blocks looked at that a rate is taken over
constexpr uint32_t kLeastToTakeBack = 8;  // where pages are made ahead: that takes a while to begin
constexpr uint64_t kMostAtOnce = 1024;    // blocks that the monitor looks at at once

// As far as the blocks looked at say.
uint64_t touched_bytes(const MemoryFill& fill, uint64_t bytes) {
  const uint64_t blocks = uint64_t{fill.full} + fill.part + fill.untouched;
  return blocks == 0 ? 0 : bytes * (2 * uint64_t{fill.full} + fill.part) / (2 * blocks);
}

constexpr auto kCostsLast = 1s;  // how long what pages take to be made is taken for what they take

uint64_t up(uint64_t address) {
  return (address + feedback::kHugePageBytes - 1) / feedback::kHugePageBytes * feedback::kHugePageBytes;
}
uint64_t down(uint64_t address) {
  return address / feedback::kHugePageBytes * feedback::kHugePageBytes;
}

}  // namespace

void MemoryFilling::round(const Round& round) {
  const EngineClock::Time now = round.now;
  if (!engine_.policy.huge_pages || now - last_look_ < kQuickLook) return;
  last_look_ = now;
  std::map<uint64_t, Watched> watches;
  for (const std::shared_ptr<ModuleCode>& code : engine_.modules.alive()) {
    const wasm::Module* const module = code->module().get();
    for (const ModuleCode::MemorySpan& span : code->memories()) {
      if (span.bytes < kLeastBytes) continue;
      if (watches.contains(span.base)) continue;  // a module that imports it
      const auto known = watched_.find(span.base);
      if (known != watched_.end() && known->second.module == module) watches.insert(watched_.extract(known));
      Watched& watch = watches[span.base];
      watch.module = module;
      watch.base = span.base;
      watch.memory = span.memory;
      if (watch.bytes != span.bytes) {
        watch.bytes = span.bytes;
        watch.next_look = now;
      }
    }
  }
  watched_.swap(watches);
  for (const auto& [base, gone] : watches)
    if (gone.asked) note_gone(gone);
  // Known before anything is to move, or nearly so.
  if (!watched_.empty()) pages_.beside_huge().look(now);
  for (auto& [base, watch] : watched_)
    if (now >= watch.next_look) look_at(watch, now);
}

// Its addresses may be another's by now: nothing is taken back.
void MemoryFilling::note_gone(const Watched& watch) {
  const DecisionState state = watch.figures.empty() ? DecisionState::kUnjudged : DecisionState::kKept;
  const std::string outcome = watch.figures.empty()
                                  ? "the memory was given up before it was seen whether the guest fills it"
                                  : watch.figures + ", until the memory was given up";
  pages_.note_filled(watch.module, *watch.asked, state, outcome);
  say(LogLevel::kDebug, "trial", fmt::format("huge-pages: {}, {}", to_string(state), outcome));
}

void MemoryFilling::look_at(Watched& watch, EngineClock::Time now) {
  const uint64_t begin = up(watch.base), end = down(watch.base + watch.bytes);
  // What was made ahead is not touched yet.
  const std::optional<MemoryFill> fill =
      watch.ahead ? watch.ahead->fill(kMostBlocks) : look_at_fill(begin, end, kMostBlocks);
  if (!fill) {
    watch.next_look = now + kIdleLook;
    return;
  }
  if (*fill != watch.last) {
    watch.last = *fill;
    watch.changed = now;
    watch.patience = kQuickLook;
  } else {
    // A filling begins after the last look at a memory that had not changed for a while. Between two looks it may be within
    // one block.
    if (!watch.asked && now - watch.changed > kFillingPauses) count_from_here(watch);
    watch.patience =
        watch.ahead && now - watch.changed < kFillingPauses
            ? kQuickLook
            : std::min<Clock::duration>(2 * watch.patience, fill->untouched == 0 ? kIdleLook : kSlowestLook);
  }
  watch.next_look = now + watch.patience;
  if (splits(watch, now, begin)) return;
  if (watch.asked) judge(watch, now);
  if (watch.asked_end < end && !watch.slower) ask_ahead(watch, now, begin, end);
  if (watch.ahead) go_ahead(watch);
}

bool MemoryFilling::splits(Watched& watch, EngineClock::Time now, uint64_t begin) {
  if (!pages_.beside_huge().is_slower() || watch.asked_end <= begin || watch.slower) return false;
  const uint64_t huge = bytes_on_huge_pages(begin, watch.asked_end);
  const uint64_t touched = touched_bytes(watch.last, watch.bytes);
  if (touched < huge ||
      static_cast<double>(touched - huge) <= kMostSmallBesideHuge * static_cast<double>(huge))
    return false;
  leave_huge_pages(begin, watch.asked_end);
  watch.slower = true;
  const std::string outcome = fmt::format(
      "{} MiB are on huge pages and {} MiB on small ones, which are slower here beside huge ones: goes back "
      "to small pages",
      huge >> 20, (touched - huge) >> 20);
  if (watch.asked)
    end_asking(watch, now, DecisionState::kRolledBack, outcome);
  else
    say(LogLevel::kInfo, "trial", "huge-pages: rolled back, " + outcome);
  return true;
}

void MemoryFilling::go_ahead(const Watched& watch) {
  if (!watch.ahead->begin_pass()) return;
  engine_.queue.run([ahead = watch.ahead, &policy = engine_.policy, &stop = engine_.queue.abandon()] {
    ahead->pass(policy, stop);
  });
}

void MemoryFilling::count_from_here(Watched& watch) const {
  watch.touched_from = touched_bytes(watch.last, watch.bytes);
  watch.seconds_from = engine_.monitor.guest_seconds();
}

double MemoryFilling::fill_rate(const Watched& watch, uint32_t least) const {
  const uint64_t blocks = uint64_t{watch.last.full} + watch.last.part + watch.last.untouched;
  uint64_t touched = touched_bytes(watch.last, watch.bytes);
  // The guest is somewhere in what was made ahead of it. That it is at its end is the answer that takes nothing back.
  if (watch.ahead) {
    const FillAhead::Made made = watch.ahead->made();
    touched += made.bytes - made.reached;
  }
  const double seconds = engine_.monitor.guest_seconds() - watch.seconds_from;
  if (blocks == 0 || touched < watch.touched_from + least * watch.bytes / blocks || seconds <= 0) return 0;
  return static_cast<double>(touched - watch.touched_from) / seconds;
}

void MemoryFilling::ask_ahead(Watched& watch, EngineClock::Time now, uint64_t begin, uint64_t end) {
  const uint64_t taken_over = down(watch.base + pages_.kept_from_earlier(watch.module, watch.memory));
  if (taken_over >= end) return;
  feedback::PageEvidence evidence;
  evidence.fill = {.begin = begin,
                   .end = end,
                   .full = watch.last.full - std::min(watch.full_before, watch.last.full),
                   .part = watch.last.part,
                   .untouched = watch.last.untouched,
                   .available_bytes = available_memory_bytes(),
                   .vain_bytes = pages_.vain_bytes_filled(watch.module)};
  feedback::PagePlan plan = feedback::decide_pages(evidence, engine_.policy);
  const double small = 2.0 * watch.last.full + watch.last.part, huge = 2.0 * watch.last.untouched;
  if (!plan.ranges.empty() && pages_.beside_huge().is_slower() && small > kMostSmallBesideHuge * huge) {
    plan.ranges.clear();
    plan.reason += "; but small pages are slower here beside huge ones, and too many are touched";
  }
  if (plan.ranges.empty()) {
    if (watch.said != plan.reason)
      say(LogLevel::kDebug, "policy", "no huge-pages before the first touch: " + plan.reason);
    watch.said = plan.reason;
    return;
  }
  if (watch.asked) {
    end_filled(watch, now, "filled until the memory grew");
  } else if (taken_over > watch.base) {
    count_from_here(watch);  // what came before was no small pages either
  } else {
    // What it is to be compared with comes first, as long as there is enough left to ask for.
    watch.rate_before = fill_rate(watch, kLeastToTell);
    if (watch.rate_before == 0 && watch.last.untouched > watch.last.full) return;
    count_from_here(watch);
  }
  const bool asked = ask_for_huge_pages(begin, end);
  watch.asked_end = end;
  watch.figures.clear();
  if (asked) watch.asked = evidence.fill;
  if (asked && engine_.policy.populate) {
    watch.ahead = std::make_shared<FillAhead>(begin, end);
    // The first pass looks at what is there; what is touched after it is where the guest is.
    if ((end - begin) / feedback::kHugePageBytes <= kMostAtOnce && watch.ahead->begin_pass())
      watch.ahead->pass(engine_.policy, engine_.queue.abandon());
  }
  say(LogLevel::kInfo, "policy", "huge-pages before the first touch: " + plan.reason);
  // What stalls there is not to be moved a second time.
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    if (const auto found = profiles.find(watch.module); found != profiles.end())
      found->second->pages().settle(begin, end);
  });
  pages_.note_asked({.module = watch.module,
                     .plan = std::move(plan),
                     .evidence = std::move(evidence),
                     .place = {.memory = watch.memory, .begin = begin - watch.base, .end = end - watch.base}},
                    asked);
}

// It has got slower, has ended, or stands still.
void MemoryFilling::judge(Watched& watch, EngineClock::Time now) {
  const feedback::FillEvidence asked = *watch.asked;
  if (const double since = fill_rate(watch, watch.ahead ? kLeastToTakeBack : kLeastToTell);
      feedback::fills_slower(watch.rate_before, since, engine_.policy)) {
    watch.slower = true;
    return end_asking(
        watch, now, DecisionState::kRolledBack,
        fmt::format(
            "filled {:.0f} MiB a second of the guest's time, and {:.0f} with small pages before: goes back "
            "to small pages",
            since / (1 << 20), watch.rate_before / (1 << 20)));
  }
  note_figures(watch);
  if (now - watch.changed < kFillingEnds && watch.last.untouched != 0) return;
  if (!feedback::goes_on_filling(asked, watch.last.untouched)) {
    watch.asked_end = 0;
    watch.full_before = watch.last.full;
    return end_asking(
        watch, now, DecisionState::kRolledBack,
        fmt::format(
            "the guest stopped filling: {} of {} untouched blocks are still untouched, and go back to "
            "small pages",
            watch.last.untouched, asked.untouched));
  }
  const uint64_t huge = bytes_on_huge_pages(asked.begin, asked.end);
  if (huge == 0)
    return end_asking(watch, now, DecisionState::kFailed,
                      "the memory was filled, but the kernel gave no huge pages");
  end_filled(watch, now,
             fmt::format("{} of {} MiB on huge pages since their first touch", huge >> 20,
                         (asked.end - asked.begin) >> 20));
}

// What it gave is how fast the guest filled with and without. Where too little of either was seen it is what the pages take that it
// got, and what those take that it would have got.
void MemoryFilling::end_filled(Watched& watch, EngineClock::Time now, const std::string& seen) {
  if (!watch.figures.empty())
    return end_asking(watch, now, DecisionState::kKept, seen + "; " + watch.figures);
  const PageCosts& costs = page_costs(now);
  if (costs.huge_seconds <= 0 || costs.small_seconds <= 0)
    return end_asking(watch, now, DecisionState::kUnjudged,
                      seen + "; too little was filled to compare, and no huge page is to be had to try");
  const bool slower = feedback::fills_slower(1 / costs.small_seconds, 1 / costs.huge_seconds, engine_.policy);
  end_asking(
      watch, now, slower ? DecisionState::kRolledBack : DecisionState::kKept,
      fmt::format("{}; a first touch of 2 MiB takes {:.2f} ms on a huge page, and {:.2f} on small ones", seen,
                  1e3 * costs.huge_seconds, 1e3 * costs.small_seconds));
}

const PageCosts& MemoryFilling::page_costs(EngineClock::Time now) {
  if (!costs_ || now - costs_at_ > kCostsLast) {
    costs_ = measure_page_costs();
    costs_at_ = now;
  }
  return *costs_;
}

// Bytes a second with and without, once there are enough of both. A guest that fills no further changes nothing of it.
void MemoryFilling::note_figures(Watched& watch) {
  const uint64_t touched = touched_bytes(watch.last, watch.bytes);
  if (watch.rate_before <= 0 || touched == watch.touched_told) return;
  const double since = fill_rate(watch, kLeastToTell);
  if (since <= 0) return;
  watch.touched_told = touched;
  watch.figures =
      fmt::format("filled {:.0f} MiB a second of the guest's time, and {:.0f} with small pages before",
                  since / (1 << 20), watch.rate_before / (1 << 20));
  pages_.note_filling(watch.module, *watch.asked, watch.figures);
}

void MemoryFilling::end_asking(Watched& watch, EngineClock::Time now, DecisionState state,
                               std::string outcome) {
  const feedback::FillEvidence asked = *watch.asked;
  watch.asked.reset();
  if (const auto ahead = std::exchange(watch.ahead, nullptr)) {
    const FillAhead::Made made = ahead->made();
    outcome += fmt::format(
        "; populate: made {} MiB ahead in {:.1f} ms of another processor, and the guest came by {} of them",
        made.bytes >> 20, 1e3 * made.seconds, made.reached >> 20);
    if (made.reached != 0) {
      const bool huge = bytes_on_huge_pages(asked.begin, asked.end) != 0 && page_costs(now).huge_seconds > 0;
      const uint64_t blocks = made.reached / feedback::kHugePageBytes;
      outcome += fmt::format(", which saved it {} page faults, about {:.1f} ms",
                             huge ? blocks : blocks * (feedback::kHugePageBytes / 4096),
                             1e3 * static_cast<double>(blocks) *
                                 (huge ? page_costs(now).huge_seconds : page_costs(now).small_seconds));
    }
  }
  if (state == DecisionState::kRolledBack) {
    ask_for_small_pages(asked.begin, asked.end);
    // What stalls there may be moved after all, once it is known what that is worth.
    engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      if (const auto found = profiles.find(watch.module); found != profiles.end())
        found->second->pages().reopen(asked.begin, asked.end);
    });
  }
  pages_.note_filled(watch.module, asked, state, outcome);
  say(LogLevel::kInfo, "trial", fmt::format("huge-pages: {}, {}", to_string(state), outcome));
}

}  // namespace hindsight::rt
