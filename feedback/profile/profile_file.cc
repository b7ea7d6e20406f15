#include "feedback/profile/profile_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"

namespace hindsight::feedback {

namespace {

using nlohmann::json;

constexpr const char* kFormatName = "hindsight-profile";
constexpr int kFormatVersion = 1;
constexpr size_t kMaxListLength = 1'000'000;
// How the line in front of kept profiles begins, which the engine writes and checks.
constexpr std::string_view kSealStart = "hindsight-";

std::string_view behind_seal(std::string_view text) {
  if (text.starts_with(kSealStart)) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// Reads typed fields and remembers the path to the first defect, so that one check at the end suffices.
class Reader {
 public:
  bool failed() const { return !defect_.empty(); }
  const std::string& defect() const { return defect_; }

  void fail(const std::string& place, const std::string& what) {
    if (defect_.empty()) defect_ = place + ": " + what;
  }
  const json* field(const json& object, const std::string& place, const char* name) {
    if (!object.is_object()) {
      fail(place, "is not an object");
      return nullptr;
    }
    auto found = object.find(name);
    if (found == object.end()) {
      fail(place, fmt::format("has no field '{}'", name));
      return nullptr;
    }
    return &*found;
  }
  double number(const json& object, const std::string& place, const char* name) {
    const json* value = field(object, place, name);
    if (!value) return 0;
    if (!value->is_number()) {
      fail(place + "." + name, "is not a number");
      return 0;
    }
    double number = value->get<double>();
    if (!std::isfinite(number) || number < -1e18 || number > 1e18) {
      fail(place + "." + name, "is out of range");
      return 0;
    }
    return number;
  }
  // A number of at least zero.
  double amount(const json& object, const std::string& place, const char* name) {
    const double value = number(object, place, name);
    if (value >= 0) return value;
    fail(place + "." + name, "is negative");
    return 0;
  }
  uint64_t integer(const json& object, const std::string& place, const char* name, uint64_t max) {
    const json* value = field(object, place, name);
    if (!value) return 0;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > max) {
      fail(place + "." + name, fmt::format("is not an integer of at most {}", max));
      return 0;
    }
    return value->get<uint64_t>();
  }
  uint32_t u32(const json& object, const std::string& place, const char* name) {
    return static_cast<uint32_t>(integer(object, place, name, ~uint32_t{0}));
  }
  bool boolean(const json& object, const std::string& place, const char* name) {
    const json* value = field(object, place, name);
    if (value && !value->is_boolean()) fail(place + "." + name, "is not true or false");
    return value && value->is_boolean() && value->get<bool>();
  }
  std::string text(const json& object, const std::string& place, const char* name) {
    const json* value = field(object, place, name);
    if (!value) return {};
    if (!value->is_string()) {
      fail(place + "." + name, "is not a string");
      return {};
    }
    return value->get<std::string>();
  }
  // Calls each(element, place of it) for a list field.
  template <typename Each>
  void list(const json& object, const std::string& place, const char* name, Each each) {
    const json* value = field(object, place, name);
    if (!value) return;
    if (!value->is_array() || value->size() > kMaxListLength) {
      fail(place + "." + name, "is not a list of acceptable length");
      return;
    }
    for (size_t i = 0; i < value->size() && !failed(); ++i)
      each((*value)[i], fmt::format("{}.{}[{}]", place, name, i));
  }
  std::vector<uint32_t> u32_list(const json& object, const std::string& place, const char* name) {
    std::vector<uint32_t> values;
    list(object, place, name, [&](const json& element, const std::string& where) {
      if (!element.is_number_unsigned() || element.get<uint64_t>() > ~uint32_t{0}) {
        fail(where, "is not a 32-bit integer");
      } else {
        values.push_back(element.get<uint32_t>());
      }
    });
    return values;
  }
  std::vector<std::string> texts(const json& object, const std::string& place, const char* name) {
    std::vector<std::string> values;
    list(object, place, name, [&](const json& element, const std::string& where) {
      if (!element.is_string()) return fail(where, "is not a string");
      values.push_back(element.get<std::string>());
    });
    return values;
  }
  // Calls each(first, second, place of it) for a list of pairs of integers.
  template <typename Each>
  void pairs(const json& object, const std::string& place, const char* name, Each each) {
    list(object, place, name, [&](const json& element, const std::string& where) {
      if (!element.is_array() || element.size() != 2 || !element[0].is_number_unsigned() ||
          !element[1].is_number_unsigned())
        return fail(where, "is not a pair of integers");
      each(element[0].get<uint64_t>(), element[1].get<uint64_t>(), where);
    });
  }
  // Fields that later versions of the program added: a file without them says nothing about them.
  static bool has(const json& object, const char* name) {
    return object.is_object() && object.contains(name);
  }
  MemoryLevel level(const json& object, const std::string& place, const char* name) {
    std::string word = text(object, place, name);
    for (MemoryLevel l : {MemoryLevel::kUnknown, MemoryLevel::kL1, MemoryLevel::kL2, MemoryLevel::kL3,
                          MemoryLevel::kMemory}) {
      if (word == to_string(l)) return l;
    }
    fail(place + "." + name, fmt::format("'{}' is not a level of memory", word));
    return MemoryLevel::kUnknown;
  }
  Entered entered(const json& object, const std::string& place, const char* name) {
    std::string word = text(object, place, name);
    for (Entered e : {Entered::kUnknown, Entered::kNotYet, Entered::kAgain}) {
      if (word == to_string(e)) return e;
    }
    fail(place + "." + name, fmt::format("'{}' says nothing about entries", word));
    return Entered::kUnknown;
  }
  PrefetchOutcome outcome(const json& object, const std::string& place, const char* name) {
    std::string word = text(object, place, name);
    for (PrefetchOutcome o : {PrefetchOutcome::kNone, PrefetchOutcome::kInTrial, PrefetchOutcome::kKept,
                              PrefetchOutcome::kRolledBack, PrefetchOutcome::kNoSlice}) {
      if (word == to_string(o)) return o;
    }
    fail(place + "." + name, fmt::format("'{}' is not an outcome", word));
    return PrefetchOutcome::kNone;
  }
  jit::ChangeKind change(const json& object, const std::string& place, const char* name) {
    std::string word = text(object, place, name);
    if (const auto kind = jit::change_kind_of(word)) return *kind;
    fail(place + "." + name, fmt::format("'{}' is not a change", word));
    return jit::ChangeKind::kPrefetch;
  }
  Origin origin(const json& object, const std::string& place, const char* name) {
    std::string word = text(object, place, name);
    for (Origin o : {Origin::kDecided, Origin::kProfile, Origin::kCodeCache}) {
      if (word == to_string(o)) return o;
    }
    fail(place + "." + name, fmt::format("'{}' is not where a decision comes from", word));
    return Origin::kDecided;
  }

 private:
  std::string defect_;
};

json to_json(const LoadLatency& l) {
  return {{"level", to_string(l.level)},    {"timed", l.timed},           {"mean_ticks", l.mean_ticks},
          {"memory_share", l.memory_share}, {"latency_ns", l.latency_ns}, {"cycles", l.cycles}};
}

LoadLatency read_latency(Reader& r, const json& j, const std::string& place) {
  LoadLatency l;
  l.level = r.level(j, place, "level");
  l.timed = r.integer(j, place, "timed", ~uint64_t{0});
  l.mean_ticks = r.number(j, place, "mean_ticks");
  l.memory_share = r.number(j, place, "memory_share");
  l.latency_ns = r.number(j, place, "latency_ns");
  l.cycles = r.u32(j, place, "cycles");
  return l;
}

json to_json(const BranchEvidence& b) {
  json j = {{"branch", b.branch.value},      {"sampled", b.sampled}, {"sampled_taken", b.sampled_taken},
            {"outcomes", b.outcomes},        {"taken", b.taken},     {"judged", b.judged},
            {"mispredicted", b.mispredicted}};
  if (b.chooses) j["chooses"] = true;
  if (b.outcome != PrefetchOutcome::kNone) j["outcome"] = to_string(b.outcome);
  return j;
}

BranchEvidence read_branch(Reader& r, const json& j, const std::string& place) {
  constexpr uint64_t kMost = uint64_t{1} << 62;  // so that sums of two of them are numbers still
  BranchEvidence b;
  b.branch = WasmOffset(r.u32(j, place, "branch"));
  b.sampled = r.integer(j, place, "sampled", kMost);
  b.sampled_taken = r.integer(j, place, "sampled_taken", b.sampled);
  b.outcomes = r.integer(j, place, "outcomes", kMost);
  b.taken = r.integer(j, place, "taken", b.outcomes);
  b.judged = r.integer(j, place, "judged", b.outcomes);
  b.mispredicted = r.integer(j, place, "mispredicted", b.judged);
  if (Reader::has(j, "chooses")) b.chooses = r.boolean(j, place, "chooses");
  if (Reader::has(j, "outcome")) b.outcome = r.outcome(j, place, "outcome");
  return b;
}

json to_json(const std::vector<CallEvidence::Target>& targets) {
  json list = json::array();
  for (const CallEvidence::Target& t : targets)
    list.push_back({{"element", t.element}, {"records", t.records}});
  return list;
}

json to_json(const CallEvidence& c) {
  return {{"call", c.call.value},
          {"records", c.records},
          {"targets", to_json(c.targets)},
          {"by_reference", c.by_reference},
          {"unforeseen_records", c.unforeseen_records},
          {"unforeseen", to_json(c.unforeseen)}};
}

CallEvidence read_call(Reader& r, const json& j, const std::string& place) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  CallEvidence c;
  c.call = WasmOffset(r.u32(j, place, "call"));
  if (Reader::has(j, "by_reference")) c.by_reference = r.boolean(j, place, "by_reference");
  const auto read_targets = [&](const char* name, uint64_t most) {
    std::vector<CallEvidence::Target> targets;
    r.list(j, place, name, [&](const json& element, const std::string& where) {
      CallEvidence::Target t;
      t.element = r.u32(element, where, "element");
      t.records = r.integer(element, where, "records", most);
      targets.push_back(t);
    });
    return targets;
  };
  c.records = r.integer(j, place, "records", kMost);
  c.targets = read_targets("targets", c.records);
  if (Reader::has(j, "unforeseen_records")) {
    c.unforeseen_records = r.integer(j, place, "unforeseen_records", kMost);
    c.unforeseen = read_targets("unforeseen", c.unforeseen_records);
  }
  return c;
}

json to_json(const ValueEvidence& v) {
  json values = json::array();
  for (const ValueEvidence::Value& value : v.values)
    values.push_back({{"value", value.value}, {"records", value.records}});
  json j = {{"at", v.at.value}, {"site", to_string(v.site)}, {"records", v.records}, {"values", values}};
  if (v.outcome != PrefetchOutcome::kNone) j["outcome"] = to_string(v.outcome);
  return j;
}

ValueEvidence read_values(Reader& r, const json& j, const std::string& place) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  ValueEvidence v;
  v.at = WasmOffset(r.u32(j, place, "at"));
  const std::string site = r.text(j, place, "site");
  bool known = false;
  for (const ValueSite s :
       {ValueSite::kDivisor, ValueSite::kWideDivisor, ValueSite::kByteCount, ValueSite::kTripCount}) {
    if (site != to_string(s)) continue;
    v.site = s;
    known = true;
  }
  if (!known) r.fail(place + ".site", fmt::format("'{}' has no values that are recorded", site));
  v.records = r.integer(j, place, "records", kMost);
  r.list(j, place, "values", [&](const json& element, const std::string& where) {
    ValueEvidence::Value value;
    value.value = r.integer(element, where, "value", ~uint64_t{0});
    value.records = r.integer(element, where, "records", v.records);
    v.values.push_back(value);
  });
  if (Reader::has(j, "outcome")) v.outcome = r.outcome(j, place, "outcome");
  return v;
}

