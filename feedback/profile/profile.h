// Profile: the decaying aggregate of what the LWP records of all threads said about one module. Filled by the
// monitor thread only; not thread-safe by itself. Counts are doubles because they decay.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "feedback/profile/calls_in_loops.h"
#include "feedback/profile/evidence.h"
#include "feedback/profile/function_loops.h"
#include "feedback/profile/late_time.h"
#include "feedback/profile/page_trial.h"
#include "feedback/profile/sample_shift.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

struct LoadCounts {
  double stall_baseline = 0;
  double stall_optimized = 0;
  double stall_recent = 0;               // of the latter, fading fast
  double run_seconds_when_rejected = 0;  // see LoadEvidence
  double share_when_rejected = 0;
  uint64_t span_when_rejected = 0;
  uint64_t addresses = 0;
  uint64_t lowest = ~uint64_t{0};
  uint64_t highest = 0;
  uint64_t span() const { return addresses ? highest - lowest : 0; }
  std::set<uint64_t> pages;  // bounded by kMaxPagesSeen
  LoadLatency latency;
  // Of a store: its last address, and how many lay above the one before.
  bool is_store = false;
  uint64_t last = 0;
  uint64_t rising = 0;
};

// Counts of consecutive executions, seen in bursts; see BranchEvidence.
struct BranchOutcomeCounts {
  uint64_t outcomes = 0;
  uint64_t taken = 0;
  uint64_t judged = 0;
  uint64_t mispredicted = 0;
};

struct BranchCounts {
  uint64_t taken = 0;
  uint64_t total = 0;  // records, not executions; none of a select, whose records are values
  BranchOutcomeCounts bursts;
  bool seen() const { return total + bursts.outcomes != 0; }
};

// The values that one place was seen to have: the most frequent ones, by Misra and Gries (1982). With k candidates,
// every value with more than 1/(k+1) of the records is among them. Its count is at most total/(k+1) too low.
struct ValueCounts {
  static constexpr size_t kCandidates = 8;
  struct Candidate {
    uint64_t value = 0;
    uint64_t count = 0;
  };
  std::vector<Candidate> candidates;  // at most kCandidates, in no order
  uint64_t total = 0;                 // records, not executions
  void add(uint64_t value);
  // What `later` has, on top of half of what was here.
  void fade_into(const ValueCounts& later);
};

// What one place of a function, a wasm offset, was seen to take since the module was loaded. Does not decay:
// it is for what is saved and exported, and no decision looks at it.
struct PlaceCounts {
  uint64_t samples = 0;
  uint64_t stalls = 0;  // of loads: samples that stood after it
};

// One loop in baseline code: samples in it and in no loop inside it.
struct LoopCounts {
  double samples_baseline = 0;
  double seconds_baseline = 0;
  double run_samples_baseline = 0;  // these two do not decay
  double run_seconds_baseline = 0;
};

// One loop as a nest (jit/code/unit.h).
struct NestCounts {
  uint64_t version = 0;               // VersionId of its published code; 0: none
  bool under_way = false;             // asked for, not yet published or given up
  bool only_for_callees = false;      // what is under way is only for what the loop calls
  bool early = false;                 // its code was asked for before it was known what to try in it
  uint32_t compiles = 0;              // asked for
  uint32_t fruitless = 0;             // of these: brought nothing new
  double compile_seconds = 0;         // of the last one, in an earlier run if there was none in this
  double seconds_when_published = 0;  // what seconds_optimized was then
  double samples_optimized = 0;       // in the code that was published at the time
  double seconds_optimized = 0;
  double run_seconds_optimized = 0;       // does not decay
  double run_seconds_when_published = 0;  // what that was
  SampleShift shift = {};                 // of samples in the published code
};

