// What saved profiles are made of, said once: describe(archive, it) names each field of a struct with its unit and
// bounds. An archive that writes takes the fields' values; one that reads fills them and refuses what is out of bounds.
// So no field can be written and not read, or the other way round (json_archive.h; the code cache's is
// runtime/storage/code_cache_file.cc).
//
// An archive has:
//     kReads                    whether it is one that reads
//     has(name, present)        whether there is such a field: where it writes, if `present`
//     number, amount, count, id, flag, text, word, part, list, row
//                               a number; one of at least 0; an integer up to a bound; an index or offset; true or false; words;
//                               an enumerator, of which the last is given; a struct; several of them; a struct without names
//     require(..., holds, what) where it reads: what else makes it whole
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "feedback/profile/evidence.h"
#include "feedback/profile/ledger.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

inline constexpr uint64_t kMostCount = uint64_t{1} << 62;  // so that sums of two of them are numbers still
// 57 bits of address, the most there are: no sum or product of two of them overflows in a double or wraps.
inline constexpr uint64_t kMostAddress = uint64_t{1} << 57;

inline constexpr jit::ChangeKind kLastChangeKind = jit::kChanges.back().kind;

template <typename A>
void describe(A& a, jit::Site& s) {
  a.word("change", s.kind, kLastChangeKind);
  a.id("at", s.at);
}

template <typename A>
void describe(A& a, Outcome& o) {
  a.word("state", o.state, kLastChangeState);
  if (a.has("setting", o.setting != 0)) a.count("setting", o.setting);
  if (a.has("gain", o.gain != 0)) a.number("gain", o.gain);
  if (a.has("why", !o.why.empty())) a.text("why", o.why);
  if (a.has("rejections", o.rejections != 0)) a.count("rejections", o.rejections);
  if (a.has("runs_ago", o.runs_ago != 0)) a.count("runs_ago", o.runs_ago);
}

template <typename A>
void describe(A& a, ChangeLedger::Entry& e) {
  describe(a, e.site);
  describe(a, e.outcome);
}

template <typename A>
void describe(A& a, const char* name, ChangeLedger& ledger) {
  a.list(name, ledger.entries(), ChangeLedger::kMostEntries);
  const auto& all = ledger.entries();
  // Sorting keeps hostile lists from taking long.
  std::vector<jit::Site> sites;
  for (const auto& entry : all) sites.push_back(entry.site);
  std::sort(sites.begin(), sites.end());
  a.require(name, std::adjacent_find(sites.begin(), sites.end()) == sites.end(), "has a site twice");
}

template <typename A>
void describe(A& a, LoadLatency& l) {
  a.word("level", l.level, MemoryLevel::kMemory);
  a.count("timed", l.timed);
  a.number("mean_ticks", l.mean_ticks);
  a.number("memory_share", l.memory_share);
  a.number("latency_ns", l.latency_ns);
  a.count("cycles", l.cycles);
}

template <typename A>
void describe(A& a, LoadEvidence& l) {
  a.id("load", l.load);
  a.number("stall_samples", l.stall_samples);
  a.number("stall_samples_optimized", l.stall_samples_optimized);
  a.number("stall_samples_recent", l.stall_samples_recent);
  a.count("addresses", l.addresses);
  a.count("address_span_bytes", l.address_span_bytes);
  a.count("distinct_pages", l.distinct_pages);
  a.flag("in_loop", l.in_loop);
  if (a.has("in_recursion", l.in_recursion)) a.flag("in_recursion", l.in_recursion);
  if (a.has("seconds_since_rejected", l.seconds_since_rejected != 0 || l.share_when_rejected != 0)) {
    a.number("seconds_since_rejected", l.seconds_since_rejected);
    a.number("share_when_rejected", l.share_when_rejected);
  }
  if (a.has("span_when_rejected", l.span_when_rejected != 0))
    a.count("span_when_rejected", l.span_when_rejected);
  if (a.has("latency", l.latency.timed != 0)) a.part("latency", l.latency);
  if (a.has("is_store", l.is_store)) {
    a.flag("is_store", l.is_store);
    a.count("rising_addresses", l.rising_addresses);
  }
  if (a.has("callee", l.callee.has_value())) {
    if (!l.callee) l.callee.emplace();
    a.id("callee", *l.callee);
  }
}