json to_json(const VersionOutcomes& outcomes) {
  json j = json::object();
  for (const jit::ChangeKind change : jit::kVersionChanges)
    if (outcomes.of(change) != PrefetchOutcome::kNone) j[to_string(change)] = to_string(outcomes.of(change));
  return j;
}

VersionOutcomes read_outcomes(Reader& r, const json& j, const std::string& place) {
  VersionOutcomes outcomes;
  for (const jit::ChangeKind change : jit::kVersionChanges) {
    const std::string name(to_string(change));
    if (Reader::has(j, name.c_str())) outcomes.of(change) = r.outcome(j, place, name.c_str());
  }
  return outcomes;
}

json to_json(const FunctionEvidence& e) {
  json loads = json::array();
  for (const LoadEvidence& l : e.loads) {
    loads.push_back({{"load", l.load.value},
                     {"stall_samples", l.stall_samples},
                     {"stall_samples_optimized", l.stall_samples_optimized},
                     {"addresses", l.addresses},
                     {"address_span_bytes", l.address_span_bytes},
                     {"distinct_pages", l.distinct_pages},
                     {"in_loop", l.in_loop},
                     {"outcome", to_string(l.outcome)}});
    if (l.interleave != PrefetchOutcome::kNone) loads.back()["interleave"] = to_string(l.interleave);
    if (l.jump != PrefetchOutcome::kNone) loads.back()["jump_pointers"] = to_string(l.jump);
    if (l.stall_samples_recent != 0) loads.back()["stall_samples_recent"] = l.stall_samples_recent;
    if (l.rejections != 0) {
      loads.back()["rejections"] = l.rejections;
      loads.back()["seconds_since_rejected"] = l.seconds_since_rejected;
      loads.back()["share_when_rejected"] = l.share_when_rejected;
    }
    if (l.latency.timed != 0) loads.back()["latency"] = to_json(l.latency);
  }
  json branches = json::array();
  for (const BranchEvidence& b : e.branches) branches.push_back(to_json(b));
  json calls = json::array();
  for (const CallEvidence& c : e.calls) calls.push_back(to_json(c));
  json values = json::array();
  for (const ValueEvidence& v : e.values) values.push_back(to_json(v));
  json loops = json::array();
  for (const LoopEvidence& l : e.loops) {
    loops.push_back(
        {{"offset", l.offset.value}, {"depth", l.depth}, {"samples", l.samples}, {"parent", l.parent}});
  }
  json exit_loops = json::array(), entry_loops = json::array();
  for (const LoopIndex loop : e.exit_loops) exit_loops.push_back(loop.value);
  for (const LoopIndex loop : e.entry_loops) entry_loops.push_back(loop.value);
  return {{"function", e.function.value},
          {"name", e.name},
          {"code_bytes", e.code_bytes},
          {"samples_baseline", e.samples_baseline},
          {"samples_optimized", e.samples_optimized},
          {"seconds_baseline", e.seconds_baseline},
          {"seconds_optimized", e.seconds_optimized},
          {"total_samples", e.total_samples},
          {"optimized", e.optimized},
          {"optimize_count", e.optimize_count},
          {"entered", to_string(e.entered)},
          {"seconds_watched", e.seconds_watched},
          {"all_seconds_watched", e.all_seconds_watched},
          {"loop_entries_only", e.loop_entries_only},
          {"samples_left_behind", e.samples_left_behind},
          {"seconds_left_behind", e.seconds_left_behind},
          {"seconds_since_published", e.seconds_since_published},
          {"samples_recent", e.samples_recent},
          {"samples_stayed", e.samples_stayed},
          {"seconds_stayed", e.seconds_stayed},
          {"moved_share", e.moved_share},
          {"seconds_run", e.seconds_run},
          {"seconds_run_baseline", e.seconds_run_baseline},
          {"samples_run_baseline", e.samples_run_baseline},
          {"exit_loops", exit_loops},
          {"entry_loops", entry_loops},
          {"compile_seconds", e.compile_seconds},
          {"loads", loads},
          {"branches", branches},
          {"calls", calls},
          {"values", values},
          {"loops", loops},
          {"outcomes", to_json(e.outcomes)},
          {"module_bytes", e.module_bytes}};
}