struct FunctionCounts {
  double samples_baseline = 0;
  double samples_optimized = 0;
  double samples_recent = 0;  // of the latter, fading fast
  double seconds_baseline = 0;
  double seconds_optimized = 0;
  double seconds_in_nests = 0;  // of the latter, in code of nests, replaced ones included
  uint64_t instruction_records = 0;
  bool optimized = false;  // nests do not make it so
  bool early = false;      // its code was asked for before it was known what to try in it
  bool observed = false;   // was taken back to baseline code, and nothing was published since
  uint32_t optimize_count = 0;
  uint32_t failed_compiles = 0;  // of all of it, which has no such code
  Entered entered = Entered::kUnknown;
  double seconds_when_watched = 0;      // seconds_baseline when watching began
  double all_seconds_when_watched = 0;  // Profile::seconds_seen() then
  bool loop_entries_only = false;       // the optimized version cannot be called
  // What samples_baseline and seconds_baseline were when the optimized version was published; none before.
  std::optional<double> samples_when_published, seconds_when_published;
  double optimized_seconds_when_published = 0;  // what seconds_optimized without nests was then
  // In optimized versions before that one, since then.
  double samples_stayed = 0, seconds_stayed = 0;
  uint64_t published_version = 0;  // VersionId; those before it have lower ones
  // Higher ones that lost to it in a trial: who is in their code stayed there. At most one for each change of versions.
  std::vector<uint64_t> lost_versions = {};
  double run_seconds_when_published = 0;                     // what run_seconds() was
  ChangeLedger changes;                                      // what became of them
  std::vector<LoopIndex> exit_loops = {}, entry_loops = {};  // of it
  SampleShift shift = {};                                    // of samples in it
  // The compile of all of it that was asked for gave no code. `has_code`: what was published before runs on. `times`: as how many failures it
  // counts.
  void note_failed_compile(bool has_code, uint32_t times);
  // An optimized version takes over.
  void publish(VersionId version = {}, std::vector<LoopIndex> exits = {},
               std::vector<LoopIndex> entries = {});
  // The published one goes on, and what was on trial in its place, seen with it, does not.
  void publish_again(VersionId lost);
  // Code of one loop alone takes over, beside whatever else is published.
  void publish_nest(LoopIndex root, VersionId version);
  // Code was made in which the calls of [begin, end) go where they were seen to go: what is seen from now on is later.
  void foresee_calls(WasmOffset begin, WasmOffset end);
  // The loop is in code of a nest by now: what it ran in baseline code of late says nothing of what is left there.
  void settle_baseline(LoopIndex loop);
  // A compile was asked for, and the version before it stays. It is looked at anew, as one that has just been published,
  // but where its first samples stood is still known.
  void stay();
  // A change goes on trial, or this became of it. Of a load with a change there is an entry in `loads`.
  void begin(jit::Site site);
  void settle(jit::Site site, ChangeState state);
  void settle(const ChangeLedger& known);
  // Baseline code takes over again, to be seen anew: what was seen before says nothing any more, nor what became of
  // changes. What counts the whole run stays, and how often it was compiled.
  void see_anew();
  double run_seconds() const { return run_seconds_baseline + run_seconds_optimized; }
  // In the optimized code of the function, or of one of its nests.
  double run_seconds_in_code(std::optional<LoopIndex> nest) const {
    if (!nest) return run_seconds_optimized;
    const auto found = nests.find(nest->value);
    return found == nests.end() ? 0 : found->second.run_seconds_optimized;
  }
  std::map<uint32_t, LoopCounts> loops;       // by LoopIndex
  std::map<uint32_t, NestCounts> nests;       // by LoopIndex of the root
  std::map<uint32_t, double> samples_at;      // wasm offset -> clock samples (both tiers)
  std::map<uint32_t, LoadCounts> loads;       // wasm offset of the load
  std::map<uint32_t, BranchCounts> branches;  // wasm offset
  std::map<uint32_t, ValueCounts> values;     // wasm offset
  // Calls of the published optimized code that went to none of the targets inlined there. Wasm offset.
  std::map<uint32_t, ValueCounts> unforeseen;
  // Over the whole run: nothing of it decays.
  double run_seconds_baseline = 0;
  double run_seconds_optimized = 0;
  double run_samples_baseline = 0;
  double run_samples_optimized = 0;
  double compile_seconds = 0;              // of an earlier run
  std::map<uint32_t, PlaceCounts> places;  // wasm offset