template <typename A>
void describe(A& a, BranchEvidence& b) {
  a.id("branch", b.branch);
  a.count("sampled", b.sampled, kMostCount);
  a.count("sampled_taken", b.sampled_taken, b.sampled);
  a.count("outcomes", b.outcomes, kMostCount);
  a.count("taken", b.taken, b.outcomes);
  a.count("judged", b.judged, b.outcomes);
  a.count("mispredicted", b.mispredicted, b.judged);
  a.flag("chooses", b.chooses);
}

template <typename A>
void describe(A& a, CalleeEvidence& c) {
  a.id("function", c.function);
  a.text("name", c.name);
  a.id("called_in", c.called_in);
  a.number("samples", c.samples);
  a.number("seconds", c.seconds);
  a.number("stall_samples", c.stall_samples);
  if (a.has("stall_samples_undecided", c.stall_samples_undecided != 0))
    a.number("stall_samples_undecided", c.stall_samples_undecided);
  if (a.has("branches", !c.branches.empty())) a.list("branches", c.branches);
}

template <typename A>
void describe(A& a, CallEvidence::Target& t) {
  a.count("element", t.element);
  a.count("records", t.records);
}

template <typename A>
void describe(A& a, CallEvidence& c) {
  const auto at_most = [](const std::vector<CallEvidence::Target>& targets, uint64_t records) {
    return std::all_of(targets.begin(), targets.end(), [&](const auto& t) { return t.records <= records; });
  };
  a.id("call", c.call);
  a.flag("by_reference", c.by_reference);
  a.count("records", c.records, kMostCount);
  a.list("targets", c.targets);
  a.require("targets", at_most(c.targets, c.records), "have more records than there are");
  a.count("unforeseen_records", c.unforeseen_records, kMostCount);
  a.list("unforeseen", c.unforeseen);
  a.require("unforeseen", at_most(c.unforeseen, c.unforeseen_records), "have more records than there are");
}

template <typename A>
void describe(A& a, ValueEvidence::Value& v) {
  a.count("value", v.value);
  a.count("records", v.records);
}

template <typename A>
void describe(A& a, ValueEvidence& v) {
  a.id("at", v.at);
  a.word("site", v.site, ValueSite::kTripCount);
  a.count("records", v.records, kMostCount);
  a.list("values", v.values);
  a.require("values",
            std::all_of(v.values.begin(), v.values.end(),
                        [&](const ValueEvidence::Value& value) { return value.records <= v.records; }),
            "have more records than there are");
}