FunctionEvidence read_evidence(Reader& r, const json& j, const std::string& place) {
  FunctionEvidence e;
  e.function = FuncIndex(r.u32(j, place, "function"));
  e.name = r.text(j, place, "name");
  e.code_bytes = r.u32(j, place, "code_bytes");
  e.samples_baseline = r.number(j, place, "samples_baseline");
  e.samples_optimized = r.number(j, place, "samples_optimized");
  e.seconds_baseline = r.number(j, place, "seconds_baseline");
  e.seconds_optimized = r.number(j, place, "seconds_optimized");
  e.total_samples = r.number(j, place, "total_samples");
  e.optimized = r.boolean(j, place, "optimized");
  e.optimize_count = r.u32(j, place, "optimize_count");
  if (Reader::has(j, "entered")) {
    e.entered = r.entered(j, place, "entered");
    e.seconds_watched = r.number(j, place, "seconds_watched");
  }
  if (Reader::has(j, "loop_entries_only")) {
    e.all_seconds_watched = r.number(j, place, "all_seconds_watched");
    e.loop_entries_only = r.boolean(j, place, "loop_entries_only");
  }
  if (Reader::has(j, "seconds_since_published"))
    e.seconds_since_published = r.number(j, place, "seconds_since_published");
  if (Reader::has(j, "samples_recent")) {
    e.samples_recent = r.number(j, place, "samples_recent");
    e.samples_stayed = r.number(j, place, "samples_stayed");
    e.seconds_stayed = r.number(j, place, "seconds_stayed");
    e.seconds_run = r.number(j, place, "seconds_run");
    e.seconds_run_baseline = r.number(j, place, "seconds_run_baseline");
    for (const uint32_t loop : r.u32_list(j, place, "exit_loops")) e.exit_loops.push_back(LoopIndex(loop));
    for (const uint32_t loop : r.u32_list(j, place, "entry_loops")) e.entry_loops.push_back(LoopIndex(loop));
  }
  if (Reader::has(j, "moved_share")) e.moved_share = r.number(j, place, "moved_share");
  if (Reader::has(j, "samples_run_baseline"))
    e.samples_run_baseline = r.number(j, place, "samples_run_baseline");
  if (Reader::has(j, "compile_seconds")) e.compile_seconds = r.amount(j, place, "compile_seconds");
  if (Reader::has(j, "outcomes")) {
    e.outcomes = read_outcomes(r, j["outcomes"], place + ".outcomes");
    e.module_bytes = r.integer(j, place, "module_bytes", uint64_t{1} << 62);
  }
  if (Reader::has(j, "samples_left_behind")) {
    e.samples_left_behind = r.number(j, place, "samples_left_behind");
    e.seconds_left_behind = r.number(j, place, "seconds_left_behind");
  }
  r.list(j, place, "loads", [&](const json& element, const std::string& where) {
    LoadEvidence l;
    l.load = WasmOffset(r.u32(element, where, "load"));
    l.stall_samples = r.number(element, where, "stall_samples");
    l.stall_samples_optimized = r.number(element, where, "stall_samples_optimized");
    l.addresses = r.integer(element, where, "addresses", ~uint64_t{0});
    l.address_span_bytes = r.integer(element, where, "address_span_bytes", ~uint64_t{0});
    l.distinct_pages = r.integer(element, where, "distinct_pages", ~uint64_t{0});
    if (Reader::has(element, "in_loop")) l.in_loop = r.boolean(element, where, "in_loop");
    l.outcome = r.outcome(element, where, "outcome");
    if (Reader::has(element, "stall_samples_recent"))
      l.stall_samples_recent = r.number(element, where, "stall_samples_recent");
    if (Reader::has(element, "rejections")) {
      l.rejections = r.u32(element, where, "rejections");
      l.seconds_since_rejected = r.number(element, where, "seconds_since_rejected");
      l.share_when_rejected = r.number(element, where, "share_when_rejected");
    }
    if (Reader::has(element, "interleave")) l.interleave = r.outcome(element, where, "interleave");
    if (Reader::has(element, "jump_pointers")) l.jump = r.outcome(element, where, "jump_pointers");
    if (Reader::has(element, "latency")) l.latency = read_latency(r, element["latency"], where + ".latency");
    e.loads.push_back(l);
  });
  if (Reader::has(j, "branches")) {
    r.list(j, place, "branches", [&](const json& element, const std::string& where) {
      e.branches.push_back(read_branch(r, element, where));
    });
  }
  if (Reader::has(j, "calls")) {
    r.list(j, place, "calls", [&](const json& element, const std::string& where) {
      e.calls.push_back(read_call(r, element, where));
    });
  }
  if (Reader::has(j, "values")) {
    r.list(j, place, "values", [&](const json& element, const std::string& where) {
      e.values.push_back(read_values(r, element, where));
    });
  }
  r.list(j, place, "loops", [&](const json& element, const std::string& where) {
    LoopEvidence l;
    l.loop = LoopIndex(static_cast<uint32_t>(e.loops.size()));
    l.offset = WasmOffset(r.u32(element, where, "offset"));
    l.depth = r.u32(element, where, "depth");
    l.samples = r.number(element, where, "samples");
    double parent = r.number(element, where, "parent");
    // Loops are in byte order: a parent stands before its children. This keeps the chain finite.
    if (parent != -1 && !(parent >= 0 && parent < static_cast<double>(e.loops.size()))) {
      r.fail(where + ".parent", "does not name an earlier loop");
      parent = -1;
    }
    l.parent = static_cast<int32_t>(parent);
    e.loops.push_back(l);
  });
  return e;
}

