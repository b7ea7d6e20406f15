// Change: what feedback may do to a function's code, somewhere in it. Every room uses these words for it. The policy asks for a change
// (Request). The compiler makes it and says what came of it (Answer). A trial judges it, and files remember it.
//
// kChanges is the one list. What a command, a report, a file or a test calls a change it takes from there.
//
// The jit owns these types and knows nothing of where requests come from. They tune and never change meaning: whatever is
// asked for, however wrong, gives correct code.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/immortal.h"
#include "base/provenance.h"

namespace hindsight::jit {

// In the order of kChanges. Files hold these numbers (code_image.h): a new kind comes last, so that they keep their meaning.
enum class ChangeKind : uint8_t {
  kPrefetch,       // addresses of a load run ahead of it
  kInterleave,     // several of the searches that a load belongs to go at once
  kJumpPointers,   // addresses that the loop remembers from its last traversal are prefetched
  kSelect,         // a branch becomes a choice between two values
  kBranch,         // such a choice becomes a branch
  kValue,          // code for the number that an operand usually is
  kInlineCalls,    // the usual targets of calls stand in place
  kWeighBranches,  // the compiler knows how often branches go which way
  kSplitCold,      // what hardly ever runs lies apart
  kSpeculate,      // a choice that says where a load goes next becomes a branch
};

// What a change is a part of, and so what is compared in its trial: two versions of a loop, or of a function.
enum class Scope : uint8_t { kLoop, kVersion };

// A number that goes with a change, beside whether it is there.
struct Knob {
  std::string_view name;                    // "distance"; empty: there is none
  uint32_t first = 0, least = 0, most = 0;  // where a trial begins, and between what it stays
};

// Who has a loop in which several changes are asked for. It has one at a time, as each is judged with and without it.
enum class Claim : uint8_t {
  kFirst,     // comes before all others, which wait in its loop and in the loops within
  kBeside,    // goes with whatever else changes the loop, but for one that comes first
  kTogether,  // stands in one of the loop's two versions with all others that do: they have one trial
  kLast,      // stands alone: only where no other change of the loop is applied
};

struct ChangeTraits {
  ChangeKind kind;
  std::string_view name;  // of the decision: "jump-pointers"
  Scope scope = Scope::kLoop;
  Knob knob = {};
  Claim claim = Claim::kLast;
  bool of_load = false;  // its places are loads that stall

