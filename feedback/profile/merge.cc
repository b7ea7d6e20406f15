#include "feedback/profile/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace hindsight::feedback {
namespace {

// Rounds: a count below another one stays so, and small counts do not vanish by being cut off.
uint64_t faded(uint64_t count, double factor) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(count) * factor));
}

template <typename T>
T* find_by(std::vector<T>& list, auto member, const auto& key) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const T& t) { return t.*member == key; });
  return found == list.end() ? nullptr : &*found;
}

void fade(FunctionEvidence& e, double factor) {
  for (double* count : {&e.samples_baseline, &e.samples_optimized, &e.seconds_baseline, &e.seconds_optimized,
                        &e.total_samples, &e.seconds_watched, &e.all_seconds_watched, &e.samples_left_behind,
                        &e.seconds_left_behind, &e.seconds_since_published})
    *count *= factor;
  for (LoadEvidence& l : e.loads) {
    l.stall_samples *= factor;
    l.stall_samples_optimized *= factor;
    l.addresses = faded(l.addresses, factor);
  }
  for (BranchEvidence& b : e.branches)
    for (uint64_t* count : {&b.sampled, &b.sampled_taken, &b.outcomes, &b.taken, &b.judged, &b.mispredicted})
      *count = faded(*count, factor);
  for (CallEvidence& c : e.calls) {
    c.records = faded(c.records, factor);
    c.unforeseen_records = faded(c.unforeseen_records, factor);
    for (auto* targets : {&c.targets, &c.unforeseen})
      for (CallEvidence::Target& t : *targets) t.records = faded(t.records, factor);
  }
  for (ValueEvidence& v : e.values) {
    v.records = faded(v.records, factor);
    for (ValueEvidence::Value& value : v.values) value.records = faded(value.records, factor);
  }
  for (LoopEvidence& l : e.loops) {
    for (double* count : {&l.samples, &l.samples_baseline, &l.seconds_baseline}) *count *= factor;
    l.trip_records = faded(l.trip_records, factor);
  }
}

constexpr size_t kMostDifferent = 8;  // ValueCounts::kCandidates

void add(std::vector<ValueEvidence::Value>& to, const std::vector<ValueEvidence::Value>& more) {
  for (const ValueEvidence::Value& value : more) {
    if (ValueEvidence::Value* known = find_by(to, &ValueEvidence::Value::value, value.value))
      known->records += value.records;
    else
      to.push_back(value);
  }
  std::stable_sort(to.begin(), to.end(), [](const ValueEvidence::Value& a, const ValueEvidence::Value& b) {
    return std::tie(b.records, a.value) < std::tie(a.records, b.value);
  });
  if (to.size() > kMostDifferent) to.resize(kMostDifferent);
}

void add(std::vector<CallEvidence::Target>& to, const std::vector<CallEvidence::Target>& more) {
  for (const CallEvidence::Target& target : more) {
    if (CallEvidence::Target* known = find_by(to, &CallEvidence::Target::element, target.element))
      known->records += target.records;
    else
      to.push_back(target);
  }
  std::stable_sort(to.begin(), to.end(), [](const CallEvidence::Target& a, const CallEvidence::Target& b) {
    return std::tie(b.records, a.element) < std::tie(a.records, b.element);
  });
  if (to.size() > kMostDifferent) to.resize(kMostDifferent);
}

// The order and the bounds that evidence promises.
void put_in_order(FunctionEvidence& e) {
  std::stable_sort(e.loads.begin(), e.loads.end(), [](const LoadEvidence& a, const LoadEvidence& b) {
    return a.stall_samples > b.stall_samples;
  });
  if (e.loads.size() > kMaxLoads) e.loads.resize(kMaxLoads);
  std::stable_sort(e.branches.begin(), e.branches.end(),
                   [](const BranchEvidence& a, const BranchEvidence& b) {
                     return std::tie(a.mispredicted, a.outcomes, a.sampled) >
                            std::tie(b.mispredicted, b.outcomes, b.sampled);
                   });
  if (e.branches.size() > kMaxBranches) e.branches.resize(kMaxBranches);
  std::stable_sort(e.calls.begin(), e.calls.end(), [](const CallEvidence& a, const CallEvidence& b) {
    return a.records + a.unforeseen_records > b.records + b.unforeseen_records;
  });
  if (e.calls.size() > kMaxCalls) e.calls.resize(kMaxCalls);
  std::stable_sort(e.values.begin(), e.values.end(),
                   [](const ValueEvidence& a, const ValueEvidence& b) { return a.records > b.records; });
  if (e.values.size() > kMaxValues) e.values.resize(kMaxValues);
}