json to_json(const std::vector<Episode::Prefetch>& prefetches) {
  json list = json::array();
  for (const Episode::Prefetch& p : prefetches) {
    list.push_back({{"load", p.load},
                    {"outcome", to_string(p.outcome)},
                    {"distance", p.distance},
                    {"measured_gain", p.measured_gain},
                    {"words", p.words},
                    {"runs_ago", p.runs_ago}});
    if (p.change != jit::ChangeKind::kPrefetch) list.back()["change"] = to_string(p.change);
  }
  return list;
}

std::vector<Episode::Prefetch> read_prefetches(Reader& r, const json& j, const std::string& place) {
  std::vector<Episode::Prefetch> prefetches;
  r.list(j, place, "prefetches", [&](const json& element, const std::string& where) {
    Episode::Prefetch p;
    p.load = r.u32(element, where, "load");
    p.outcome = r.outcome(element, where, "outcome");
    p.distance = r.u32(element, where, "distance");
    p.measured_gain = r.number(element, where, "measured_gain");
    p.words = r.text(element, where, "words");
    if (Reader::has(element, "change")) p.change = r.change(element, where, "change");
    // As it was said when there was one other change only.
    if (Reader::has(element, "interleaved") && r.boolean(element, where, "interleaved"))
      p.change = jit::ChangeKind::kInterleave;
    if (Reader::has(element, "runs_ago")) p.runs_ago = r.u32(element, where, "runs_ago");
    prefetches.push_back(std::move(p));
  });
  return prefetches;
}