template <typename A>
void describe(A& a, LoopEvidence& l) {
  a.id("offset", l.offset);
  a.count("depth", l.depth);
  a.number("samples", l.samples);
  a.index("parent", l.parent);
  // Version 2 has none of these.
  if (a.has("code_bytes", l.code_bytes != 0)) a.count("code_bytes", l.code_bytes);
  if (a.has("inner_loops", l.inner_loops != 0)) a.count("inner_loops", l.inner_loops);
  if (a.has("samples_baseline", l.samples_baseline != 0)) a.amount("samples_baseline", l.samples_baseline);
  if (a.has("seconds_baseline", l.seconds_baseline != 0)) a.amount("seconds_baseline", l.seconds_baseline);
  if (a.has("trip_records", l.trip_records != 0)) a.count("trip_records", l.trip_records, kMostCount);
  if (a.has("has_nest", l.has_nest)) a.flag("has_nest", l.has_nest);
  if (a.has("early", l.early)) a.flag("early", l.early);
  if (a.has("set_aside", l.set_aside)) a.flag("set_aside", l.set_aside);
  if (a.has("only_for_callees", l.only_for_callees)) a.flag("only_for_callees", l.only_for_callees);
  if (a.has("compiles", l.compiles != 0)) a.count("compiles", l.compiles);
  if (a.has("fruitless", l.fruitless != 0)) a.count("fruitless", l.fruitless);
  if (a.has("compile_seconds", l.compile_seconds != 0)) a.amount("compile_seconds", l.compile_seconds);
  if (a.has("no_nest", !l.no_nest.empty())) a.text("no_nest", l.no_nest);
  if (a.has("end", l.end.value != 0)) {
    a.id("end", l.end);
    a.flag("under_way", l.under_way);
    a.amount("samples_optimized", l.samples_optimized);
    a.amount("seconds_optimized", l.seconds_optimized);
    a.amount("seconds_run_baseline", l.seconds_run_baseline);
    a.amount("seconds_run_optimized", l.seconds_run_optimized);
    a.amount("seconds_in_code", l.seconds_in_code);
    a.number("moved_share", l.moved_share);  // may be a little below 0, by chance
  }
}

template <typename A>
void describe(A& a, FunctionEvidence& e) {
  a.id("function", e.function);
  a.text("name", e.name);
  a.count("code_bytes", e.code_bytes);
  a.number("samples_baseline", e.samples_baseline);
  a.number("samples_optimized", e.samples_optimized);
  a.number("seconds_baseline", e.seconds_baseline);
  a.number("seconds_optimized", e.seconds_optimized);
  a.number("total_samples", e.total_samples);
  a.flag("optimized", e.optimized);
  if (a.has("early", e.early)) a.flag("early", e.early);
  a.count("optimize_count", e.optimize_count);
  if (a.has("failed_compiles", e.failed_compiles != 0)) a.count("failed_compiles", e.failed_compiles);
  a.word("entered", e.entered, Entered::kAgain);
  a.number("seconds_watched", e.seconds_watched);
  a.number("all_seconds_watched", e.all_seconds_watched);
  a.flag("loop_entries_only", e.loop_entries_only);
  a.number("samples_left_behind", e.samples_left_behind);
  a.number("seconds_left_behind", e.seconds_left_behind);
  a.number("seconds_since_published", e.seconds_since_published);
  a.number("samples_recent", e.samples_recent);
  a.number("samples_stayed", e.samples_stayed);
  a.number("seconds_stayed", e.seconds_stayed);
  a.number("moved_share", e.moved_share);
  a.number("seconds_run", e.seconds_run);
  a.number("seconds_run_baseline", e.seconds_run_baseline);
  a.number("samples_run_baseline", e.samples_run_baseline);
  a.list("exit_loops", e.exit_loops);
  a.list("entry_loops", e.entry_loops);
  a.amount("compile_seconds", e.compile_seconds);
  if (a.has("compile_scale", e.compile_scale != 1)) a.amount("compile_scale", e.compile_scale);
  if (a.has("price_of_trying", e.price_of_trying != 0)) a.amount("price_of_trying", e.price_of_trying);
  a.list("loads", e.loads);
  a.list("loops", e.loops);
  if (a.has("callees", !e.callees.empty())) a.list("callees", e.callees);
  a.require("callees",
            std::all_of(e.callees.begin(), e.callees.end(),
                        [&](const CalleeEvidence& c) { return c.called_in.value < e.loops.size(); }),
            "are called in loops that there are not");
  a.list("branches", e.branches);
  a.list("calls", e.calls);
  a.list("values", e.values);
  describe(a, "changes", e.changes);
  a.count("module_bytes", e.module_bytes, kMostCount);
  for (uint32_t i = 0; i < e.loops.size(); ++i) {
    if constexpr (A::kReads) e.loops[i].loop = LoopIndex(i);
    // Loops are in byte order: a parent stands before its children, which keeps the chain finite.
    a.require("loops", e.loops[i].parent >= -1 && e.loops[i].parent < static_cast<int32_t>(i),
              "has a parent that is not an earlier loop");
  }
}