  double samples() const { return samples_baseline + samples_optimized; }
};

// Stalled addresses of all functions, by 2 MiB of address space.
struct PageCounts {
  static constexpr size_t kMaxRegions = 65'536;  // 128 GiB
  struct Region {
    uint64_t addresses = 0;
    // Of all functions: samples before its first address, and CPU time with its first and its last one.
    uint64_t samples_before = 0;
    double first_seconds = 0, last_seconds = 0;
  };
  std::map<uint64_t, Region> regions;  // address / kHugePageBytes; not on huge pages
  std::set<uint64_t> huge;             // regions that were moved, or cannot be
  std::set<uint64_t> pages;            // 4 KiB, of `regions`; bounded by kMaxPagesSeen
  uint64_t addresses = 0;              // in `regions`
  // These do not decay: what was stalled once stays spread as it was, when prefetches hide it from the samples too.
  uint64_t stall_samples = 0;      // with an address, wherever
  std::optional<PageTrial> trial;  // of regions that are moving, all of them settled
  // `samples`, `seconds`: of all functions, with this one.
  void add(uint64_t address, uint64_t samples, double seconds);
  // The regions from begin up to end are settled: their addresses do not count any more.
  void settle(uint64_t begin, uint64_t end);
  // They are as they were before, and count again from here on.
  void reopen(uint64_t begin, uint64_t end);
};

class Profile {
 public:
  // `hot`: the rule by which late time is counted.
  explicit Profile(std::shared_ptr<const wasm::Module> module, HotRule hot = {})
      : module_(std::move(module)), late_(hot) {}

  // One clock sample in `function`'s code at wasm offset `at` (kNoWasmOffset value allowed), worth `seconds`
  // of CPU time. `version`: of optimized code, which; 0: not known. `nest`: the loop that this code is of, if of one alone.
  void add_sample(FuncIndex function, WasmOffset at, bool optimized_code, double seconds,
                  VersionId version = {}, std::optional<LoopIndex> nest = {});
  // The same sample stood right after a load. `address`: linear-memory address, if known. `load` may be the instruction
  // that consumes the value: code generators fold loads into their consumers, whose offset the code then has. The stall
  // is charged to the nearest load at or in front of it in the same body. If there is none, or if it is a loop's own offset,
  // which the code of changes has, it is not counted and the result is false. Addresses of a load that comes back to a few pages are no evidence about pages.
  bool add_stall(FuncIndex function, WasmOffset load, bool optimized_code, const uint64_t* address);
  // The same of a store, which is charged itself. False if none stands there.
  bool add_store_stall(FuncIndex function, WasmOffset store, bool optimized_code, uint64_t address);
  // An address that the load was seen to miss at, by a unit that counts misses and not time. Only of loads
  // that stalled; false for others.
  bool add_address(FuncIndex function, WasmOffset load, uint64_t address);
  void add_branch(FuncIndex function, WasmOffset at, bool taken);
  // What a burst of consecutive branches showed about one of them.
  void add_outcomes(FuncIndex function, WasmOffset at, const BranchOutcomeCounts& counts);
  // What timing single executions of a load showed, replacing what was known. Only of loads that stalled.
  void set_latency(FuncIndex function, WasmOffset load, const LoadLatency& latency);
  // The same for reading, by any instruction that add_stall() would charge to the load; null: not timed.
  const LoadLatency* latency(FuncIndex function, WasmOffset at);
  // A value that the instruction at `at` had: a table index, a divisor, a byte count, whether a select chose
  // its first operand.
  void add_value(FuncIndex function, WasmOffset at, uint64_t value, bool optimized_code);
  void add_instructions(FuncIndex function);

  // What the places in the loop, or the one that it is in, wait for from now on; without a loop, all of the function's. The
  // late time from here on is counted under this state. Where nothing was said it goes by what is published or under way.
  void note_place(FuncIndex function, std::optional<LoopIndex> loop, PlaceState state, std::string why = {});
  LateSummary late() const { return late_.summary(*module_); }