json to_json(const Episode::Earlier& e) {
  return {{"runs", e.runs},
          {"seconds_baseline", e.seconds_baseline},
          {"seconds_optimized", e.seconds_optimized},
          {"compile_seconds", e.compile_seconds},
          {"osr_loops", e.osr_loops},
          {"prefetches", to_json(e.prefetches)}};
}

Episode::Earlier read_earlier(Reader& r, const json& j, const std::string& place) {
  Episode::Earlier e;
  e.runs = r.amount(j, place, "runs");
  e.seconds_baseline = r.amount(j, place, "seconds_baseline");
  e.seconds_optimized = r.amount(j, place, "seconds_optimized");
  e.compile_seconds = r.amount(j, place, "compile_seconds");
  e.osr_loops = r.u32_list(j, place, "osr_loops");
  e.prefetches = read_prefetches(r, j, place);
  return e;
}

json to_json(const ModuleEpisode& e) {
  return {{"id", e.id},
          {"seconds", e.seconds},
          {"reason", e.reason},
          {"alternatives", e.alternatives},
          {"estimated_gain", e.estimated_gain},
          {"state", e.state},
          {"outcome", e.outcome},
          {"measured_gain", e.measured_gain},
          {"runs_ago", e.runs_ago}};
}

void read_module_episode(Reader& r, const json& j, const std::string& place, ModuleEpisode& e) {
  e.id = r.integer(j, place, "id", ~uint64_t{0});
  e.seconds = r.number(j, place, "seconds");
  e.reason = r.text(j, place, "reason");
  e.alternatives = r.texts(j, place, "alternatives");
  e.estimated_gain = r.number(j, place, "estimated_gain");
  e.state = r.text(j, place, "state");
  e.outcome = r.text(j, place, "outcome");
  e.measured_gain = r.number(j, place, "measured_gain");
  e.runs_ago = r.u32(j, place, "runs_ago");
}

json to_json(const PageEpisode& e) {
  json regions = json::array();
  for (const PageEvidence::Region& region : e.evidence.regions)
    regions.push_back({region.index, region.addresses});
  json ranges = json::array();
  for (const PageEpisode::Range& range : e.ranges) ranges.push_back({range.begin, range.end});
  json places = json::array();
  for (const PageEpisode::Place& place : e.places)
    places.push_back({{"memory", place.memory}, {"begin", place.begin}, {"end", place.end}});
  json all = to_json(static_cast<const ModuleEpisode&>(e));
  if (e.evidence.fill) {
    const FillEvidence& f = *e.evidence.fill;
    all.update({{"evidence",
                 {{"fill",
                   {{"begin", f.begin},
                    {"end", f.end},
                    {"full", f.full},
                    {"part", f.part},
                    {"untouched", f.untouched},
                    {"available_bytes", f.available_bytes}}}}},
                {"ranges", ranges},
                {"places", places}});
    return all;
  }
  all.update({{"evidence",
               {{"samples", e.evidence.samples},
                {"seconds", e.evidence.seconds},
                {"stall_samples", e.evidence.stall_samples},
                {"hidden_share", e.evidence.hidden_share},
                {"addresses", e.evidence.addresses},
                {"distinct_pages", e.evidence.distinct_pages},
                {"move_seconds_per_byte", e.evidence.move_seconds_per_byte},
                {"regions", regions}}},
              {"ranges", ranges},
              {"places", places}});
  return all;
}