// `to` has faded already.
void add(LoopEvidence& to, const LoopEvidence& more) {
  to.samples += more.samples;
  to.samples_baseline += more.samples_baseline;
  to.seconds_baseline += more.seconds_baseline;
  to.trip_records += more.trip_records;
  if (more.code_bytes != 0) to.code_bytes = more.code_bytes;
  to.inner_loops = more.inner_loops;
  to.no_nest = more.no_nest;
  // These are of one run alone.
  to.has_nest = more.has_nest;
  to.early = more.early;
  to.compiles = more.compiles;
  to.fruitless = more.fruitless;
  if (more.compile_seconds > 0) to.compile_seconds = more.compile_seconds;
}

// `to` has faded already.
void add(FunctionEvidence& to, const FunctionEvidence& more) {
  to.name = more.name;
  to.code_bytes = more.code_bytes;
  to.samples_baseline += more.samples_baseline;
  to.samples_optimized += more.samples_optimized;
  to.seconds_baseline += more.seconds_baseline;
  to.seconds_optimized += more.seconds_optimized;
  to.total_samples += more.total_samples;
  to.optimized = more.optimized;
  to.early = more.early;
  if (more.compile_seconds > 0) to.compile_seconds = more.compile_seconds;
  to.optimize_count = more.optimize_count;
  to.failed_compiles = more.failed_compiles;
  if (more.entered != Entered::kUnknown) to.entered = more.entered;
  to.loop_entries_only = more.loop_entries_only;
  to.seconds_watched += more.seconds_watched;
  to.all_seconds_watched += more.all_seconds_watched;
  to.samples_left_behind += more.samples_left_behind;
  to.seconds_left_behind += more.seconds_left_behind;
  to.seconds_since_published += more.seconds_since_published;
  // These are of one run alone: nothing of them adds up.
  to.samples_recent = more.samples_recent;
  to.samples_stayed = more.samples_stayed;
  to.seconds_stayed = more.seconds_stayed;
  to.moved_share = more.moved_share;
  to.callees = more.callees;
  to.seconds_run = more.seconds_run;
  to.seconds_run_baseline = more.seconds_run_baseline;
  to.samples_run_baseline = more.samples_run_baseline;
  merge(to.changes, more.changes);
  to.module_bytes = more.module_bytes;
  to.exit_loops = more.exit_loops;
  to.entry_loops = more.entry_loops;
  for (const LoadEvidence& l : more.loads) {
    LoadEvidence* known = find_by(to.loads, &LoadEvidence::load, l.load);
    if (!known) {
      to.loads.push_back(l);
      continue;
    }
    known->stall_samples += l.stall_samples;
    known->stall_samples_optimized += l.stall_samples_optimized;
    known->addresses += l.addresses;
    known->address_span_bytes = std::max(known->address_span_bytes, l.address_span_bytes);
    known->distinct_pages = std::max(known->distinct_pages, l.distinct_pages);
    known->in_loop = l.in_loop;
    known->stall_samples_recent = l.stall_samples_recent;
    if (rejections_of(more.changes, l.load) != 0) {
      known->seconds_since_rejected = l.seconds_since_rejected;
      known->share_when_rejected = l.share_when_rejected;
      known->span_when_rejected = l.span_when_rejected;
    }
    if (l.latency.timed != 0) known->latency = l.latency;
    known->is_store = l.is_store;
    known->callee = l.callee;
    known->rising_addresses += l.rising_addresses;
  }
  for (const BranchEvidence& b : more.branches) {
    BranchEvidence* known = find_by(to.branches, &BranchEvidence::branch, b.branch);
    if (!known) {
      to.branches.push_back(b);
      continue;
    }
    known->sampled += b.sampled;
    known->sampled_taken += b.sampled_taken;
    known->outcomes += b.outcomes;
    known->taken += b.taken;
    known->judged += b.judged;
    known->mispredicted += b.mispredicted;
    known->chooses = b.chooses;
  }
  for (const CallEvidence& c : more.calls) {
    CallEvidence* known = find_by(to.calls, &CallEvidence::call, c.call);
    if (!known) {
      to.calls.push_back(c);
      continue;
    }
    known->records += c.records;
    known->unforeseen_records += c.unforeseen_records;
    known->by_reference = c.by_reference;
    add(known->targets, c.targets);
    add(known->unforeseen, c.unforeseen);
  }
  for (const ValueEvidence& v : more.values) {
    ValueEvidence* known = find_by(to.values, &ValueEvidence::at, v.at);
    if (!known) {
      to.values.push_back(v);
      continue;
    }
    known->records += v.records;
    known->site = v.site;
    add(known->values, v.values);
  }
  const bool same_loops =
      std::equal(to.loops.begin(), to.loops.end(), more.loops.begin(), more.loops.end(),
                 [](const LoopEvidence& a, const LoopEvidence& b) { return a.offset == b.offset; });
  if (same_loops) {
    for (size_t i = 0; i < to.loops.size(); ++i) add(to.loops[i], more.loops[i]);
  } else {
    to.loops = more.loops;
  }
  put_in_order(to);
}

