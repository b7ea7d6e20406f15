#include "tests/feedback/policy/situations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace hindsight::feedback {
namespace {

template <typename... F>
struct Cases : F... {
  using F::operator()...;
};

std::string words_of(const FunctionPlan& plan) {
  std::string words = to_string(plan.action);
  for (const LoopIndex loop : plan.osr_loops) words += fmt::format(" entry:{}", loop.value);
  if (plan.nest) words += fmt::format(" nest:{}", plan.nest->value);
  if (plan.loop_entries_only) words += " alone";
  if (plan.early) words += " early";
  for (const Candidate& candidate : plan.candidates) {
    words += fmt::format(" {}:{:x}", to_string(candidate.kind()), candidate.at().value);
    for (const auto& target : jit::what_of<jit::CallTargets>(candidate.request).targets)
      words += fmt::format(",{}", target.element);
    if (const auto* usual = std::get_if<jit::UsualValue>(&candidate.request.what))
      words += fmt::format("={}", usual->value);
  }
  return words;
}

std::string words_of(const StartPlan& start) {
  std::string words = words_of(start.plan);
  for (const auto& [site, setting] : start.settled)
    words += fmt::format(" settled:{}:{:x}={}", to_string(site.kind), site.at.value, setting);
  return words;
}

}  // namespace

std::string kind_of(const Situation& situation) {
  return std::visit(
      Cases{[](const FunctionEvidence& e) { return e.optimized ? "later" : "first compile"; },
            [](const StartSituation&) { return "start"; },
            [](const PageEvidence& e) { return e.fill ? "fill" : "pages"; },
            [](const PageEpisode&) { return "start"; }, [](const LayoutEvidence&) { return "layout"; },
            [](const VersionEvidence&) { return "versions"; }, [](const FillSpeeds&) { return "fill"; },
            [](const PageProgress&) { return "pages"; }, [](const PagePlan&) { return "pages"; },
            [](const GrowthEvidence&) { return "populate"; }, [](const FillWindow&) { return "populate"; },
            [](const GrowthStep&) { return "populate"; }, [](const GrowthTimes&) { return "populate"; },
            [](const TrialStake&) { return "later"; }, [](const SecondCompile&) { return "later"; }},
      situation.evidence);
}

std::string answer(const Situation& situation, const PolicyConfig& config) {
  return std::visit(
      Cases{[&](const FunctionEvidence& e) { return words_of(decide(e, config)); },
            [&](const StartSituation& e) { return words_of(decide_start(e.evidence, e.earlier, config)); },
            [&](const PageEvidence& e) {
              std::string words = "move";
              for (const PageRange& range : decide_pages(e, config).ranges)
                words += fmt::format(" {:x}-{:x}", range.begin, range.end);
              return words;
            },
            [&](const PageEpisode& e) -> std::string {
              return fmt::format("{}, {} in vain", decide_pages_at_start(e, config).ask ? "ask" : "nothing",
                                 bytes_in_vain(e, /*seconds=*/1, config));
            },
            [&](const LayoutEvidence& e) -> std::string {
              const LayoutPlan plan = decide_layout(e, config);
              return plan.move ? "move" : plan.wait ? "wait" : "nothing";
            },
            [&](const VersionEvidence& e) -> std::string {
              const auto without = decide_version_trial(e, config).without;
              return without ? std::string(to_string(*without)) : "nothing";
            },
            [&](const FillSpeeds& s) -> std::string {
              return fills_slower(s.before, s.since, config) ? "take back" : "go on";
            },
            [&](const GrowthEvidence& e) -> std::string {
              return populates_growth(e, config) ? "make pages" : "nothing";
            },
            [&](const GrowthStep& step) -> std::string {
              return watches_growth(step.populated_steps, config) ? "watch" : "make pages";
            },
            [&](const GrowthTimes& times) -> std::string {
              return growth_lost(times, config) ? "nothing" : "make pages";
            },
            [&](const TrialStake& s) -> std::string {
              return is_worth_trying(s.stake, s.record, config) ? "compile for trials" : "wait";
            },
            [&](const SecondCompile& s) -> std::string {
              const Stake stake{.seconds_run = s.evidence.seconds_run,
                                .may_save = may_save(decide(s.evidence, config), s.evidence),
                                .compile_seconds = s.seconds};
              return is_worth_trying(stake, {.taken = 1}, config) ? "compile for trials" : "wait";
            },
            [&](const FillWindow& w) -> std::string {
              return fmt::format("{} blocks", window_ahead(w.advances, w.touched_blocks, config));
            },
            [&](const PagePlan& plan) -> std::string {
              return fmt::format("hold after {} bytes", bytes_before_hold(plan, config));
            },
            [&](const PageProgress& progress) -> std::string {
              PagePlan plan;
              plan.stall_share = 0.5;
              switch (judge_pages(progress, plan, config).verdict) {
                case PageVerdict::kHold:
                  return "hold";
                case PageVerdict::kUndo:
                  return "take back";
                case PageVerdict::kStop:
                  return "stop";
                case PageVerdict::kGoOn:
                  break;
              }
              return "go on";
            }},
      situation.evidence);
}

