// Evidence in, plans out: plans/*.txt. Each line of an input adds to the evidence of one function or to the policy's
// parameters; Evidence below says which lines there are. Recorded evidence is in replays/.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "feedback/policy/policy.h"
#include "tests/feedback/policy/flat_function.h"
#include "tests/feedback/policy/plan_text.h"
#include "tests/text_cases.h"

namespace hindsight::feedback {
namespace {

namespace fs = std::filesystem;

// One function, by words.
class Evidence {
 public:
  // False: the line is not one of these.
  bool add(const std::string& line) {
    in_ = std::istringstream(line);
    const std::string what = word();
    const auto found = lines_.find(what);
    if (found == lines_.end()) return false;
    found->second();
    return !in_.fail();
  }
  FunctionPlan plan() const { return decide(e_, from_parameters(config_)); }

 private:
  std::string word() {
    std::string text;
    in_ >> text;
    return text;
  }
  double number() {
    double value = 0;
    in_ >> value;
    return value;
  }
  uint64_t count() { return static_cast<uint64_t>(number()); }
  WasmOffset place() { return WasmOffset(static_cast<uint32_t>(count())); }
  // A word that is only to be read.
  void skip() { word(); }

  // hot MS: ran so long in baseline code, sampled at 4 kHz, with two nested loops.
  void hot() {
    const double ms = number();
    e_.code_bytes = 200;
    e_.samples_baseline = e_.total_samples = ms * 4;
    e_.seconds_baseline = ms * 1e-3;
    e_.loops = {{LoopIndex(0), WasmOffset(100), 0, e_.samples_baseline, -1},
                {LoopIndex(1), WasmOffset(120), 1, 0.9 * e_.samples_baseline, 0}};
  }
  // loop INDEX at BEGIN to END [in PARENT] ms MS [optimized MS] [published MS] [WORD...]: another loop of the function, in the order of
  // their indices. It ran so long in baseline code in no inner loop, and in its own code, sampled at 4 kHz. WORDS: bytes N,
  // ended N, code (there is), early (it came), under way, set aside, compiled N, fruitless N, no (can be no nest).
  void loop() {
    if (count() == 0) e_.loops.clear();
    LoopEvidence& l = e_.loops.emplace_back();
    l.loop = LoopIndex(static_cast<uint32_t>(e_.loops.size() - 1));
    skip();
    l.offset = place();
    skip();
    l.end = place();
    l.code_bytes = l.end.value - l.offset.value;
    for (std::string what; in_ >> what;) {
      if (what == "in") {
        l.parent = static_cast<int32_t>(count());
        for (int32_t at = l.parent; at >= 0; at = e_.loops[at].parent) e_.loops[at].inner_loops += 1;
        l.depth = e_.loops[l.parent].depth + 1;
      } else if (what == "ms") {
        l.seconds_baseline = l.seconds_run_baseline = number() * 1e-3;
        l.samples_baseline = l.samples = 4e3 * l.seconds_baseline;
      } else if (what == "optimized") {
        l.seconds_optimized = l.seconds_run_optimized = number() * 1e-3;
        l.samples_optimized = 4e3 * l.seconds_optimized;
      } else if (what == "published") {
        l.seconds_in_code = number() * 1e-3;
      } else if (what == "bytes") {
        l.code_bytes = static_cast<uint32_t>(count());
      } else if (what == "ended") {
        l.trip_records = count();
      } else if (what == "code") {
        l.has_nest = true;
      } else if (what == "early") {
        l.has_nest = l.early = true;
      } else if (what == "under") {
        skip();
        l.has_nest = l.under_way = true;
      } else if (what == "set") {
        skip();
        l.set_aside = true;
      } else if (what == "compiled") {
        l.compiles = static_cast<uint32_t>(count());
      } else if (what == "fruitless") {
        l.fruitless = static_cast<uint32_t>(count());
      } else if (what == "no") {
        l.no_nest = "a handler is around it";
      } else {
        in_.setstate(std::ios::failbit);
        return;
      }
    }
    in_.clear();
    e_.samples_baseline = e_.seconds_baseline = 0;
    for (const LoopEvidence& loop : e_.loops) {
      e_.samples_baseline += loop.samples_baseline;
      e_.seconds_baseline += loop.seconds_baseline;
    }
    e_.total_samples = e_.samples_baseline;
  }
  // main BYTES: a function of so many bytes that is not called again, with the loops that follow
  void main() {
    e_.code_bytes = static_cast<uint32_t>(count());
    e_.entered = Entered::kNotYet;
    e_.seconds_watched = e_.all_seconds_watched = 1;
  }
  // flat SAMPLES: so many at 250 Hz in the whole run, one of 700 of late.
  void flat() { e_ = flat_function(number()); }
  // optimized SAMPLES SECONDS: as many in the code that was published since.
  void optimized() {
    e_.optimized = true;
    e_.optimize_count = 1;
    e_.samples_optimized = number();
    e_.seconds_optimized = e_.seconds_since_published = number();
  }
  // entered again, entered not
  void entered() { e_.entered = word() == "again" ? Entered::kAgain : Entered::kNotYet; }
  // load AT stalls SAMPLES [optimized SAMPLES] [recent SAMPLES], over 64 MiB
  void load() {
    LoadEvidence& l = e_.loads.emplace_back();
    l.load = place();
    skip();
    l.stall_samples = number();
    l.addresses = l.distinct_pages = static_cast<uint64_t>(l.stall_samples);
    l.address_span_bytes = 64 << 20;
    for (std::string which; in_ >> which;)
      (which == "optimized" ? l.stall_samples_optimized : l.stall_samples_recent) = number();
    in_.clear();
  }
  // branch AT outcomes N taken SHARE mispredicted SHARE: with 40 records
  void branch() {
    BranchEvidence& b = e_.branches.emplace_back();
    b.branch = place();
    skip();
    b.outcomes = b.judged = count();
    skip();
    const double taken = number();
    skip();
    const double mispredicted = number();
    b.sampled = 40;
    b.sampled_taken = static_cast<uint64_t>(40 * taken);
    b.taken = static_cast<uint64_t>(static_cast<double>(b.outcomes) * taken);
    b.mispredicted = static_cast<uint64_t>(static_cast<double>(b.outcomes) * mispredicted);
  }
  // select AT records N first SHARE
  void select() {
    BranchEvidence& b = e_.branches.emplace_back();
    b.chooses = true;
    b.branch = place();
    skip();
    b.sampled = count();
    skip();
    b.sampled_taken = static_cast<uint64_t>(static_cast<double>(b.sampled) * number());
  }
  void targets(std::vector<CallEvidence::Target>& into) {
    for (std::string pair; in_ >> pair;) {
      const size_t colon = pair.find(':');
      into.push_back(
          {static_cast<uint32_t>(std::stoul(pair.substr(0, colon))), std::stoul(pair.substr(colon + 1))});
    }
    in_.clear();
  }
  // call AT records N to ELEMENT:RECORDS...
  void call() {
    CallEvidence& c = e_.calls.emplace_back();
    c.call = place();
    skip();
    c.records = count();
    skip();
    targets(c.targets);
  }
  // unforeseen N to ELEMENT:RECORDS...: of the last call
  void unforeseen() {
    CallEvidence& c = e_.calls.back();
    c.unforeseen_records = count();
    skip();
    targets(c.unforeseen);
  }
  // value AT SITE is VALUE in RECORDS of RECORDS; SITE: divisor, wide-divisor, byte-count, trip-count
  void value() {
    ValueEvidence& v = e_.values.emplace_back();
    v.at = place();
    const std::string site = word();
    v.site = site == "divisor"        ? ValueSite::kDivisor
             : site == "wide-divisor" ? ValueSite::kWideDivisor
             : site == "byte-count"   ? ValueSite::kByteCount
                                      : ValueSite::kTripCount;
    skip();
    const uint64_t usual = count();
    skip();
    const uint64_t records = count();
    skip();
    v.records = count();
    v.values = {{usual, records}};
    if (records < v.records) v.values.push_back({usual + 1, v.records - records});
  }
  // lost KIND AT: was asked for there, and is not in the code
  void lost() {
    const std::string name = word();
    const auto kind = std::ranges::find(jit::kChanges, name, &jit::ChangeTraits::name);
    if (kind == jit::kChanges.end()) return in_.setstate(std::ios::failbit);
    e_.changes.put({kind->kind, place()}, {.state = ChangeState::kRolledBack});
  }
  // set MEMBER NUMBER
  void set() {
    const std::map<std::string, double FunctionEvidence::*> members = {
        {"samples_recent", &FunctionEvidence::samples_recent},
        {"samples_left_behind", &FunctionEvidence::samples_left_behind},
        {"seconds_left_behind", &FunctionEvidence::seconds_left_behind},
        {"samples_stayed", &FunctionEvidence::samples_stayed},
        {"seconds_stayed", &FunctionEvidence::seconds_stayed},
        {"seconds_run", &FunctionEvidence::seconds_run},
        {"seconds_baseline", &FunctionEvidence::seconds_baseline},
        {"seconds_watched", &FunctionEvidence::seconds_watched},
        {"all_seconds_watched", &FunctionEvidence::all_seconds_watched},
        {"moved_share", &FunctionEvidence::moved_share},
        {"compile_scale", &FunctionEvidence::compile_scale},
    };
    const std::string name = word();
    if (name == "code_bytes") {
      e_.code_bytes = static_cast<uint32_t>(count());
    } else if (name == "optimize_count") {
      e_.optimize_count = static_cast<uint32_t>(count());
    } else if (name == "failed_compiles") {
      e_.failed_compiles = static_cast<uint32_t>(count());
    } else if (name == "loop_entries_only") {
      e_.loop_entries_only = count() != 0;
    } else if (const auto member = members.find(name); member != members.end()) {
      e_.*member->second = number();
    } else {
      in_.setstate(std::ios::failbit);
    }
  }
  // with PARAMETER NUMBER; decisions are 1 or 0
  void with() {
    const std::string name = word();
    if (!config_.contains(name)) in_.setstate(std::ios::failbit);
    config_[name] = number();
  }