PageEpisode read_page_episode(Reader& r, const json& j, const std::string& place) {
  // 57 bits of address, the most there are: no sum or product of two of them overflows in a double or wraps.
  constexpr uint64_t kMostAddress = uint64_t{1} << 57;
  PageEpisode e;
  read_module_episode(r, j, place, e);
  if (const json* evidence = r.field(j, place, "evidence"); evidence != nullptr && r.has(*evidence, "fill")) {
    const json& fill = (*evidence)["fill"];
    const std::string where = place + ".evidence.fill";
    FillEvidence f;
    f.begin = r.integer(fill, where, "begin", kMostAddress);
    f.end = r.integer(fill, where, "end", kMostAddress);
    f.full = r.u32(fill, where, "full");
    f.part = r.u32(fill, where, "part");
    f.untouched = r.u32(fill, where, "untouched");
    f.available_bytes = r.integer(fill, where, "available_bytes", uint64_t{1} << 62);
    if (f.begin >= f.end && !r.failed()) r.fail(where, "is no range of addresses");
    e.evidence.fill = f;
  } else if (evidence != nullptr) {
    const std::string where = place + ".evidence";
    e.evidence.samples = r.amount(*evidence, where, "samples");
    e.evidence.seconds = r.amount(*evidence, where, "seconds");
    e.evidence.stall_samples = r.amount(*evidence, where, "stall_samples");
    e.evidence.addresses = r.integer(*evidence, where, "addresses", uint64_t{1} << 62);
    e.evidence.distinct_pages = r.integer(*evidence, where, "distinct_pages", uint64_t{1} << 62);
    if (r.has(*evidence, "hidden_share"))
      e.evidence.hidden_share = r.amount(*evidence, where, "hidden_share");
    if (r.has(*evidence, "move_seconds_per_byte"))
      e.evidence.move_seconds_per_byte = r.amount(*evidence, where, "move_seconds_per_byte");
    r.pairs(*evidence, where, "regions", [&](uint64_t index, uint64_t addresses, const std::string& at) {
      if (index > kMostAddress / kHugePageBytes ||
          (!e.evidence.regions.empty() && e.evidence.regions.back().index >= index))
        return r.fail(at, "is no region, or not behind the one in front of it");
      e.evidence.regions.push_back({index, addresses});
    });
  }
  r.pairs(j, place, "ranges", [&](uint64_t begin, uint64_t end, const std::string& at) {
    if (begin >= end || end > kMostAddress) return r.fail(at, "is no range of addresses");
    e.ranges.push_back({begin, end});
  });
  if (r.has(j, "places")) {
    r.list(j, place, "places", [&](const json& range, const std::string& at) {
      const PageEpisode::Place read{.memory = r.u32(range, at, "memory"),
                                    .begin = r.integer(range, at, "begin", kMostAddress),
                                    .end = r.integer(range, at, "end", kMostAddress)};
      if (read.begin >= read.end && !r.failed()) return r.fail(at, "is no range of a memory");
      e.places.push_back(read);
    });
  }
  return e;
}

json to_json(const LayoutEpisode& e) {
  json functions = json::array();
  for (const LayoutEvidence::Function& f : e.evidence.functions)
    functions.push_back({f.function.value, f.code_bytes, f.samples, f.tried});
  json all = to_json(static_cast<const ModuleEpisode&>(e));
  all.update({{"evidence",
               {{"samples", e.evidence.samples},
                {"seconds", e.evidence.seconds},
                {"seconds_settled", e.evidence.seconds_settled},
                {"layouts", e.evidence.layouts},
                {"functions", functions}}},
              {"moves", e.moves}});
  return all;
}

LayoutEpisode read_layout_episode(Reader& r, const json& j, const std::string& place) {
  LayoutEpisode e;
  read_module_episode(r, j, place, e);
  if (const json* evidence = r.field(j, place, "evidence")) {
    const std::string where = place + ".evidence";
    e.evidence.samples = r.amount(*evidence, where, "samples");
    e.evidence.seconds = r.amount(*evidence, where, "seconds");
    e.evidence.seconds_settled = r.amount(*evidence, where, "seconds_settled");
    e.evidence.layouts = r.u32(*evidence, where, "layouts");
    r.list(*evidence, where, "functions", [&](const json& element, const std::string& at) {
      const auto is_u32 = [](const json& value) {
        return value.is_number_unsigned() && value.get<uint64_t>() <= ~uint32_t{0};
      };
      if (!element.is_array() || element.size() != 4 || !is_u32(element[0]) || !is_u32(element[1]) ||
          !element[2].is_number() || !(element[2].get<double>() >= 0 && element[2].get<double>() <= 1e18) ||
          !element[3].is_boolean())
        return r.fail(at, "is not a function with its code's bytes, its samples, and whether it was tried");
      const FuncIndex function(element[0].get<uint32_t>());
      if (e.evidence.functions.size() == kMaxLayoutFunctions ||
          (!e.evidence.functions.empty() && e.evidence.functions.back().function >= function))
        return r.fail(at, "is one too many, or not behind the function in front of it");
      e.evidence.functions.push_back(
          {function, element[1].get<uint32_t>(), element[2].get<double>(), element[3].get<bool>()});
    });
  }
  e.moves = r.boolean(j, place, "moves");
  return e;
}

