// Evidence: everything the policy may look at when it decides about one function, as plain numbers. It is filled from the
// profile at the moment of a decision, kept with the decision, and saved with it. It is enough to replay the decision:
// same evidence, same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/memory_level.h"
#include "feedback/profile/ledger.h"
#include "jit/change.h"

namespace hindsight::feedback {

// Timed loads of one site. An estimate of isolated latency, not of what the load costs in its loop: that is its share of
// the samples.
struct LoadLatency {
  MemoryLevel level = MemoryLevel::kUnknown;
  uint64_t timed = 0;       // loads timed: the denominator
  double mean_ticks = 0;    // of the time-stamp counter, clipped
  double memory_share = 0;  // of them, those that came from memory
  double latency_ns = 0;    // of a load from that level, as calibrated
  uint32_t cycles = 0;      // the same in core cycles
  friend bool operator==(const LoadLatency&, const LoadLatency&) = default;
};

// Of a load, or of a store that samples stood after.
struct LoadEvidence {
  WasmOffset load;                     // of the wasm instruction
  double stall_samples = 0;            // clock samples that stood right after it
  double stall_samples_optimized = 0;  // of these, in optimized code
  uint64_t addresses = 0;              // known data addresses: of these, and of misses that hardware sampled
  uint64_t address_span_bytes = 0;     // highest - lowest address seen
  uint64_t distinct_pages = 0;         // 4 KiB pages among the addresses seen (exact up to kMaxPagesSeen)
  // Inside a loop of the function (or in a body inlined into it): else no address can run ahead of it.
  bool in_loop = true;
  // The function calls itself by name, so the load may be of a node that one read before leads to, whether or not it is in a loop.
  bool in_recursion = false;
  double stall_samples_recent =
      0;  // of those in optimized code, the last second's, about; see samples_recent
  // About the last change of the load that was tried and taken back. How long ago that was (CPU time of the function),
  // which share of the function's samples stood after the load then, and how far apart its addresses were.
  double seconds_since_rejected = 0;
  double share_when_rejected = 0;
  uint64_t span_when_rejected = 0;  // address_span_bytes then
  LoadLatency latency = {};
  bool is_store = false;          // it only writes; the rest says of it what it says of loads
  uint64_t rising_addresses = 0;  // of a store: of its addresses, those above the one before
  // The load is in a function that a loop calls, and that would be inlined there for it: one of FunctionEvidence::callees.
  std::optional<FuncIndex> callee = {};
  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

// One execution of a branch in so many is recorded. So it is for a call, a select, or an operator whose operand is of
// interest. Of branches and selects it is one in about so many: entries and back edges are counted, each for so many branches
// as may follow (jit/baseline/lwp.cc). These are primes, so that they do not beat with loops.
inline constexpr int32_t kBranchInterval = 65'521;
inline constexpr int32_t kValueInterval = 16'381;

// One branch as instrumented code saw it. `sampled` counts one execution in kBranchInterval; `outcomes` are
// consecutive ones, from bursts, of which `judged` went through a predictor model. A
// select chooses where a branch goes: it was `taken` if it chose its first operand. One execution of it in some
// thousands is recorded, and none is seen in bursts.
struct BranchEvidence {
  WasmOffset branch;           // of the br_if, if, br_table, br or select
  uint64_t sampled = 0;        // branch records
  uint64_t sampled_taken = 0;  // of these
  uint64_t outcomes = 0;       // branches seen in bursts
  uint64_t taken = 0;          // of these
  uint64_t judged = 0;         // of the outcomes: after the predictor's warm-up
  uint64_t mispredicted = 0;   // of those judged; an estimate
  bool chooses = false;        // a select
  uint64_t seen() const { return outcomes + sampled; }
  double taken_share() const {
    return seen() ? static_cast<double>(taken + sampled_taken) / static_cast<double>(seen()) : 0;
  }
  double mispredict_rate() const {
    return judged ? static_cast<double>(mispredicted) / static_cast<double>(judged) : 0;
  }
  friend bool operator==(const BranchEvidence&, const BranchEvidence&) = default;
};

// A function that a loop calls by name, with loads that stall. Nothing can be done about them in the function itself: they
// are in no loop of it, or in one that has to have another around it.
struct CalleeEvidence {
  FuncIndex function;
  std::string name;
  LoopIndex called_in;       // the innermost loop around the call; of several the one with the most samples
  double samples = 0;        // clock samples of late in its code, whoever called it
  double seconds = 0;        // the same as CPU time
  double stall_samples = 0;  // of these, after the loads that are meant
  // And after loads of which its own code is to show first whether anything helps there: they may be meant next.
  double stall_samples_undecided = 0;
  // Of its code, whoever called it, in the order of FunctionEvidence::branches, and as many: how long its loops are.
  std::vector<BranchEvidence> branches = {};
  friend bool operator==(const CalleeEvidence&, const CalleeEvidence&) = default;
};

// Where a call_indirect or call_ref was seen to go: one execution in some thousands is recorded.
struct CallEvidence {
  struct Target {
    uint32_t element = 0;  // of the table; of a call_ref the function's index
    uint64_t records = 0;  // at least; see ValueCounts
    friend bool operator==(const Target&, const Target&) = default;
  };
  WasmOffset call;
  uint64_t records = 0;              // the denominator
  std::vector<Target> targets = {};  // by descending records
  bool by_reference = false;         // a call_ref
  // Calls of the published optimized code that went to none of the targets inlined there, sampled alike.
  uint64_t unforeseen_records = 0;
  std::vector<Target> unforeseen = {};
  friend bool operator==(const CallEvidence&, const CallEvidence&) = default;
};

// What a division, a memory.copy or a memory.fill was seen to be asked for, or how often an innermost loop iterated. One
// execution in some thousands is recorded, in baseline code.
enum class ValueSite : uint8_t { kDivisor, kWideDivisor, kByteCount, kTripCount };
const char* to_string(ValueSite site);
struct ValueEvidence {
  struct Value {
    uint64_t value = 0;    // an i32 is zero-extended
    uint64_t records = 0;  // at least; see ValueCounts
    friend bool operator==(const Value&, const Value&) = default;
  };
  WasmOffset at;  // of the instruction; of a trip count, the loop
  ValueSite site = ValueSite::kDivisor;
  uint64_t records = 0;            // the denominator
  std::vector<Value> values = {};  // by descending records
  friend bool operator==(const ValueEvidence&, const ValueEvidence&) = default;
};

struct LoopEvidence {
  LoopIndex loop;
  WasmOffset offset;
  uint32_t depth = 0;
  double samples = 0;  // with those of inner loops
  int32_t parent = -1;
  // What follows is about the loop as a unit of compiling (jit/code/unit.h). Nothing of it is known where code_bytes is 0.
  uint32_t code_bytes = 0;        // wasm; where it has samples, with what is inlined for its size
  uint32_t inner_loops = 0;       // in it, at any depth
  double samples_baseline = 0;    // clock samples of late in baseline code, in no inner loop
  double seconds_baseline = 0;    // the same as CPU time
  uint64_t trip_records = 0;      // how often it was seen to end
  bool has_nest = false;          // its code is published, or being made
  bool early = false;             // and was asked for before it was known what to try in it
  uint32_t compiles = 0;          // of it as a nest
  uint32_t fruitless = 0;         // of these: brought nothing new
  double compile_seconds = 0;     // what its last one took; 0: not known
  std::string no_nest = {};       // why it can be none; empty: it can, where it has samples
  WasmOffset end = {};            // after its `end`
  bool under_way = false;         // its code as a nest is being made
  bool only_for_callees = false;  // and that only for what it calls
  bool set_aside = false;  // what was decided about it waits for something else: others are asked about
  // In the published nest with this root, of late.
  double samples_optimized = 0, seconds_optimized = 0;
  // These do not decay: in baseline code in no inner loop, and in nests with this root.
  double seconds_run_baseline = 0, seconds_run_optimized = 0;
  double seconds_in_code = 0;  // of the latter, in the published nest
  double moved_share = 0;      // of the samples in it; see FunctionEvidence
  friend bool operator==(const LoopEvidence&, const LoopEvidence&) = default;
};
// Its header, or anything in it, where `end` is known.
inline bool is_in(const LoopEvidence& loop, WasmOffset at) {
  return loop.offset <= at && at < loop.end;
}

// Whether a hot function is entered while it is watched for that. One that is, reaches new code at its next
// call; one that is not, sits in a loop.
enum class Entered : uint8_t { kUnknown, kNotYet, kAgain };
const char* to_string(Entered entered);

struct FunctionEvidence {
  FuncIndex function;
  std::string name;
  WasmOffset version_at;         // where changes of whole versions stand (version_site); not kept in files
  uint32_t code_bytes = 0;       // wasm
  double samples_baseline = 0;   // clock samples in its baseline code
  double samples_optimized = 0;  // clock samples in its current optimized code
  double seconds_baseline = 0;   // the same as CPU time (samples x their period)
  double seconds_optimized = 0;
  double total_samples = 0;      // of all functions: the denominator of "hot"
  bool optimized = false;        // an optimized version is published or being made
  bool early = false;            // and was asked for before it was known what to try in it
  uint32_t optimize_count = 0;   // compiles so far
  uint32_t failed_compiles = 0;  // of these: gave no code, and it has none
  Entered entered = Entered::kUnknown;
  double seconds_watched = 0;      // in its baseline code while watched for entries
  double all_seconds_watched = 0;  // the same in all functions' code
  bool loop_entries_only = false;  // what is optimized are loops that were running: no call enters it
  // In baseline code since the optimized version was published: what does not leave it by calls.
  double samples_left_behind = 0;
  double seconds_left_behind = 0;
  double seconds_since_published = 0;  // of seconds_optimized, in the version that is published
  // In optimized code of the last second, about: what a program that has changed is like now.
  double samples_recent = 0;
  // In earlier optimized versions since the present one was published: loops that run on where they are.
  double samples_stayed = 0;
  double seconds_stayed = 0;
  // The share of the last samples in the published version, beyond chance, that stand where its first ones did not.
  double moved_share = 0;
  double seconds_run = 0;           // in the function's code since it was loaded; does not decay
  double seconds_run_baseline = 0;  // of these, in its baseline code, where its calls were recorded
  double samples_run_baseline = 0;  // clock samples of the latter
  // By which running loops can leave the published optimized code, and by which others may enter it.
  std::vector<LoopIndex> exit_loops, entry_loops;
  double compile_seconds = 0;  // what compiling it took in an earlier run; 0: not known
  double compile_scale = 1;    // what compiles of this process took for each second that was expected
  double price_of_trying =
      0;  // what a second of compiling for trials has to save (policy/stakes.h); 0: not known
  std::vector<LoadEvidence> loads;      // by descending stall_samples, at most kMaxLoads
  std::vector<LoopEvidence> loops;      // in LoopIndex order
  std::vector<CalleeEvidence> callees;  // by descending stall_samples, at most kMaxCallees
  std::vector<BranchEvidence>
      branches;                     // by descending mispredictions seen, then outcomes; at most kMaxBranches
  std::vector<CallEvidence> calls;  // by descending records, at most kMaxCalls
  std::vector<ValueEvidence> values;  // alike, at most kMaxValues
  ChangeLedger changes;               // what became of them, of loops and of whole versions
  uint64_t module_bytes = 0;          // of wasm, of all bodies of the module; 0: not known
  friend bool operator==(const FunctionEvidence&, const FunctionEvidence&) = default;
};

// How far a memory that the guest may be filling has come, by blocks of kHugePageBytes that were looked at, evenly
// spread.
struct FillEvidence {
  uint64_t begin = 0;  // addresses, multiples of kHugePageBytes
  uint64_t end = 0;
  uint32_t full = 0;  // all pages of 4 KiB, or nearly all, are there
  uint32_t part = 0;
  uint32_t untouched = 0;
  uint64_t available_bytes = 0;  // that the machine has left
  uint64_t vain_bytes = 0;       // that earlier runs asked for in vain; 0: none
  friend bool operator==(const FillEvidence&, const FillEvidence&) = default;
};

// Where in a module's memory its stalls lie that are not on huge pages yet, or how it fills its memory. Samples and time count
// from the first stall in these regions on: what ran before it says nothing about how long they go on.
struct PageEvidence {
  struct Region {
    uint64_t index = 0;      // address / kHugePageBytes
    uint64_t addresses = 0;  // stalled ones in it
    friend bool operator==(const Region&, const Region&) = default;
  };
  double samples = 0;        // clock samples of all functions since then
  double seconds = 0;        // CPU time of all functions since then
  double stall_samples = 0;  // of the samples: after a load whose address is known, in these regions
  double seconds_idle = 0;   // of the seconds: since the last of them
  // The share of this time that would be stalls but for decisions that hide them: those wait for page walks all the same. 0
  // where what hides them does not run any more.
  double hidden_share = 0;
  uint64_t addresses = 0;                 // in these regions
  uint64_t distinct_pages = 0;            // 4 KiB pages among them (exact up to kMaxPagesSeen)
  std::vector<Region> regions;            // ascending
  double move_seconds_per_byte = 0;       // what the process's moves up to now took; 0: there was none
  double moving_seconds_per_byte = 0;     // how long they were under way, whoever worked; 0: not known
  uint64_t vain_bytes = 0;                // that an earlier run moved and took back; 0: none
  std::optional<FillEvidence> fill = {};  // then the rest says nothing
  friend bool operator==(const PageEvidence&, const PageEvidence&) = default;
};

// How a module's time is spread over the code of its optimized functions.
struct LayoutEvidence {
  struct Function {
    FuncIndex function;
    uint32_t code_bytes = 0;  // of its optimized version, where it lies now
    // The clock samples of late in all these versions, times the function's share by the whole run. Of late few functions
    // of a flat profile have any.
    double samples = 0;
    bool tried = false;  // an earlier decision tried to place it with others, whatever came of it
    friend bool operator==(const Function&, const Function&) = default;
  };
  double samples = 0;          // clock samples of late, of all functions in whatever code
  double seconds = 0;          // CPU time of all functions up to now
  double seconds_settled = 0;  // of wall time since a version was last asked for or made
  uint32_t layouts = 0;        // decisions to move before this one
  std::vector<Function>
      functions;  // optimized ones that can be moved, ascending; at most kMaxLayoutFunctions
  friend bool operator==(const LayoutEvidence&, const LayoutEvidence&) = default;
};

// Where a function's samples stood in the whole run: nothing in it decays while the program runs. Not evidence
// of a decision made in the run, but of those made at the start of the next.
struct FunctionSamples {
  struct Place {
    WasmOffset offset;   // kNoWasmOffset's value: nobody knows
    double samples = 0;  // clock samples
    double stalls = 0;   // of a load: samples that stood after it, some of them at the next place
    friend bool operator==(const Place&, const Place&) = default;
  };
  FuncIndex function;
  std::string name;
  WasmOffset begin;  // of the function's first instruction
  double samples = 0;
  double seconds_baseline = 0;  // CPU time
  double seconds_optimized = 0;
  std::vector<Place> places;  // by ascending offset, at most kMaxPlaces
  friend bool operator==(const FunctionSamples&, const FunctionSamples&) = default;
};

// How often a change of the load was tried and taken back: the one that was most often. Changes that take turns at a load are tried by
// what was known at one time.
uint32_t rejections_of(const ChangeLedger& changes, WasmOffset load);

inline constexpr size_t kMaxPlaces = 256;
// At most so many, those with the most samples and stalls, by ascending offset.
void keep_dearest(std::vector<FunctionSamples::Place>& places, size_t most = kMaxPlaces);

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
inline constexpr size_t kMaxLayoutFunctions = 8192;
inline constexpr size_t kMaxLoads = 32;
inline constexpr size_t kMaxBranches = 32;
inline constexpr size_t kMaxCalls = 32;
inline constexpr size_t kMaxCallees = 8;
inline constexpr size_t kMaxValues = 32;
inline constexpr size_t kMaxPagesSeen = 512;

}  // namespace hindsight::feedback