double weight(const FunctionEvidence& e) {
  return e.samples_baseline + e.samples_optimized;
}

void merge_functions(std::vector<FunctionEvidence>& earlier, const std::vector<FunctionEvidence>& run,
                     double factor) {
  for (FunctionEvidence& e : earlier) fade(e, factor);
  for (const FunctionEvidence& e : run) {
    if (FunctionEvidence* known = find_by(earlier, &FunctionEvidence::function, e.function))
      add(*known, e);
    else
      earlier.push_back(e);
  }
  std::stable_sort(earlier.begin(), earlier.end(), [](const FunctionEvidence& a, const FunctionEvidence& b) {
    return weight(a) > weight(b);
  });
  if (earlier.size() > kMaxFunctionsKept) earlier.resize(kMaxFunctionsKept);
}

void merge_samples(std::vector<FunctionSamples>& earlier, const std::vector<FunctionSamples>& run,
                   double factor) {
  for (FunctionSamples& s : earlier) {
    for (double* count : {&s.samples, &s.seconds_baseline, &s.seconds_optimized}) *count *= factor;
    for (FunctionSamples::Place& p : s.places) {
      p.samples *= factor;
      p.stalls *= factor;
    }
  }
  for (const FunctionSamples& s : run) {
    FunctionSamples* known = find_by(earlier, &FunctionSamples::function, s.function);
    if (!known) {
      earlier.push_back(s);
      continue;
    }
    known->name = s.name;
    known->begin = s.begin;
    known->samples += s.samples;
    known->seconds_baseline += s.seconds_baseline;
    known->seconds_optimized += s.seconds_optimized;
    for (const FunctionSamples::Place& p : s.places) {
      if (auto* place = find_by(known->places, &FunctionSamples::Place::offset, p.offset)) {
        place->samples += p.samples;
        place->stalls += p.stalls;
      } else {
        known->places.push_back(p);
      }
    }
    keep_dearest(known->places);
  }
  std::erase_if(earlier, [](const FunctionSamples& s) { return s.samples < 0.01; });
  std::stable_sort(earlier.begin(), earlier.end(),
                   [](const FunctionSamples& a, const FunctionSamples& b) { return a.samples > b.samples; });
  if (earlier.size() > kMaxFunctionsSampled) earlier.resize(kMaxFunctionsSampled);
}