// A loop that is compiled alone, if one is.
template <typename A>
void describe_nest(A& a, std::optional<LoopIndex>& nest) {
  if (!a.has("nest", nest.has_value())) return;
  if (!nest) nest.emplace();
  a.id("nest", *nest);
}

template <typename A>
void describe(A& a, Episode::Earlier& e) {
  a.amount("runs", e.runs);
  a.amount("seconds_baseline", e.seconds_baseline);
  a.amount("seconds_optimized", e.seconds_optimized);
  a.amount("compile_seconds", e.compile_seconds);
  a.list("osr_loops", e.osr_loops);
  describe_nest(a, e.nest);
  describe(a, "outcomes", e.outcomes);
}

template <typename A>
void describe(A& a, Episode& e) {
  a.count("id", e.id);
  a.number("seconds", e.seconds);
  a.part("evidence", e.evidence);
  a.text("action", e.action);
  a.list("osr_loops", e.osr_loops);
  describe_nest(a, e.nest);
  a.list("changes", e.changes);
  a.text("reason", e.reason);
  a.list("alternatives", e.alternatives);
  a.word("state", e.state, kLastDecisionState);
  if (a.has("state_why", !e.state_why.empty())) a.text("state_why", e.state_why);
  a.amount("compile_seconds", e.compile_seconds);
  describe(a, "outcomes", e.outcomes);
  a.word("origin", e.origin, Origin::kCodeCache);
  a.count("runs_ago", e.runs_ago);
  if (a.has("earlier", e.earlier.has_value())) {
    if (!e.earlier) e.earlier.emplace();
    a.part("earlier", *e.earlier);
  }
  a.require("earlier", e.earlier.has_value() == (e.origin == Origin::kProfile),
            "belongs to a decision that was taken over from earlier runs, and only there");
}

template <typename A>
void describe_module_decision(A& a, ModuleEpisode& e) {
  a.count("id", e.id);
  a.number("seconds", e.seconds);
  a.text("reason", e.reason);
  a.list("alternatives", e.alternatives);
  a.number("estimated_gain", e.estimated_gain);
  a.word("state", e.state, kLastDecisionState);
  a.text("outcome", e.outcome);
  a.number("measured_gain", e.measured_gain);
  a.count("runs_ago", e.runs_ago);
}

template <typename A>
void describe(A& a, FillEvidence& f) {
  a.count("begin", f.begin, kMostAddress);
  a.count("end", f.end, kMostAddress);
  a.require(f.begin < f.end, "is no range of addresses");
  a.count("full", f.full);
  a.count("part", f.part);
  a.count("untouched", f.untouched);
  a.count("available_bytes", f.available_bytes, kMostCount);
  if (a.has("vain_bytes", f.vain_bytes != 0)) a.count("vain_bytes", f.vain_bytes, kMostCount);
}

template <typename A>
void describe(A& a, PageEvidence::Region& r) {
  a.row("is not a region with its addresses", r.index, r.addresses);
  a.require(r.index <= kMostAddress / kHugePageBytes && r.addresses < kMostCount, "is out of bounds");
}