  // Everything fades: halves the decaying counts. Called by the monitor about once a half-life.
  void decay(double factor);

  PageCounts& pages() { return pages_; }
  PageEvidence page_evidence() const;

  FunctionCounts& counts(FuncIndex function) { return functions_[function.value]; }
  const std::map<uint32_t, FunctionCounts>& functions() const { return functions_; }
  double total_samples() const { return total_samples_; }
  double seconds_seen() const { return seconds_seen_; }  // CPU time of all functions; does not decay
  const wasm::Module& module() const { return *module_; }
  // These do not decay. Loops that were seen in baseline code for the second time, and samples there in loops that are no
  // nest with code.
  uint64_t new_places() const { return new_places_; }
  uint64_t samples_without_code() const { return samples_without_code_; }

  FunctionEvidence evidence(FuncIndex function) const;
  // Whether at least so many clock samples of late stand after loads of one function that loops of this one call, as in
  // FunctionEvidence::callees.
  bool calls_what_stalls(FuncIndex function, double samples) const;
  // What places of the function took, the dearest kMaxPlaces of them, in order of their offsets.
  FunctionSamples run_samples(FuncIndex function) const;
  // What an earlier run knew of the function, to go on from: where its branches and calls went, what became of
  // its prefetches. No samples: whether it is hot shows again. Once a function, before anything is seen of it.
  void seed(const FunctionEvidence& earlier);

 private:
  std::optional<WasmOffset> load_at_or_before(WasmOffset at);
  // What the module says of a loop as a nest.
  struct NestFacts {
    uint32_t bytes = 0;
    std::string_view why_none;
  };
  // What it says of a function's loops; of each as a nest once that is asked for.
  struct KnownLoops {
    explicit KnownLoops(const wasm::FunctionBody& body) : loops(body) {}
    FunctionLoops loops;
    std::map<uint32_t, NestFacts> nests;
    uint64_t bytes_read = 0;            // for these
    std::optional<CallsInLoops> calls;  // once asked for
  };
  KnownLoops& loops_of(FuncIndex function) const;
  const NestFacts& nest_facts(FuncIndex function, LoopIndex loop) const;
  PlaceState state_of(FuncIndex function, const FunctionCounts& counts, std::optional<LoopIndex> loop) const;
  void add_late(FuncIndex function, const FunctionCounts& counts, std::optional<LoopIndex> loop,
                double seconds);
  LoopEvidence loop_evidence(FuncIndex function, const FunctionCounts& counts, LoopIndex loop) const;
  const CallsInLoops& calls_in_loops(FuncIndex function) const;
  // A load that stalls in a callee, which nothing in there can help.
  bool is_for_callers(FuncIndex callee, uint32_t load, const FunctionCounts& counts) const;
  double stalls_for_callers(FuncIndex callee) const;
  // Of a load of its loops, while nobody knows whether anything helps there.
  bool is_undecided(FuncIndex callee, uint32_t load, const FunctionCounts& counts) const;
  double stalls_undecided(FuncIndex callee) const;
  using LoadQuestion = bool (Profile::*)(FuncIndex, uint32_t, const FunctionCounts&) const;
  double stalls_of(FuncIndex callee, LoadQuestion is_meant) const;
  bool is_in_body(FuncIndex function, WasmOffset at) const;
  void add_callees(FuncIndex function, const FunctionCounts& counts, FunctionEvidence& evidence) const;
  double hidden_share(double seconds) const;  // of PageEvidence

  std::shared_ptr<const wasm::Module> module_;
  std::map<uint32_t, FunctionCounts> functions_;
  mutable std::map<uint32_t, KnownLoops> loops_;  // of functions that were seen; filled when asked for
  std::map<uint32_t, std::vector<uint32_t>> load_offsets_;  // of bodies in which something stalled, ascending
  LateTime late_;
  double total_samples_ = 0;
  PageCounts pages_;
  uint64_t samples_seen_ = 0;  // these two do not decay
  double seconds_seen_ = 0;
  uint64_t new_places_ = 0, samples_without_code_ = 0;
};

}  // namespace hindsight::feedback