// What a run found out about a decision that it took over.
void take_outcomes(Episode& decided, const Episode& later) {
  if (later.compile_seconds > 0) decided.compile_seconds = later.compile_seconds;
  merge(decided.outcomes, later.outcomes);
}

void merge_episodes(ModuleProfile& to, const ModuleProfile& run) {
  // A function or one loop: what was decided about one says nothing about another.
  const auto unit_of = [](const Episode& e) { return std::pair(e.evidence.function.value, e.nest); };
  std::map<std::pair<uint32_t, std::optional<LoopIndex>>, std::vector<Episode>> by_unit;
  for (Episode& e : to.episodes) {
    e.runs_ago = older(e.runs_ago, run.runs_seen);
    e.outcomes.age(run.runs_seen);
    by_unit[unit_of(e)].push_back(std::move(e));
  }
  for (const Episode& e : run.episodes) {
    std::vector<Episode>& known = by_unit[unit_of(e)];
    if (e.origin == Origin::kDecided || known.empty()) {
      // One that was undone before it began says nothing against the one before.
      known.push_back(e);
    } else {
      take_outcomes(known.back(), e);
    }
  }
  to.episodes.clear();
  for (auto& [unit, episodes] : by_unit) {
    const auto seen = std::find_if(to.samples.begin(), to.samples.end(),
                                   [&](const FunctionSamples& s) { return s.function.value == unit.first; });
    if (seen == to.samples.end() && episodes.back().runs_ago > kRunsToForgetIdle) continue;
    if (episodes.size() > kMaxEpisodesKept)
      episodes.erase(episodes.begin(), episodes.end() - static_cast<ptrdiff_t>(kMaxEpisodesKept));
    for (Episode& e : episodes) {
      e.outcomes.forget_if([](const ChangeLedger::Entry& entry) {
        return entry.outcome.state != ChangeState::kKept && entry.outcome.runs_ago > kRunsToForgetLosers;
      });
      to.episodes.push_back(std::move(e));
    }
  }
  // In the order in which they were made.
  std::stable_sort(to.episodes.begin(), to.episodes.end(), [](const Episode& a, const Episode& b) {
    return std::tie(b.runs_ago, a.seconds) < std::tie(a.runs_ago, b.seconds);
  });
  for (size_t i = 0; i < to.episodes.size(); ++i) to.episodes[i].id = i + 1;
}

// What the run took over is in its own decisions, with the same evidence. What it did not do again stays beside them: that it lost,
// or that nobody could tell. But for what lost a new decision of its kind, about memory in use or about memory that is filled,
// stands for those before.
void merge_page_episodes(std::vector<PageEpisode>& to, const ModuleProfile& run) {
  const auto has = [](const std::vector<PageEpisode>& all, const PageEpisode& e) {
    return std::any_of(all.begin(), all.end(),
                       [&](const PageEpisode& other) { return other.evidence == e.evidence; });
  };
  const auto decided_anew = [&](bool fill) {
    return std::any_of(run.page_episodes.begin(), run.page_episodes.end(), [&](const PageEpisode& e) {
      return e.evidence.fill.has_value() == fill && !has(to, e);
    });
  };
  const bool anew[2] = {decided_anew(false), decided_anew(true)};
  std::vector<PageEpisode> all = run.page_episodes;
  for (PageEpisode& e : to) {
    e.runs_ago = older(e.runs_ago, run.runs_seen);
    const bool stays = e.state == DecisionState::kRolledBack || !anew[e.evidence.fill ? 1 : 0];
    if (stays && e.runs_ago <= kRunsToForgetLosers && !has(run.page_episodes, e)) all.push_back(std::move(e));
  }
  if (all.size() > kMaxPageEpisodesKept) all.resize(kMaxPageEpisodesKept);
  for (size_t i = 0; i < all.size(); ++i) all[i].id = i + 1;
  to = std::move(all);
}

}  // namespace

double fading(double runs) {
  return std::exp2(-runs / kHalfLifeRuns);
}

