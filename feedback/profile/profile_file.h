// Saved profiles: what was seen about a module at the moment of each decision, what was decided, and what
// came of it. JSON, versioned, keyed by the module's content hash. A file is hostile until proven otherwise:
// every defect is an Error that names the file and the place in it; sizes are bounded; nothing in it can
// change what code means, only what is tried.
//
// Saving is atomic: written to a temporary file in the same folder, synced, renamed over the old one.
//
// Where programs keep profiles for themselves, the same text stands behind one line that seals it, which is not this room's:
// whoever names a file trusts it no more than any other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

// Where a decision came from.
enum class Origin : uint8_t {
  kDecided,    // in this run, on this evidence
  kProfile,    // at the start, from what earlier runs had decided: Episode::earlier says what those knew
  kCodeCache,  // with the code of an earlier run; the evidence is what was kept beside the code
};
const char* to_string(Origin origin);

// The state of a decision to compile again, where the compiler refused all that was new.
inline constexpr std::string_view kNothingNew = "nothing new came of it: the code that runs stays";

// One decision: what was seen, what was chosen, what it gave.
struct Episode {
  uint64_t id = 0;
  double seconds = 0;  // since the engine's start
  FunctionEvidence evidence;
  std::string action;  // policy.h: to_string(Action)
  std::vector<uint32_t> osr_loops;
  std::vector<uint32_t> prefetch_loads;    // wasm offsets
  std::vector<uint32_t> interleave_loads;  // the same
  std::vector<uint32_t> jump_loads;        // the same
  std::vector<uint32_t>
      inlined_calls;  // wasm offsets of call_indirects; their targets follow from the evidence
  std::vector<uint32_t> weighed_branches;  // wasm offsets; which way they go follows from the evidence
  std::vector<uint32_t> select_branches;   // of branches, to be selects
  std::vector<uint32_t>
      branch_selects;  // of selects, or of branches that the compiler may make such, to be branches
  std::vector<uint32_t>
      value_sites;          // of operators, to have code for their usual value, which the evidence has
  bool split_cold = false;  // what hardly ever runs lies apart
  std::string reason;
  std::vector<std::string> alternatives;  // in words, with estimates
  // Afterwards:
  std::string state;  // "compiled", "failed", "rolled back", ...
  double compile_seconds = 0;
  struct Prefetch {
    uint32_t load = 0;  // or the branch, or the operator; of a whole version 0
    PrefetchOutcome outcome = PrefetchOutcome::kNone;
    uint32_t distance = 0;  // iterations; of an interleaved loop: searches at once
    double measured_gain = 0;
    std::string words;
    jit::ChangeKind change = jit::ChangeKind::kPrefetch;
    uint32_t runs_ago = 0;  // in which it was judged last
    friend bool operator==(const Prefetch&, const Prefetch&) = default;
  };
  std::vector<Prefetch> prefetches;
  Origin origin = Origin::kDecided;
  uint32_t runs_ago = 0;  // when it was decided; 0: in the last run
  // What a decision at the start was made from, beside the evidence of the decision it takes over.
  struct Earlier {
    double runs = 0;              // how many, faded: the denominator of the next two
    double seconds_baseline = 0;  // CPU time of the function in them, faded alike
    double seconds_optimized = 0;
    double compile_seconds = 0;  // what the compile took; 0: not known
    std::vector<uint32_t> osr_loops;
    std::vector<Prefetch> prefetches;
    friend bool operator==(const Earlier&, const Earlier&) = default;
  };
  std::optional<Earlier> earlier;  // exactly where the origin is kProfile
  friend bool operator==(const Episode&, const Episode&) = default;
};

// The same change for the same load, branch or operator.
inline bool same_change(const Episode::Prefetch& a, const Episode::Prefetch& b) {
  return a.load == b.load && a.change == b.change;
}

// What is said alike of a decision that is about no single function.
struct ModuleEpisode {
  uint64_t id = 0;
  double seconds = 0;  // since the engine's start
  std::string reason;
  std::vector<std::string> alternatives;
  double estimated_gain = 0;
  // Afterwards:
  std::string state, outcome;
  double measured_gain = 0;
  uint32_t runs_ago = 0;
  friend bool operator==(const ModuleEpisode&, const ModuleEpisode&) = default;
};

// One decision about pages of linear memory.
struct PageEpisode : ModuleEpisode {
  PageEvidence evidence;
  struct Range {
    uint64_t begin = 0;  // addresses in that process, multiples of kHugePageBytes
    uint64_t end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> ranges;
  // Where these lay in the module's memories, in bytes from a memory's start; of other memories nothing is said.
  struct Place {
    uint32_t memory = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> places;
  friend bool operator==(const PageEpisode&, const PageEpisode&) = default;
};

// One decision about where code lies.
struct LayoutEpisode : ModuleEpisode {
  LayoutEvidence evidence;
  bool moves = false;  // what was decided
  friend bool operator==(const LayoutEpisode&, const LayoutEpisode&) = default;
};

struct ModuleProfile {
  std::string hash_hex;
  std::string name;
  std::vector<Episode> episodes;
  std::vector<FunctionEvidence> functions;  // what was known of the hottest ones at the end
  // What decisions depend on beside the module, in words: options, processor. Empty: not said.
  std::string options;
  uint64_t runs_seen = 1;  // runs that are in here, and
  double runs = 1;         // what is left of them: each run before the last one has faded (merge.h)
  std::vector<PageEpisode> page_episodes;
  std::vector<LayoutEpisode> layout_episodes;
  std::vector<FunctionSamples> samples;  // of whole runs, the hottest functions first
  friend bool operator==(const ModuleProfile&, const ModuleProfile&) = default;
};

struct ProfileFile {
  std::map<std::string, double> policy;  // the parameters the decisions were made with, by name
  std::vector<ModuleProfile> modules;
  friend bool operator==(const ProfileFile&, const ProfileFile&) = default;

  const ModuleProfile* find(const std::string& hash_hex) const;
};

inline constexpr size_t kMaxProfileFileBytes = size_t{256} << 20;

Result<ProfileFile> parse_profile(const std::string& text, const std::string& name);
// The same, with nothing but the defect in the error.
Result<ProfileFile> read_profile(const std::string& text);
// With a seal in front of it, which is not looked at, or without.
Result<ProfileFile> load_profile(const std::string& path);
// `compact`: without line breaks, for files that nobody reads.
std::string format_profile(const ProfileFile& file, bool compact = false);
Status save_profile(const ProfileFile& file, const std::string& path);

}  // namespace hindsight::feedback