namespace {

// ---------------------------------------------------------------- by hand

// Ran `ms` in baseline code, sampled at `khz`, with two nested loops.
FunctionEvidence hot(double ms = 100, double khz = 4) {
  FunctionEvidence e;
  e.function = FuncIndex(7);
  e.code_bytes = 200;
  e.samples_baseline = e.total_samples = ms * khz;
  e.seconds_baseline = e.seconds_run_baseline = e.seconds_run = ms * 1e-3;
  e.samples_run_baseline = e.samples_baseline;
  e.entered = Entered::kAgain;
  e.loops = {{LoopIndex(0), WasmOffset(100), 0, e.samples_baseline, -1},
             {LoopIndex(1), WasmOffset(120), 1, 0.9 * e.samples_baseline, 0}};
  return e;
}

FunctionEvidence flat(double samples, uint32_t bytes) {
  FunctionEvidence e = hot(4, 0.25);
  e.code_bytes = bytes;
  e.samples_run_baseline = samples;
  e.seconds_run_baseline = e.seconds_run = 0.004 * samples;
  return e;
}

LoadEvidence load(uint32_t offset, double samples) {
  LoadEvidence l;
  l.load = WasmOffset(offset);
  l.stall_samples = samples;
  l.addresses = static_cast<uint64_t>(samples) + 20;
  l.address_span_bytes = 64 << 20;
  l.distinct_pages = l.addresses;
  return l;
}

// Ran `seconds` in optimized code since it was published, after a tenth of a second of baseline code.
FunctionEvidence optimized(double seconds = 0.4) {
  FunctionEvidence e = hot();
  e.optimized = true;
  e.optimize_count = 1;
  e.samples_optimized = 250 * seconds;
  e.seconds_optimized = e.seconds_since_published = seconds;
  e.seconds_run += seconds;
  return e;
}

FunctionEvidence optimized_with_load(double samples, double share) {
  FunctionEvidence e = optimized(samples / 250);
  e.samples_baseline = e.seconds_baseline = 0;
  e.loads = {load(130, share * samples)};
  e.loads[0].stall_samples_optimized = share * samples;
  return e;
}

// A load that was rejected when it held a tenth of the samples, and holds `share` of the last 100.
FunctionEvidence reopening(double share, double seconds, uint32_t rejections) {
  FunctionEvidence e = optimized_with_load(1000, 0.1);
  LoadEvidence& l = e.loads[0];
  e.changes.put({jit::ChangeKind::kPrefetch, l.load},
                {.state = ChangeState::kRolledBack, .rejections = rejections});
  l.seconds_since_rejected = seconds;
  l.share_when_rejected = 0.1;
  e.samples_recent = 100;
  l.stall_samples_recent = 100 * share;
  return e;
}

// A load whose addresses spanned a MiB when it was rejected, and `times` as much now.
FunctionEvidence grown(double times) {
  FunctionEvidence e = reopening(0.6, 1, 1);
  LoadEvidence& l = e.loads[0];
  l.share_when_rejected = 0.6;
  l.span_when_rejected = 1 << 20;
  l.address_span_bytes = static_cast<uint64_t>(times * (1 << 20));
  return e;
}

CallEvidence call(uint64_t records, const std::vector<double>& shares) {
  CallEvidence c{.call = WasmOffset(60), .records = records};
  for (size_t i = 0; i < shares.size(); ++i)
    c.targets.push_back(
        {static_cast<uint32_t>(i + 1), static_cast<uint64_t>(shares[i] * static_cast<double>(records))});
  return c;
}

// Its calls went to element 1, and go to element 9 by now.
FunctionEvidence calling(double unforeseen, double seconds) {
  FunctionEvidence e = optimized(seconds);
  CallEvidence c = call(200, {1});
  c.unforeseen_records = static_cast<uint64_t>(unforeseen);
  c.unforeseen = {{9, c.unforeseen_records}};
  e.calls = {c};
  return e;
}

BranchEvidence branch(double outcomes, double taken, double mispredicted) {
  BranchEvidence b;
  b.branch = WasmOffset(30);
  b.sampled = 10;
  b.sampled_taken = static_cast<uint64_t>(10 * taken);
  b.outcomes = b.judged = static_cast<uint64_t>(outcomes);
  b.taken = static_cast<uint64_t>(outcomes * taken);
  b.mispredicted = static_cast<uint64_t>(outcomes * mispredicted);
  return b;
}

BranchEvidence choice(double records, double first) {
  BranchEvidence b;
  b.branch = WasmOffset(35);
  b.chooses = true;
  b.sampled = static_cast<uint64_t>(records);
  b.sampled_taken = static_cast<uint64_t>(std::round(records * first));
  return b;
}

ValueEvidence operand(ValueSite site, uint64_t value, double records, double share = 1) {
  ValueEvidence v{.at = WasmOffset(80), .site = site, .records = static_cast<uint64_t>(records)};
  v.values = {{value, static_cast<uint64_t>(std::round(records * share))}};
  return v;
}

FunctionEvidence with(FunctionEvidence e, LoadEvidence l) {
  e.loads.push_back(std::move(l));
  return e;
}
FunctionEvidence with(FunctionEvidence e, BranchEvidence b) {
  e.branches.push_back(std::move(b));
  return e;
}
FunctionEvidence with(FunctionEvidence e, CallEvidence c) {
  e.calls.push_back(std::move(c));
  return e;
}
FunctionEvidence with(FunctionEvidence e, ValueEvidence v) {
  e.values.push_back(std::move(v));
  return e;
}

// `share` of `seconds` stalls, at `addresses` places spread over `mib`.
PageEvidence spread(double mib, double share, double seconds, double addresses = 500, double pages = 1) {
  PageEvidence e;
  e.samples = 1000;
  e.seconds = seconds;
  e.stall_samples = 1000 * share;
  e.addresses = static_cast<uint64_t>(addresses);
  e.distinct_pages = static_cast<uint64_t>(std::min(addresses * pages, double{kMaxPagesSeen}));
  for (double at = 0; at < mib / 2; at += 3) e.regions.push_back({8192 + static_cast<uint64_t>(at), 1});
  return e;
}

PageEvidence filling(double full, double part, double untouched, double available_mib = 1e6) {
  PageEvidence e;
  e.fill = FillEvidence{.begin = 0,
                        .end = uint64_t{512} << 20,
                        .full = static_cast<uint32_t>(full),
                        .part = static_cast<uint32_t>(part),
                        .untouched = static_cast<uint32_t>(untouched),
                        .available_bytes = static_cast<uint64_t>(available_mib) << 20};
  return e;
}

// `samples` of all, evenly in `functions` of 2000 bytes.
LayoutEvidence code(double functions, double seconds, double samples = 1000, double share = 1) {
  LayoutEvidence e;
  e.samples = samples / share;
  e.seconds = seconds;
  e.seconds_settled = 2;
  for (uint32_t i = 0; i < static_cast<uint32_t>(functions); ++i)
    e.functions.push_back({FuncIndex(i), 2000, samples / std::floor(functions), false});
  return e;
}

VersionEvidence version(double seconds, double share, double guest_seconds) {
  VersionEvidence e;
  e.there = {jit::ChangeKind::kInlineCalls};
  e.seconds_since_tried = seconds;
  e.share = share;
  e.compile_seconds = 0.02;
  e.guest_seconds = guest_seconds;
  return e;
}

StartSituation known(double seconds_a_run, uint32_t prefetches) {
  StartSituation asked{.evidence = hot(), .earlier = {}};
  asked.earlier.runs = 1;
  asked.earlier.seconds_baseline = seconds_a_run;
  for (uint32_t i = 0; i < prefetches; ++i)
    asked.earlier.outcomes.put({jit::ChangeKind::kPrefetch, WasmOffset(100 + i)},
                               {.state = ChangeState::kKept, .setting = 24, .gain = 0.5});
  return asked;
}

}  // namespace

