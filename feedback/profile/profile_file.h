// Saved profiles: what was seen about a module at the moment of each decision, what was decided, and what came of it.
// JSON, versioned, keyed by the module's content hash. A file is hostile until proven otherwise. Every defect is an
// Error that names the file and the place in it. Sizes are bounded. Nothing in a file can change what code means, only
// what is tried.
//
// Saving is atomic: written to a temporary file in the same folder, synced, renamed over the old one.
//
// Where programs keep profiles for themselves, the same text follows one line that seals it, which is not this room's.
// Whoever names a file trusts it no more than any other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision_state.h"
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

// One decision: what was seen, what was chosen, what it gave.
struct Episode {
  uint64_t id = 0;
  double seconds = 0;  // since the engine's start
  FunctionEvidence evidence;
  std::string action;  // policy.h: to_string(Action)
  std::vector<uint32_t> osr_loops;
  std::optional<LoopIndex> nest = {};  // the decision is about this loop alone
  std::vector<jit::Site> changes;      // that were asked for; with what follows from the evidence
  std::string reason;
  std::vector<std::string> alternatives;  // in words, with estimates
  // Afterwards:
  DecisionState state = DecisionState::kNone;
  std::string state_why;  // beside it: why it failed; empty: there is nothing to say
  double compile_seconds = 0;
  ChangeLedger outcomes;  // of the changes that were asked for, and of those that came with them
  Origin origin = Origin::kDecided;
  uint32_t runs_ago = 0;  // when it was decided; 0: in the last run
  // What a decision at the start was made from, beside the evidence of the decision it takes over.
  struct Earlier {
    double runs = 0;              // how many, faded: the denominator of the next two
    double seconds_baseline = 0;  // CPU time of the function in them, faded alike
    double seconds_optimized = 0;
    double compile_seconds = 0;  // what the compile took; 0: not known
    std::vector<uint32_t> osr_loops;
    ChangeLedger outcomes;
    std::optional<LoopIndex> nest = {};  // Episode::nest
    friend bool operator==(const Earlier&, const Earlier&) = default;
  };
  std::optional<Earlier> earlier;  // exactly where the origin is kProfile
  // The sites of one kind of change among those that were asked for.
  std::vector<WasmOffset> asked_for(jit::ChangeKind kind) const;
  friend bool operator==(const Episode&, const Episode&) = default;
};

// "failed: the function is too large".
std::string state_text(const Episode& episode);

// What is said alike of a decision that is about no single function.
struct ModuleEpisode {
  uint64_t id = 0;
  double seconds = 0;  // since the engine's start
  std::string reason;
  std::vector<std::string> alternatives;
  double estimated_gain = 0;
  // Afterwards:
  DecisionState state = DecisionState::kNone;
  std::string outcome;
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
  // Of one that is unjudged: how many runs came to that, one after the other, with this one.
  uint32_t unjudged = 0;
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

// The version of files that are written, and the oldest that is read: 2 knows of no nests. Those of other versions are
// refused: they are caches, and the next run makes a new one.
inline constexpr int kProfileVersion = 3;
inline constexpr int kOldestProfileVersion = 2;

Result<ProfileFile> parse_profile(const std::string& text, const std::string& name);
// The same, with nothing but the defect in the error: of kind kUnsupported where the file is of another version.
Result<ProfileFile> read_profile(const std::string& text);
// With a seal in front of it, which is not looked at, or without.
Result<ProfileFile> load_profile(const std::string& path);
// `compact`: without line breaks, for files that nobody reads.
std::string format_profile(const ProfileFile& file, bool compact = false);
Status save_profile(const ProfileFile& file, const std::string& path);

}  // namespace hindsight::feedback