json to_json(const FunctionSamples& s) {
  json places = json::array();
  for (const FunctionSamples::Place& p : s.places) places.push_back({p.offset.value, p.samples, p.stalls});
  return {{"function", s.function.value},
          {"name", s.name},
          {"begin", s.begin.value},
          {"samples", s.samples},
          {"seconds_baseline", s.seconds_baseline},
          {"seconds_optimized", s.seconds_optimized},
          {"places", places}};
}

FunctionSamples read_samples(Reader& r, const json& j, const std::string& place) {
  FunctionSamples s;
  s.function = FuncIndex(r.u32(j, place, "function"));
  s.name = r.text(j, place, "name");
  s.begin = WasmOffset(r.u32(j, place, "begin"));
  s.samples = r.amount(j, place, "samples");
  s.seconds_baseline = r.amount(j, place, "seconds_baseline");
  s.seconds_optimized = r.amount(j, place, "seconds_optimized");
  r.list(j, place, "places", [&](const json& element, const std::string& where) {
    const auto amount = [&](size_t i) {
      const double number = element[i].get<double>();
      return std::isfinite(number) && number >= 0 && number <= 1e18 ? number : -1;
    };
    if (!element.is_array() || element.size() != 3 || !element[0].is_number_unsigned() ||
        element[0].get<uint64_t>() > ~uint32_t{0} || !element[1].is_number() || !element[2].is_number() ||
        amount(1) < 0 || amount(2) < 0)
      return r.fail(where, "is not an offset with its samples and stalls");
    const WasmOffset offset(element[0].get<uint32_t>());
    if (!s.places.empty() && s.places.back().offset >= offset)
      return r.fail(where, "is not behind the place in front of it");
    s.places.push_back({offset, amount(1), amount(2)});
  });
  return s;
}

json to_json(const Episode& e) {
  json j = {{"id", e.id},
            {"seconds", e.seconds},
            {"evidence", to_json(e.evidence)},
            {"action", e.action},
            {"osr_loops", e.osr_loops},
            {"prefetch_loads", e.prefetch_loads},
            {"interleave_loads", e.interleave_loads},
            {"jump_loads", e.jump_loads},
            {"inlined_calls", e.inlined_calls},
            {"weighed_branches", e.weighed_branches},
            {"select_branches", e.select_branches},
            {"branch_selects", e.branch_selects},
            {"value_sites", e.value_sites},
            {"split_cold", e.split_cold},
            {"reason", e.reason},
            {"alternatives", e.alternatives},
            {"state", e.state},
            {"compile_seconds", e.compile_seconds},
            {"prefetches", to_json(e.prefetches)},
            {"origin", to_string(e.origin)},
            {"runs_ago", e.runs_ago}};
  if (e.earlier) j["earlier"] = to_json(*e.earlier);
  return j;
}

Episode read_episode(Reader& r, const json& j, const std::string& place) {
  Episode e;
  e.id = r.integer(j, place, "id", ~uint64_t{0});
  e.seconds = r.number(j, place, "seconds");
  if (const json* evidence = r.field(j, place, "evidence"))
    e.evidence = read_evidence(r, *evidence, place + ".evidence");
  e.action = r.text(j, place, "action");
  e.osr_loops = r.u32_list(j, place, "osr_loops");
  e.prefetch_loads = r.u32_list(j, place, "prefetch_loads");
  if (Reader::has(j, "interleave_loads")) e.interleave_loads = r.u32_list(j, place, "interleave_loads");
  if (Reader::has(j, "jump_loads")) e.jump_loads = r.u32_list(j, place, "jump_loads");
  if (Reader::has(j, "inlined_calls")) e.inlined_calls = r.u32_list(j, place, "inlined_calls");
  if (Reader::has(j, "weighed_branches")) {
    e.weighed_branches = r.u32_list(j, place, "weighed_branches");
    e.select_branches = r.u32_list(j, place, "select_branches");
    e.branch_selects = r.u32_list(j, place, "branch_selects");
  }
  if (Reader::has(j, "value_sites")) e.value_sites = r.u32_list(j, place, "value_sites");
  if (Reader::has(j, "split_cold")) e.split_cold = r.boolean(j, place, "split_cold");
  e.reason = r.text(j, place, "reason");
  e.alternatives = r.texts(j, place, "alternatives");
  e.state = r.text(j, place, "state");
  e.compile_seconds = r.amount(j, place, "compile_seconds");
  e.prefetches = read_prefetches(r, j, place);
  if (Reader::has(j, "origin")) {
    e.origin = r.origin(j, place, "origin");
    e.runs_ago = r.u32(j, place, "runs_ago");
  }
  if (Reader::has(j, "earlier")) e.earlier = read_earlier(r, j["earlier"], place + ".earlier");
  if (e.earlier.has_value() != (e.origin == Origin::kProfile))
    r.fail(place + ".earlier", "belongs to a decision that was taken over from earlier runs, and only there");
  return e;
}

}  // namespace

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::kDecided:
      return "decided";
    case Origin::kProfile:
      return "earlier runs";
    case Origin::kCodeCache:
      return "code cache";
  }
  return "unknown";
}