std::vector<Situation> situations_by_hand() {
  std::vector<Situation> situations;
  // From one number to another, in steps of that factor.
  const auto series = [&](const char* name, double from, double to, auto make, double factor = 1.1) {
    for (double x = from; x <= to; x *= factor) situations.push_back({name, make(x)});
  };
  const auto counted = [&](const char* name, uint32_t from, uint32_t to, auto make) {
    for (uint32_t n = from; n <= to; ++n) situations.push_back({name, make(n)});
  };

  series("time of a function", 0.3, 100, [](double ms) { return hot(ms); });
  for (const uint32_t bytes : {1000, 5000, 20'000, 100'000}) {
    series("time of a larger function", 0.3, 3000, [&](double ms) {
      FunctionEvidence e = hot(ms);
      e.code_bytes = bytes;
      return e;
    });
    series("time in a flat profile", 1, 2000, [&](double samples) { return flat(samples, bytes); });
  }

  series("a load that stalls", 0.01, 1, [](double share) { return with(hot(), load(130, 400 * share)); });
  series("a load beside one that stands out", 0.005, 0.5,
         [](double share) { return with(with(hot(), load(130, 200)), load(140, 400 * share)); });
  series("a load with few samples", 1, 20,
         [](double samples) { return with(with(hot(10), load(130, 20)), load(140, samples)); });
  series("loads that stand out together", 0.02, 0.3, [](double share) {
    FunctionEvidence e = hot();
    for (uint32_t i = 0; i < 3; ++i) e.loads.push_back(load(130 + i, 400 * share));
    return e;
  });
  series("a load beside one in trial", 0.1, 3, [](double seconds) {
    FunctionEvidence e = optimized_with_load(250 * seconds, 0.5);
    e = with(e, load(140, 20));
    e.changes.put({jit::ChangeKind::kInterleave, WasmOffset(140)}, {.state = ChangeState::kInTrial});
    return e;
  });
  series("a load without addresses", 0.01, 1, [](double share) {
    LoadEvidence l = load(130, 400 * share);
    l.addresses = 0;
    return with(hot(), l);
  });
  series("a load without addresses beside one that stands out", 0.01, 1, [](double share) {
    LoadEvidence l = load(140, 400 * share);
    l.addresses = 0;
    return with(with(hot(), load(130, 200)), l);
  });
  series("a search in a near cache", 0.01, 1, [](double share) {
    LoadEvidence l = load(130, 400 * share);
    l.address_span_bytes = 4096;
    return with(hot(), l);
  });
  series("a callee that stalls, in a program that does other things", 500, 5000, [](double total) {
    FunctionEvidence e = hot();
    e.total_samples = total;
    e.callees = {{.function = FuncIndex(8),
                  .name = "find",
                  .called_in = LoopIndex(1),
                  .samples = 100,
                  .seconds = 0.025,
                  .stall_samples = 60}};
    e.samples_baseline = e.samples_run_baseline = 40;
    LoadEvidence l = load(900, 60);
    l.callee = FuncIndex(8);
    return with(e, l);
  });
  const auto store = [](double samples, double rising) {
    LoadEvidence l = load(130, samples);
    l.is_store = true;
    l.rising_addresses = static_cast<uint64_t>(rising * samples);
    return l;
  };
  series("a store that stalls", 0.01, 1, [&](double share) { return with(hot(), store(400 * share, 0.5)); });
  series("the order of a store's addresses", 0.05, 1,
         [&](double rising) { return with(hot(), store(200, rising)); });
  series("the span of a load's addresses", 1e4, 1e7, [](double bytes) {
    LoadEvidence l = load(130, 150);
    l.address_span_bytes = static_cast<uint64_t>(bytes);
    return with(hot(), l);
  });
  counted("addresses of a load", 1, 40, [](uint32_t n) {
    LoadEvidence l = load(130, 150);
    l.addresses = n;
    l.address_span_bytes = 4096;
    return with(hot(), l);
  });
  for (const double khz : {0.25, 1.0, 4.0}) {
    series("waiting for stalls", 2, 200,
           [&](double ms) { return with(hot(ms, khz), load(130, 0.4 * ms * khz)); });
    series("a load to wait for", 0.01, 1,
           [&](double share) { return with(hot(20 / khz, khz), load(130, 20 * share)); });
  }
  counted("loads", 1, 16, [](uint32_t n) {
    FunctionEvidence e = with(hot(), load(130, 80));
    for (uint32_t i = 1; i < n; ++i) e.loads.push_back(load(130 + i, 20));
    return e;
  });

  const auto watched = [](double seconds, double all) {
    FunctionEvidence e = hot();
    e.entered = Entered::kNotYet;
    e.seconds_watched = seconds;
    e.all_seconds_watched = all;
    return e;
  };
  series("watched for its next call", 1e-4, 0.05, [&](double s) { return watched(s, s); });
  series("watched while others run", 1e-3, 0.1, [&](double s) { return watched(1e-3, s); });
  series("watched, with a small part of the time", 1e-4, 0.01, [&](double s) { return watched(s, 0.02); });
  series("left behind in baseline code", 1, 100, [](double samples) {
    FunctionEvidence e = optimized();
    e.samples_left_behind = samples;
    e.seconds_left_behind = samples / 250;
    return e;
  });
  series("stayed in replaced code", 1, 1000, [](double samples) {
    FunctionEvidence e = optimized();
    e.samples_stayed = samples;
    e.seconds_stayed = samples / 250;
    return e;
  });
  for (const double taken : {0.0, 1.0}) {
    series("run in its first code", 0.001, 1, [&](double seconds) {
      return TrialStake{{.seconds_run = seconds, .may_save = 0.3, .compile_seconds = 0.04},
                        {.taken = taken, .won = 0, .lost = 3}};
    });
  }
  series("executions of a mispredicted branch", 20, 2000, [](double records) {
    SecondCompile s{.evidence = with(hot(), branch(1000, 0.5, 0.3)), .seconds = 0.01};
    s.evidence.branches[0].sampled = static_cast<uint64_t>(records);
    s.evidence.branches[0].sampled_taken = static_cast<uint64_t>(records / 2);
    return s;
  });
  series("called after all", 1, 1000, [](double ms) {
    FunctionEvidence e = hot(ms);
    e.optimized = e.loop_entries_only = true;
    e.optimize_count = 1;
    return e;
  });

  // A loop of so many bytes around one of 80, in a function of 20 KiB that is not called again.
  const auto nested = [](uint32_t bytes, double ms_outside, double ms_inside) {
    FunctionEvidence e = hot(ms_outside + ms_inside);
    e.entered = Entered::kNotYet;
    e.seconds_watched = 0.001;
    e.code_bytes = 20'000;
    const auto loop = [&](uint32_t at, uint32_t end, double ms, int32_t parent) {
      LoopEvidence l{LoopIndex(static_cast<uint32_t>(parent + 1)), WasmOffset(at)};
      l.end = WasmOffset(end);
      l.code_bytes = end - at;
      l.parent = parent;
      l.samples_baseline = 4 * ms;
      l.seconds_baseline = l.seconds_run_baseline = 1e-3 * ms;
      return l;
    };
    e.loops = {loop(100, 100 + bytes, ms_outside, -1), loop(110, 190, ms_inside, 0)};
    e.loops[0].inner_loops = 1;
    return e;
  };
  // Its outer loop has code already, in which a load stalls.
  const auto with_code = [=](uint32_t compiles, uint32_t fruitless) {
    FunctionEvidence e = with(nested(200, 0, 0), load(130, 100));
    e.loads[0].stall_samples_optimized = 100;
    e.loops[0].has_nest = true;
    e.loops[0].compiles = compiles;
    e.loops[0].fruitless = fruitless;
    e.loops[0].samples_optimized = 400;
    e.loops[0].seconds_optimized = 0.1;
    e.seconds_run = 100;
    return e;
  };
  series("a loop of a large function", 0.5, 20, [&](double ms) {
    FunctionEvidence e = nested(200, 0, ms);
    e.loops[1].inner_loops = 20;
    return e;
  });
  counted("bytes around a loop", 100, 1000, [&](uint32_t n) { return nested(n, 2, 20); });
  series("samples around a loop", 0.1, 2, [&](double samples) { return nested(200, samples / 4, 5); });
  for (const uint32_t nest : {100u, 1000u})
    counted("bytes of a function that is called again", 200, 4000, [&](uint32_t n) {
      FunctionEvidence e = nested(nest, 40, 60);
      e.entered = Entered::kAgain;
      e.code_bytes = n;
      return e;
    });
  counted("fruitless compiles of a nest", 0, 6, [&](uint32_t n) { return with_code(n, n); });
  counted("compiles of a nest", 0, 16, [&](uint32_t n) { return with_code(n, 0); });
  counted("half KiB of another nest that has code", 1, 80, [&](uint32_t n) {
    FunctionEvidence e = nested(200, 0, 5);
    e.loops.push_back(e.loops[0]);
    e.loops[2].loop = LoopIndex(2);
    e.loops[2].offset = WasmOffset(1000);
    e.loops[2].end = WasmOffset(1200);
    e.loops[2].code_bytes = 512 * n;
    e.loops[2].has_nest = true;
    e.loops[2].compiles = 1;
    e.seconds_run = 2;
    return e;
  });

  counted("records of a call", 1, 40, [](uint32_t n) { return with(hot(), call(n, {1})); });
  series("a target beside the usual one", 0.005, 0.5, [](double share) {
    return with(hot(), call(1000, {1 - share, share}));
  });
  series("targets that cover a part", 0.1, 1, [](double share) {
    return with(hot(), call(1000, {share / 2, share / 2}));
  });
  counted("targets", 1, 12,
          [](uint32_t n) { return with(hot(), call(1200, std::vector<double>(n, 1.0 / n))); });
  for (const double seconds : {0.4, 0.85, 5.0}) {
    series("calls that were not foreseen", 4, 20'000, [&](double n) { return calling(n, seconds); });
  }
  series("time since new calls", 0.01, 5, [](double seconds) { return calling(5000 * seconds, seconds); });

  counted("branches seen", 4, 100, [](uint32_t n) { return with(hot(), branch(n, 0.5, 0)); });
  counted("one-sided branches", 1, 40, [](uint32_t n) {
    FunctionEvidence e = with(hot(), branch(n, 1, 0));
    e.branches[0].sampled = e.branches[0].sampled_taken = 0;
    return e;
  });
  series("outcomes judged", 60, 400, [](double n) { return with(hot(), branch(n, 0.5, 0.3)); });
  series("outcomes to wait for", 1, 200, [](double ms) {
    FunctionEvidence e = with(hot(ms), branch(100, 0.5, 0));
    e.branches[0].judged = 0;
    return e;
  });
  counted("records of a branch to wait for", 1, 20, [](uint32_t n) {
    FunctionEvidence e = with(hot(10), branch(60, 0.5, 0));
    e.branches[0].sampled = n;
    e.branches[0].judged = 0;
    return e;
  });
  series("a minority to wait for", 0.01, 0.5, [](double share) {
    FunctionEvidence e = with(hot(10), branch(1000, share, 0));
    e.branches[0].sampled_taken = static_cast<uint64_t>(10 * share);
    e.branches[0].judged = 0;
    return e;
  });
  series("a branch that is mispredicted", 0.005, 0.5,
         [](double rate) { return with(hot(), branch(10'000, 0.5, rate)); });
  series("a branch that is predicted", 0.002, 0.5,
         [](double share) { return with(hot(), branch(10'000, share, 0)); });
  series("a choice", 0.002, 0.5, [](double share) { return with(hot(), choice(1000, share)); });
  counted("choices to wait for", 2, 100, [](uint32_t n) { return with(hot(8), choice(n, 0)); });
  series("time to see a choice", 2, 40, [](double ms) { return with(hot(ms), choice(30, 0)); });
  counted("branches in another form", 1, 32, [](uint32_t n) {
    FunctionEvidence e = hot();
    for (uint32_t i = 0; i < n; ++i) {
      e.branches.push_back(branch(1000, 0.5, 0.3));
      e.branches.back().branch = WasmOffset(30 + i);
    }
    return e;
  });
  series("bytes of a module", 1e4, 1e7, [](double bytes) {
    FunctionEvidence e = hot();
    e.module_bytes = static_cast<uint64_t>(bytes);
    return e;
  });

  for (const ValueSite site :
       {ValueSite::kDivisor, ValueSite::kWideDivisor, ValueSite::kByteCount, ValueSite::kTripCount}) {
    counted("records of an operand", 1, 40, [&](uint32_t n) { return with(hot(20), operand(site, 10, n)); });
    series("what an operand gains", 20, 20'000,
           [&](double n) { return with(hot(10'000), operand(site, 10, n)); });
  }
  series("an operand's usual value", 0.2, 1,
         [](double share) { return with(hot(), operand(ValueSite::kDivisor, 10, 1000, share)); });
  series("time to see an operand", 2, 40,
         [](double ms) { return with(hot(ms), operand(ValueSite::kWideDivisor, 10, 7)); });
  counted("records of an operand to wait for", 1, 12,
          [](uint32_t n) { return with(hot(3), operand(ValueSite::kWideDivisor, 10, n)); });
  series("bytes of a copy", 16, 2000, [](double bytes) {
    return with(hot(), operand(ValueSite::kByteCount, static_cast<uint64_t>(bytes), 1000));
  });
  series("turns of a loop", 2, 500, [](double turns) {
    return with(hot(), operand(ValueSite::kTripCount, static_cast<uint64_t>(turns), 1000));
  });
  counted("operands", 1, 32, [](uint32_t n) {
    FunctionEvidence e = hot();
    for (uint32_t i = 0; i < n; ++i) {
      e.values.push_back(operand(ValueSite::kDivisor, 10, 1000));
      e.values.back().at = WasmOffset(80 + i);
    }
    return e;
  });

  for (const double share : {0.12, 0.4})
    series("samples in optimized code", 10, 3000,
           [&](double samples) { return optimized_with_load(samples, share); });
  series("a load in optimized code", 0.02, 1, [](double share) { return optimized_with_load(400, share); });
  for (const double seconds : {0.4, 40.0, 4000.0})
    counted("compiles", 1, 100, [&](uint32_t n) {
      FunctionEvidence e = optimized_with_load(400, 0.5);
      e.optimize_count = n;
      e.seconds_run = seconds;
      return e;
    });
  series("samples of the last second", 10, 200, [](double samples) {
    FunctionEvidence e = optimized_with_load(1000, 0.05);
    e.samples_recent = samples;
    e.loads[0].stall_samples_recent = 0.6 * samples;
    return e;
  });
  series("a rejected load that goes through more memory", 1, 64, [](double times) { return grown(times); });
  series("a rejected load that stalls more", 0.1, 1, [](double share) { return reopening(share, 10, 1); });
  for (const uint32_t rejections : {1, 2, 4})
    series("time since a load was rejected", 0.1, 100,
           [&](double seconds) { return reopening(0.6, seconds, rejections); });
  const auto moved = [](double share, double seconds) {
    FunctionEvidence e = with(optimized(seconds), branch(1000, 0.5, 0.3));
    e.moved_share = share;
    return e;
  };
  series("samples that moved", 0.05, 1, [&](double share) { return moved(share, 3); });
  series("time until samples moved", 0.1, 10, [&](double seconds) { return moved(0.9, seconds); });
  series("time until fewer samples moved", 0.1, 10, [&](double seconds) { return moved(0.3, seconds); });

  for (const double measured : {0.0, 1e-10, 1e-9, 1e-8})
    series("time of a program that stalls", 0.2, 2000, [&](double seconds) {
      PageEvidence e = spread(256, 0.6, seconds);
      e.move_seconds_per_byte = measured;
      return e;
    });
  series("time since a program stalled", 0.1, 2, [](double seconds) {
    PageEvidence e = spread(256, 0.6, 40);
    e.seconds_idle = seconds;
    return e;
  });
  const auto moved_before = [](DecisionState state, double gain, uint32_t unjudged) {
    PageEpisode e;
    e.state = state;
    e.evidence = spread(256, 0.6, 40);
    e.places = {{.memory = 0, .begin = 0, .end = 64 * kHugePageBytes}};
    e.measured_gain = gain;
    e.unjudged = unjudged;
    return e;
  };
  series("what an earlier move gave", 0.001, 0.1,
         [&](double gain) { return moved_before(DecisionState::kKept, gain, 0); });
  counted("runs that could not tell", 1, 10,
          [&](uint32_t runs) { return moved_before(DecisionState::kUnjudged, 0, runs); });
  series("stalls of a program", 0.01, 1, [](double share) { return spread(256, share, 40); });
  series("memory of a program", 4, 2000, [](double mib) { return spread(mib, 0.6, 1000); });
  series("stalled addresses", 4, 500, [](double n) { return spread(256, 0.6, 1000, n); });
  series("pages of their own", 0.1, 1, [](double share) { return spread(256, 0.6, 1000, 400, share); });
  series("regions apart", 2, 200, [](double mib) {
    PageEvidence e = spread(256, 0.6, 1000);
    const uint64_t apart = 8192 + 128 + static_cast<uint64_t>(mib / 2);
    for (uint64_t i = 0; i < 64; ++i) e.regions.push_back({apart + i, 1});
    return e;
  });

  counted("blocks that are full", 1, 20, [](uint32_t n) { return filling(n, 0, 40); });
  counted("blocks touched in part", 0, 40, [](uint32_t n) { return filling(30, n, 40); });
  counted("blocks untouched", 0, 40, [](uint32_t n) { return filling(100, 0, n); });
  series("memory that is left", 100, 10'000, [](double mib) { return filling(20, 0, 40, mib); });
  series("bytes of a filling memory", 4, 500, [](double mib) {
    PageEvidence e = filling(20, 0, 40);
    e.fill->end = static_cast<uint64_t>(mib) << 20;
    return e;
  });
  series("growth that was touched", 0.1, 1, [](double share) {
    return GrowthEvidence{1 << 16, 1 << 20, static_cast<uint64_t>(share * (1 << 20))};
  });
  series("growth that was watched", 1e4, 1e6, [](double bytes) {
    return GrowthEvidence{1 << 16, static_cast<uint64_t>(bytes), static_cast<uint64_t>(bytes)};
  });
  series("a step of growth", 1e4, 1e8, [](double bytes) {
    return GrowthEvidence{static_cast<uint64_t>(bytes), 1 << 20, 1 << 20};
  });
  counted("steps of growth", 1, 40, [](uint32_t n) { return GrowthStep{n}; });
  const auto pairs = [](uint32_t count, double ratio) { return GrowthTimes{.pairs = count, .ratio = ratio}; };
  counted("pairs of steps of growth", 1, 20, [&](uint32_t n) { return pairs(n, 0.5); });
  series("what pages made as a memory grows give", 0.5, 2, [&](double ratio) { return pairs(12, ratio); });
  counted("times that a guest came by", 0, 10, [](uint32_t n) { return FillWindow{n, 1000}; });
  counted("blocks that it touched", 0, 100, [](uint32_t n) { return FillWindow{6, n}; });
  const auto moving = [](uint32_t samples, double saved, double error, double held = 0) {
    return PageProgress{.gain = {.samples = samples, .saved = saved, .error = error},
                        .seconds = 10,
                        .left_seconds = 0.5,
                        .held_seconds = held};
  };
  counted("samples while pages moved", 10, 200, [&](uint32_t n) { return moving(n, 0, 0.01); });
  series("what a move saves", 0.01, 0.5, [&](double saved) { return moving(400, saved, 0.05); });
  series("how sure that is", 0.001, 0.5, [&](double error) { return moving(400, 0, error); });
  series("what a part of a move saves", 0.01, 0.5, [&](double saved) { return moving(400, saved, 0.2, 1); });
  series("how long a move holds", 0.1, 10, [&](double seconds) { return moving(400, 0.2, 0.2, seconds); });
  series("how long one holds that is seen to save", 0.1, 10,
         [&](double seconds) { return moving(400, 0.3, 0.01, seconds); });
  series("how much moves", 1e6, 1e9, [](double bytes) {
    PagePlan plan;
    plan.bytes = static_cast<uint64_t>(bytes);
    return plan;
  });
  series("how fast memory fills", 0.2, 5, [](double ratio) { return FillSpeeds{1e9, 1e9 * ratio}; });

  series("time of a large program", 0.1, 100, [](double seconds) { return code(400, seconds); });
  series("time of a program of many functions", 0.1, 100, [](double seconds) { return code(4000, seconds); });
  series("functions", 20, 2000, [](double n) { return code(n, 10); });
  series("samples in optimized code of a module", 20, 1000,
         [](double samples) { return code(400, 10, samples); });
  series(
      "hot part", 0.7, 1,
      [](double share) {
        LayoutEvidence e = code(120, 10, 1000 * share);
        e.functions.push_back({FuncIndex(9999), 4 << 20, 1000 * (1 - share), false});
        return e;
      },
      1.01);
  series("time since the last version", 0.05, 5, [](double seconds) {
    LayoutEvidence e = code(400, 10, 1000, 0.5);
    e.seconds_settled = seconds;
    return e;
  });
  series("part in optimized code", 0.2, 1, [](double share) {
    LayoutEvidence e = code(400, 100, 1000, share);
    e.seconds_settled = 0;
    return e;
  });
  series("news since the last move", 0.02, 1, [](double share) {
    LayoutEvidence e = code(1000, 100);
    e.layouts = 1;
    for (size_t i = 0; i < static_cast<size_t>(1000 * (1 - share)); ++i) e.functions[i].tried = true;
    return e;
  });
  counted("moves before", 0, 8, [](uint32_t n) {
    LayoutEvidence e = code(1000, 100);
    e.layouts = n;
    return e;
  });

  series("time in a version", 0.05, 20, [](double seconds) { return version(seconds, 0.5, 100); });
  series("time in a version that was dear to compile", 0.05, 200, [](double seconds) {
    VersionEvidence e = version(seconds, 0.5, 1000);
    e.compile_seconds = 5;
    return e;
  });
  series("part of a version", 0.01, 1, [](double share) { return version(5, share, 100); });
  series("time of all guests", 0.1, 20, [](double seconds) { return version(5, 0.5, seconds); });

  series("time in earlier runs", 1e-4, 0.1, [](double seconds) { return known(seconds, 1); });
  counted("loads that were kept", 1, 16, [](uint32_t n) { return known(1, n); });
  return situations;
}

// ---------------------------------------------------------------- from profiles

namespace {

void fade(FunctionEvidence& e, double part) {
  const auto number = [&](double& x) { x *= part; };
  const auto count = [&](uint64_t& n) { n = static_cast<uint64_t>(part * static_cast<double>(n)); };
  for (double* x : {&e.samples_baseline, &e.samples_optimized, &e.seconds_baseline, &e.seconds_optimized,
                    &e.total_samples, &e.seconds_watched, &e.all_seconds_watched, &e.seconds_since_published,
                    &e.seconds_run, &e.seconds_run_baseline, &e.samples_run_baseline})
    number(*x);
  for (LoadEvidence& l : e.loads) {
    number(l.stall_samples);
    number(l.stall_samples_optimized);
    count(l.addresses);
    count(l.distinct_pages);
  }
  for (LoopEvidence& l : e.loops) number(l.samples);
  for (BranchEvidence& b : e.branches)
    for (uint64_t* n : {&b.sampled, &b.sampled_taken, &b.outcomes, &b.taken, &b.judged, &b.mispredicted})
      count(*n);
  for (CallEvidence& c : e.calls) {
    count(c.records);
    count(c.unforeseen_records);
    for (CallEvidence::Target& target : c.targets) count(target.records);
    for (CallEvidence::Target& target : c.unforeseen) count(target.records);
  }
  for (ValueEvidence& v : e.values) {
    count(v.records);
    for (ValueEvidence::Value& value : v.values) count(value.records);
  }
}

}  // namespace

std::vector<Situation> situations_of(const ModuleProfile& module) {
  std::vector<Situation> situations;
  const auto ask = [&](const FunctionEvidence& evidence) {
    situations.push_back({fmt::format("{}: {}", module.name, evidence.name), evidence});
    for (const double part : {0.5, 0.25, 0.125}) {
      FunctionEvidence earlier = evidence;
      fade(earlier, part);
      situations.push_back(
          {fmt::format("{}: {}, at {}", module.name, evidence.name, part), std::move(earlier)});
    }
  };
  double seconds = 0, samples = 0;
  for (const FunctionEvidence& e : module.functions) {
    seconds += e.seconds_run;
    samples += e.samples_baseline + e.samples_optimized;
  }
  for (const Episode& episode : module.episodes)
    if (episode.origin == Origin::kDecided) ask(episode.evidence);
  for (const FunctionEvidence& e : module.functions) {
    ask(e);
    if (!e.optimized || samples <= 0) continue;
    VersionEvidence version;
    const std::vector<Candidate> told = propose_for_version(e, {});
    for (const jit::ChangeKind kind : jit::kVersionChanges)
      if (kind == jit::ChangeKind::kSplitCold ? find(told, version_site(kind)) != nullptr : has(told, kind))
        version.there.push_back(kind);
    version.seconds_since_tried = e.seconds_since_published;
    version.share = (e.samples_baseline + e.samples_optimized) / samples;
    version.compile_seconds = compile_seconds(e, {});
    version.guest_seconds = seconds;
    situations.push_back({module.name, version});
  }
  for (const StartQuestion& question : start_questions(module))
    situations.push_back({fmt::format("{}: {}", module.name, question.decision->evidence.name),
                          StartSituation{question.decision->evidence, question.earlier}});
  for (const PageEpisode& episode : module.page_episodes) {
    situations.push_back({module.name, episode.evidence});
    situations.push_back({module.name, episode});
  }
  for (const LayoutEpisode& episode : module.layout_episodes)
    situations.push_back({module.name, episode.evidence});
  return situations;
}

double varied(const Parameter& parameter, const PolicyConfig& config, double factor) {
  const double number = parameter.of(config);
  if (!std::holds_alternative<uint32_t PolicyConfig::*>(parameter.member)) return number * factor;
  return factor > 1 ? std::max(number + 1, std::floor(number * factor))
                    : std::max(0.0, std::min(number - 1, std::ceil(number * factor)));
}

}  // namespace hindsight::feedback