  const std::map<std::string, std::function<void()>> lines_ = {
      {"hot", [this] { hot(); }},         {"flat", [this] { flat(); }},
      {"load", [this] { load(); }},       {"optimized", [this] { optimized(); }},
      {"branch", [this] { branch(); }},   {"select", [this] { select(); }},
      {"call", [this] { call(); }},       {"unforeseen", [this] { unforeseen(); }},
      {"value", [this] { value(); }},     {"set", [this] { set(); }},
      {"entered", [this] { entered(); }}, {"with", [this] { with(); }},
      {"main", [this] { main(); }},       {"loop", [this] { loop(); }},
      {"lost", [this] { lost(); }},
  };
  FunctionEvidence e_;
  std::map<std::string, double> config_ = to_parameters(PolicyConfig());
  std::istringstream in_;
};

std::string plan_for(const std::string& input) {
  Evidence evidence;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);)
    if (!evidence.add(line)) return "no such line: " + line;
  const FunctionPlan plan = evidence.plan();
  std::string text = text_of(plan);
  for (const Candidate& candidate : plan.candidates)
    if (!candidate.reason.empty())
      text += fmt::format("    {}@{:x} because {}\n", to_string(candidate.kind()), candidate.at().value,
                          candidate.reason);
  return text;
}

class Plans : public ::testing::TestWithParam<fs::path> {};

TEST_P(Plans, FollowFromTheEvidence) {
  testing::expect_outcomes(GetParam(), plan_for);
}

INSTANTIATE_TEST_SUITE_P(Files, Plans, ::testing::ValuesIn(testing::files_of(HINDSIGHT_PLANS, ".txt")),
                         testing::test_name_of);

}  // namespace
}  // namespace hindsight::feedback