const ModuleProfile* ProfileFile::find(const std::string& hash_hex) const {
  for (const ModuleProfile& module : modules) {
    if (module.hash_hex == hash_hex) return &module;
  }
  return nullptr;
}

std::string format_profile(const ProfileFile& file, bool compact) {
  json modules = json::array();
  for (const ModuleProfile& m : file.modules) {
    json episodes = json::array();
    for (const Episode& e : m.episodes) episodes.push_back(to_json(e));
    json functions = json::array();
    for (const FunctionEvidence& e : m.functions) functions.push_back(to_json(e));
    json page_episodes = json::array();
    for (const PageEpisode& e : m.page_episodes) page_episodes.push_back(to_json(e));
    json layout_episodes = json::array();
    for (const LayoutEpisode& e : m.layout_episodes) layout_episodes.push_back(to_json(e));
    json samples = json::array();
    for (const FunctionSamples& s : m.samples) samples.push_back(to_json(s));
    modules.push_back({{"hash", m.hash_hex},
                       {"name", m.name},
                       {"episodes", episodes},
                       {"functions", functions},
                       {"options", m.options},
                       {"runs_seen", m.runs_seen},
                       {"runs", m.runs},
                       {"page_episodes", page_episodes},
                       {"layout_episodes", layout_episodes},
                       {"samples", samples}});
  }
  json root = {
      {"format", kFormatName}, {"version", kFormatVersion}, {"policy", file.policy}, {"modules", modules}};
  // Names come from modules and may be any bytes: what is not UTF-8 is replaced, never an exception.
  return root.dump(compact ? -1 : 1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<ProfileFile> read_profile(const std::string& text) {
  auto bad = [&](const std::string& why) { return make_error(ErrorKind::kUsage, why); };
  // Nesting is bounded before parsing: the parser and the tree's destructor are recursive in it.
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 32) return bad("nested too deeply");
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return bad("the text is not JSON (truncated or damaged?)");
  Reader r;
  if (r.text(root, "profile", "format") != kFormatName) return bad("'format' is not 'hindsight-profile'");
  double version = r.number(root, "profile", "version");
  if (version != kFormatVersion) return bad(fmt::format("version {} is not {}", version, kFormatVersion));
  ProfileFile file;
  if (const json* policy = r.field(root, "profile", "policy")) {
    if (!policy->is_object()) return bad("policy: is not an object");
    for (const auto& [key, value] : policy->items())
      file.policy[key] = r.number(*policy, "policy", key.c_str());
  }
  r.list(root, "profile", "modules", [&](const json& element, const std::string& place) {
    ModuleProfile module;
    module.hash_hex = r.text(element, place, "hash");
    module.name = r.text(element, place, "name");
    r.list(element, place, "episodes", [&](const json& episode, const std::string& where) {
      module.episodes.push_back(read_episode(r, episode, where));
    });
    if (Reader::has(element, "functions")) {
      r.list(element, place, "functions", [&](const json& evidence, const std::string& where) {
        module.functions.push_back(read_evidence(r, evidence, where));
      });
    }
    if (Reader::has(element, "runs")) {
      module.options = r.text(element, place, "options");
      module.runs_seen = r.integer(element, place, "runs_seen", uint64_t{1} << 62);
      module.runs = r.amount(element, place, "runs");
      if (module.runs < 1e-3) r.fail(place + ".runs", "is less than any run leaves");
      r.list(element, place, "page_episodes", [&](const json& episode, const std::string& where) {
        module.page_episodes.push_back(read_page_episode(r, episode, where));
      });
      if (Reader::has(element, "layout_episodes")) {
        r.list(element, place, "layout_episodes", [&](const json& episode, const std::string& where) {
          module.layout_episodes.push_back(read_layout_episode(r, episode, where));
        });
      }
      r.list(element, place, "samples", [&](const json& samples, const std::string& where) {
        module.samples.push_back(read_samples(r, samples, where));
      });
    }
    file.modules.push_back(std::move(module));
  });
  if (r.failed()) return bad(r.defect());
  return file;
}

Result<ProfileFile> parse_profile(const std::string& text, const std::string& name) {
  auto file = read_profile(text);
  if (!file) {
    return make_error(ErrorKind::kUsage,
                      "not a usable profile: " + file.error().message + "; delete it or name another", name);
  }
  return file;
}

Result<ProfileFile> load_profile(const std::string& path) {
  auto bytes = read_file(path, kMaxProfileFileBytes);
  if (!bytes) return make_error(ErrorKind::kUsage, "the profile " + bytes.error().message, path);
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return parse_profile(std::string(behind_seal(text)), path);
}

Status save_profile(const ProfileFile& file, const std::string& path) {
  const std::string text = format_profile(file);
  const std::string_view parts[] = {text};
  if (const auto replaced = replace_file(AT_FDCWD, path, {.parts = parts, .mode = 0644, .synced = true});
      !replaced) {
    return make_error(ErrorKind::kResource,
                      fmt::format("the profile cannot be {}: {}", replaced.error().step,
                                  std::strerror(replaced.error().error)),
                      path);
  }
  return {};
}

}  // namespace hindsight::feedback
