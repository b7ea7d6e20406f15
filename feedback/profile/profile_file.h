// Saved profiles: what was seen about a module at the moment of each decision, what was decided, and what
// came of it. JSON, versioned, keyed by the module's content hash. A file is hostile until proven otherwise:
// every defect is an Error that names the file and the place in it; sizes are bounded; nothing in it can
// change what code means, only what is tried.
//
// Saving is atomic: written to a temporary file in the same folder, synced, renamed over the old one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

// One decision: what was seen, what was chosen, what it gave.
struct Episode {
  uint64_t id = 0;
  double seconds = 0;  // since the engine's start
  FunctionEvidence evidence;
  std::string action;  // policy.h: to_string(Action)
  std::vector<uint32_t> osr_loops;
  std::vector<uint32_t> prefetch_loads;    // wasm offsets
  std::vector<uint32_t> interleave_loads;  // the same
  std::vector<uint32_t>
      inlined_calls;  // wasm offsets of call_indirects; their targets follow from the evidence
  std::string reason;
  std::vector<std::string> alternatives;  // in words, with estimates
  // Afterwards:
  std::string state;  // "compiled", "failed", "rolled back", ...
  double compile_seconds = 0;
  struct Prefetch {
    uint32_t load = 0;
    PrefetchOutcome outcome = PrefetchOutcome::kNone;
    uint32_t distance = 0;  // iterations; of an interleaved loop: searches at once
    double measured_gain = 0;
    std::string words;
    bool interleaved = false;  // the change is the other one: the searches of this load at once
    friend bool operator==(const Prefetch&, const Prefetch&) = default;
  };
  std::vector<Prefetch> prefetches;
  friend bool operator==(const Episode&, const Episode&) = default;
};

struct ModuleProfile {
  std::string hash_hex;
  std::string name;
  std::vector<Episode> episodes;
  std::vector<FunctionEvidence> functions;  // what was known of the hottest ones at the end
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
Result<ProfileFile> load_profile(const std::string& path);
std::string format_profile(const ProfileFile& file);
Status save_profile(const ProfileFile& file, const std::string& path);

}  // namespace hindsight::feedback