  // Words of the compiler's answers: where no pass has found the place, and for others that wait because this has the loop.
  std::string_view absent = "optimized code has no such place";
  std::string_view instead = "the loop is on trial with another change";
  // Words of reports for one place, with {at}, and for all that was asked for, with {places} or {count}. Empty: the name, and
  // where. Words for all that have neither are said only where the whole version is asked for.
  std::string_view one = {};
  std::string_view all = {};
};

inline constexpr std::array kChanges = {
    ChangeTraits{.kind = ChangeKind::kPrefetch,
                 .name = "prefetch",
                 .knob = {"distance", 16, 1, 4096},
                 .claim = Claim::kBeside,
                 .of_load = true,
                 .absent = "optimized code has no such load",
                 .one = "prefetch for the load at {at}",
                 .all = "prefetches for the loads at {places}"},
    ChangeTraits{.kind = ChangeKind::kInterleave,
                 .name = "interleave",
                 .knob = {"width", 16, 2, 64},
                 .claim = Claim::kFirst,
                 .of_load = true,
                 .absent = "optimized code has no such load",
                 .instead = "the loop's searches are interleaved instead",
                 .one = "interleaved searches of the load at {at}",
                 .all = "interleaved searches, if they are searches, for the loads at {places}"},
    ChangeTraits{.kind = ChangeKind::kJumpPointers,
                 .name = "jump-pointers",
                 .knob = {"distance", 16, 1, 1024},
                 .claim = Claim::kLast,
                 .of_load = true,
                 .absent = "optimized code has no such load",
                 .one = "jump pointers for the load at {at}",
                 .all = "jump pointers, if they follow pointers, for the loads at {places}"},
    ChangeTraits{.kind = ChangeKind::kSelect,
                 .name = "select",
                 .claim = Claim::kTogether,
                 .absent = "optimized code has no such branch",
                 .one = "select for the branch at {at}",
                 .all = "selects, if both sides can be executed, for the branches at {places}"},
    ChangeTraits{.kind = ChangeKind::kBranch,
                 .name = "branch",
                 .claim = Claim::kTogether,
                 .absent = "optimized code has no such choice",
                 .one = "branch for the select at {at}",
                 .all = "branches, if loop-carried values wait for them, for the selects at {places}"},
    ChangeTraits{.kind = ChangeKind::kValue,
                 .name = "values",
                 .claim = Claim::kTogether,
                 .absent = "optimized code has no use of such a value",
                 .one = "specialized code for the usual value at {at}",
                 .all = "specialized code for the usual values at {places}"},
    ChangeTraits{.kind = ChangeKind::kInlineCalls,
                 .name = "inline-calls",
                 .scope = Scope::kVersion,
                 .one = "inlined usual targets of calls",
                 .all = "inlined usual targets of the calls at {places}"},
    ChangeTraits{.kind = ChangeKind::kWeighBranches,
                 .name = "weigh-branches",
                 .scope = Scope::kVersion,
                 .one = "weights of branches",
                 .all = "weights of {count} branches and selects"},
    ChangeTraits{.kind = ChangeKind::kSplitCold,
                 .name = "code-layout",
                 .scope = Scope::kVersion,
                 .one = "cold code split from hot code",
                 .all = "cold code split from hot code"},
    ChangeTraits{.kind = ChangeKind::kSpeculate,
                 .name = "speculate",
                 .claim = Claim::kTogether,
                 .of_load = true,
                 .absent = "optimized code has no such load",
                 .one = "branches around choices that the load at {at} waits for",
                 .all = "branches around choices, if any say where they go next, for the loads at {places}"},
};
inline constexpr size_t kChangeKinds = kChanges.size();

// Whether a number read from a file is a kind.
constexpr bool is_change_kind(uint8_t number) {
  return number < kChangeKinds;
}
// Precondition: `kind` is one of the enumerators.
constexpr const ChangeTraits& traits_of(ChangeKind kind) {
  return kChanges[static_cast<size_t>(kind)];
}
constexpr std::string_view to_string(ChangeKind kind) {
  return traits_of(kind).name;
}
constexpr std::optional<ChangeKind> change_kind_of(std::string_view name) {
  for (const ChangeTraits& traits : kChanges) {
    if (traits.name == name) return traits.kind;
  }
  return std::nullopt;
}
constexpr bool is_of_version(ChangeKind kind) {
  return traits_of(kind).scope == Scope::kVersion;
}
// Those of a whole version, in the order of kChanges.
inline constexpr auto kVersionChanges = [] {
  constexpr auto is_its = [](const ChangeTraits& traits) { return traits.scope == Scope::kVersion; };
  std::array<ChangeKind, static_cast<size_t>(std::ranges::count_if(kChanges, is_its))> kinds{};
  size_t found = 0;
  for (const ChangeTraits& traits : kChanges)
    if (is_its(traits)) kinds[found++] = traits.kind;
  return kinds;
}();
constexpr bool is_of_load(ChangeKind kind) {
  return traits_of(kind).of_load;
}
constexpr bool is_tuned(ChangeKind kind) {
  return !traits_of(kind).knob.name.empty();
}
// The nearest number that the change may have. Precondition: is_tuned(kind).
constexpr uint32_t clamped(ChangeKind kind, uint32_t number) {
  const Knob& knob = traits_of(kind).knob;
  return number < knob.least ? knob.least : number > knob.most ? knob.most : number;
}
// Which form a branch has.
constexpr bool is_of_branch(ChangeKind kind) {
  return kind == ChangeKind::kSelect || kind == ChangeKind::kBranch;
}

// Code is made up to these bounds, and nobody asks for more: the usual byte count of a copy or fill, and a trip count.
inline constexpr uint64_t kMostUsualBytes = 256;
inline constexpr uint64_t kMostUsualTurns = 64;
// That a branch loses which went the other way, where nobody has measured it (OptimizeRequest::mispredict_cycles).
inline constexpr double kMispredictCycles = 21;
// With where they come from; docs/PARAMETERS.md is printed from this.
inline constexpr std::array kChangeConstants = {
    Constant{"kMostUsualBytes",
             kMostUsualBytes,
             {Unit::kBytes, Provenance::Origin::kBound,
              "specializes no longer copies and fills, which take their time anyway. It is below a page, so "
              "that a memory of any length has room"}},
    Constant{"kMostUsualTurns",
             kMostUsualTurns,
             {Unit::kCount, Provenance::Origin::kBound,
              "specializes no larger trip counts, whose unrolled code is large and saves less an iteration"}},
    Constant{"kMispredictCycles",
             kMispredictCycles,
             {Unit::kCount, Provenance::Origin::kMeasured,
              "charges a misprediction as on a Zen 4, where nobody has measured what it takes; others lose "
              "15 to 25"}},
};

// A change of one place: a load, a branch, an operator, a loop. Of a whole version `at` is 0, but for what is asked for: there
// it is the call or the branch.
struct Site {
  ChangeKind kind = ChangeKind::kPrefetch;
  WasmOffset at;
  friend auto operator<=>(const Site&, const Site&) = default;
};

// "This call_indirect mostly goes through these elements of its table", the most frequent one first. Of a call_ref the
// functions themselves, by their indices.
struct CallTargets {
  struct Target {
    uint32_t element = 0;
    double share = 0;  // of the calls seen, 0..1
    friend bool operator==(const Target&, const Target&) = default;
  };
  std::vector<Target> targets;
  bool by_reference = false;  // a call_ref
  friend bool operator==(const CallTargets&, const CallTargets&) = default;
};

// What was seen of a br_if, an if, or a select, whose condition held (`taken`) so often and failed so often.
struct BranchCounts {
  uint64_t taken = 0;
  uint64_t not_taken = 0;
  double mispredicted = 0;  // share of its executions, 0..1; an estimate, or what it cannot be above
  friend bool operator==(const BranchCounts&, const BranchCounts&) = default;
};

// "This operand is mostly that number": the divisor of an integer division or remainder, or the byte count of a memory.copy
// or memory.fill. Or "this loop mostly has that trip count", at least 1, whenever it is entered.
struct UsualValue {
  uint64_t value = 0;  // an i32 is zero-extended
  double share = 1;    // of the executions seen, 0..1
  friend bool operator==(const UsualValue&, const UsualValue&) = default;
};

// A change asked for. What goes with it, by its kind:
//     kPrefetch, kInterleave, kJumpPointers, kSpeculate
//                                             nothing: a load that stalls
//     kSelect, kBranch                        BranchCounts
//     kValue                                  UsualValue
//     kInlineCalls                            CallTargets: of one call
//     kWeighBranches                          BranchCounts: of one branch, as weights for the compiler
//     kSplitCold                              BranchCounts: of one branch, of which one side was never seen. Outside of loops its
//                                             code lies apart, if the compilation is to (OptimizeRequest::split_cold)
struct Request {
  Site site = {};
  double weight = 0;     // share of the function's time that is lost there, 0..1; orders the work
  uint32_t setting = 0;  // of the knob, where the trial begins; 0: where it begins by itself
  bool enabled = true;   // at first
  std::variant<std::monostate, CallTargets, BranchCounts, UsualValue> what = {};
};

// What goes with a request, or the same with nothing in it where another kind of thing came.
template <typename What>
const What& what_of(const Request& request) {
  static const Immortal<What> nothing;
  const What* const found = std::get_if<What>(&request.what);
  return found != nullptr ? *found : *nothing;
}

// What the compiler did about one change of one place, asked for or not.
struct Answer {
  enum class State : uint8_t {
    kRefused,
    kApplied,
    kWaits,    // its loop, or one around it, is on trial with another change: it was not tried
    kFollows,  // a load that shares the change of another site's loop, which is said there
  };
  Site site = {};
  State state = State::kRefused;
  WasmOffset loop = {};      // the loop that is there in two versions, or whose cell switches the change
  uint32_t cell = 0;         // index into CodeVersion::loop_cells (several sites of one loop share it)
  std::string why = {};      // why not; or the change in words ("a[b[i]]: 1 load, 4 operations, clamped")
  uint32_t slice_loads = 0;  // of a prefetch: loads that its slice itself executes
  uint32_t operations = 0;   // of its address computation
  bool has_distance =
      true;  // false of a prefetch that does not run ahead: its trial has no distance to look for
  // Another change of the load waits that may give more. It is to be seen what that gives, unless this one gives much.
  bool has_rival = false;
  std::optional<uint32_t> timed = {};  // index into the cell's upcoming[]; empty: this load is not timed

  // In the code.
  bool is_applied() const { return state == State::kApplied || state == State::kFollows; }
  bool waits() const { return state == State::kWaits; }
  bool follows() const { return state == State::kFollows; }
};
constexpr bool is_answer_state(uint8_t number) {
  return number <= static_cast<uint8_t>(Answer::State::kFollows);
}

consteval bool changes_are_in_order() {
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if (static_cast<size_t>(kChanges[i].kind) != i) return false;
  }
  return true;
}
static_assert(changes_are_in_order());

}  // namespace hindsight::jit