template <typename A>
void describe(A& a, PageEvidence& e) {
  if (a.has("fill", e.fill.has_value())) {
    if (!e.fill) e.fill.emplace();
    return a.part("fill", *e.fill);
  }
  a.amount("samples", e.samples);
  a.amount("seconds", e.seconds);
  a.amount("stall_samples", e.stall_samples);
  if (a.has("seconds_idle", e.seconds_idle != 0)) a.amount("seconds_idle", e.seconds_idle);
  a.amount("hidden_share", e.hidden_share);
  a.count("addresses", e.addresses, kMostCount);
  a.count("distinct_pages", e.distinct_pages, kMostCount);
  a.amount("move_seconds_per_byte", e.move_seconds_per_byte);
  if (a.has("moving_seconds_per_byte", e.moving_seconds_per_byte != 0))
    a.amount("moving_seconds_per_byte", e.moving_seconds_per_byte);
  a.count("vain_bytes", e.vain_bytes);
  a.list("regions", e.regions);
  a.require(
      "regions",
      std::adjacent_find(e.regions.begin(), e.regions.end(),
                         [](const auto& x, const auto& y) { return x.index >= y.index; }) == e.regions.end(),
      "are not in ascending order");
}

template <typename A>
void describe(A& a, PageEpisode::Range& r) {
  a.row("is not a pair of addresses", r.begin, r.end);
  a.require(r.begin < r.end && r.end <= kMostAddress, "is no range of addresses");
}

template <typename A>
void describe(A& a, PageEpisode::Place& p) {
  a.count("memory", p.memory);
  a.count("begin", p.begin, kMostAddress);
  a.count("end", p.end, kMostAddress);
  a.require(p.begin < p.end, "is no range of a memory");
}

template <typename A>
void describe(A& a, PageEpisode& e) {
  describe_module_decision(a, e);
  a.part("evidence", e.evidence);
  a.list("ranges", e.ranges);
  a.list("places", e.places);
  if (a.has("unjudged", e.unjudged != 0)) a.count("unjudged", e.unjudged);
}

template <typename A>
void describe(A& a, LayoutEvidence::Function& f) {
  a.row("is not a function with its code's bytes, its samples, and whether it was tried", f.function,
        f.code_bytes, f.samples, f.tried);
}

template <typename A>
void describe(A& a, LayoutEvidence& e) {
  a.amount("samples", e.samples);
  a.amount("seconds", e.seconds);
  a.amount("seconds_settled", e.seconds_settled);
  a.count("layouts", e.layouts);
  a.list("functions", e.functions, kMaxLayoutFunctions);
  a.require("functions",
            std::adjacent_find(e.functions.begin(), e.functions.end(),
                               [](const auto& x, const auto& y) { return x.function >= y.function; }) ==
                e.functions.end(),
            "are not in ascending order");
}

template <typename A>
void describe(A& a, LayoutEpisode& e) {
  describe_module_decision(a, e);
  a.part("evidence", e.evidence);
  a.flag("moves", e.moves);
}

template <typename A>
void describe(A& a, FunctionSamples::Place& p) {
  a.row("is not an offset with its samples and stalls", p.offset, p.samples, p.stalls);
}

template <typename A>
void describe(A& a, FunctionSamples& s) {
  a.id("function", s.function);
  a.text("name", s.name);
  a.id("begin", s.begin);
  a.amount("samples", s.samples);
  a.amount("seconds_baseline", s.seconds_baseline);
  a.amount("seconds_optimized", s.seconds_optimized);
  a.list("places", s.places);
  a.require(
      "places",
      std::adjacent_find(s.places.begin(), s.places.end(),
                         [](const auto& x, const auto& y) { return x.offset >= y.offset; }) == s.places.end(),
      "are not in ascending order");
}

template <typename A>
void describe(A& a, ModuleProfile& m) {
  a.text("hash", m.hash_hex);
  a.text("name", m.name);
  a.text("options", m.options);
  a.count("runs_seen", m.runs_seen, kMostCount);
  a.amount("runs", m.runs);
  a.require("runs", m.runs >= 1e-3, "is less than any run leaves");
  a.list("episodes", m.episodes);
  a.list("functions", m.functions);
  a.list("page_episodes", m.page_episodes);
  a.list("layout_episodes", m.layout_episodes);
  a.list("samples", m.samples);
}

}  // namespace hindsight::feedback