ModuleProfile merge(ModuleProfile earlier, const ModuleProfile& run) {
  const double factor = fading(static_cast<double>(run.runs_seen));
  ModuleProfile to = std::move(earlier);
  to.name = run.name;
  to.runs = to.runs * factor + run.runs;
  to.runs_seen = std::min(to.runs_seen + run.runs_seen, uint64_t{1} << 62);
  merge_functions(to.functions, run.functions, factor);
  merge_samples(to.samples, run.samples, factor);
  merge_episodes(to, run);
  merge_page_episodes(to.page_episodes, run);
  if (!run.layout_episodes.empty()) {
    to.layout_episodes = run.layout_episodes;
  } else {
    for (LayoutEpisode& e : to.layout_episodes) e.runs_ago = older(e.runs_ago, run.runs_seen);
  }
  if (to.layout_episodes.size() > kMaxLayoutEpisodesKept) to.layout_episodes.resize(kMaxLayoutEpisodesKept);
  return to;
}

ProfileFile merge(ProfileFile earlier, const ProfileFile& run) {
  earlier.policy = run.policy;
  for (const ModuleProfile& module : run.modules) {
    const auto same = std::find_if(
        earlier.modules.begin(), earlier.modules.end(),
        [&](const ModuleProfile& m) { return m.hash_hex == module.hash_hex && m.options == module.options; });
    if (same == earlier.modules.end())
      earlier.modules.push_back(module);
    else
      *same = merge(std::move(*same), module);
  }
  return earlier;
}

FunctionEvidence without(FunctionEvidence seen, const FunctionEvidence& seed) {
  const auto less = [](uint64_t& count, uint64_t by) { count -= std::min(count, by); };
  for (BranchEvidence& b : seen.branches) {
    const auto known = std::find_if(seed.branches.begin(), seed.branches.end(),
                                    [&](const BranchEvidence& s) { return s.branch == b.branch; });
    if (known == seed.branches.end()) continue;
    less(b.sampled, known->sampled);
    less(b.sampled_taken, known->sampled_taken);
    less(b.outcomes, known->outcomes);
    less(b.taken, known->taken);
    less(b.judged, known->judged);
    less(b.mispredicted, known->mispredicted);
  }
  for (LoopEvidence& l : seen.loops)
    for (const ValueEvidence& v : seed.values)
      if (v.at == l.offset) less(l.trip_records, v.records);
  std::erase_if(seen.branches, [](const BranchEvidence& b) { return b.outcomes + b.sampled == 0; });
  for (CallEvidence& c : seen.calls) {
    const auto known = std::find_if(seed.calls.begin(), seed.calls.end(),
                                    [&](const CallEvidence& s) { return s.call == c.call; });
    if (known == seed.calls.end()) continue;
    less(c.records, known->records);
    for (CallEvidence::Target& t : c.targets) {
      const auto before = std::find_if(known->targets.begin(), known->targets.end(),
                                       [&](const CallEvidence::Target& s) { return s.element == t.element; });
      if (before != known->targets.end()) less(t.records, before->records);
      // Candidates lose counts to each other, also those that the seed had.
      t.records = std::min(t.records, c.records);
    }
    std::erase_if(c.targets, [](const CallEvidence::Target& t) { return t.records == 0; });
  }
  std::erase_if(seen.calls, [](const CallEvidence& c) { return c.records + c.unforeseen_records == 0; });
  for (ValueEvidence& v : seen.values) {
    const auto known = std::find_if(seed.values.begin(), seed.values.end(),
                                    [&](const ValueEvidence& s) { return s.at == v.at; });
    if (known == seed.values.end()) continue;
    less(v.records, known->records);
    for (ValueEvidence::Value& value : v.values) {
      const auto before = std::find_if(known->values.begin(), known->values.end(),
                                       [&](const ValueEvidence::Value& s) { return s.value == value.value; });
      if (before != known->values.end()) less(value.records, before->records);
      value.records = std::min(value.records, v.records);
    }
    std::erase_if(v.values, [](const ValueEvidence::Value& value) { return value.records == 0; });
  }
  std::erase_if(seen.values, [](const ValueEvidence& v) { return v.records == 0; });
  put_in_order(seen);
  return seen;
}

}  // namespace hindsight::feedback
