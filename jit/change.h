// Change: what feedback may do to a function's code, somewhere in it. The words that every room uses for it: the compiler that
// makes the change, the policy that asks for it, the trial that judges it, the files that remember it.
//
// kChanges is the one list. What a command, a report, a file or a test calls a change it takes from there.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"

namespace hindsight::jit {

// In the order of kChanges. Files hold these numbers (code_image.h): a new kind means a new version of them.
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
};

// What a change is a part of, and so what is compared in its trial: two versions of a loop, or of a function.
enum class Scope : uint8_t { kLoop, kVersion };

// A number that goes with a change, beside whether it is there.
struct Knob {
  std::string_view name;                    // "distance"; empty: there is none
  uint32_t first = 0, least = 0, most = 0;  // where a trial begins, and between what it stays
};

struct ChangeTraits {
  ChangeKind kind;
  std::string_view name;  // of the decision: "jump-pointers"
  Scope scope = Scope::kLoop;
  Knob knob = {};
};

inline constexpr std::array kChanges = {
    ChangeTraits{ChangeKind::kPrefetch, "prefetch", Scope::kLoop, {"distance", 16, 1, 4096}},
    ChangeTraits{ChangeKind::kInterleave, "interleave", Scope::kLoop, {"width", 16, 2, 64}},
    ChangeTraits{ChangeKind::kJumpPointers, "jump-pointers", Scope::kLoop, {"distance", 16, 1, 4096}},
    ChangeTraits{ChangeKind::kSelect, "select"},
    ChangeTraits{ChangeKind::kBranch, "branch"},
    ChangeTraits{ChangeKind::kValue, "values"},
    ChangeTraits{ChangeKind::kInlineCalls, "inline-calls", Scope::kVersion},
    ChangeTraits{ChangeKind::kWeighBranches, "weigh-branches", Scope::kVersion},
    ChangeTraits{ChangeKind::kSplitCold, "code-layout", Scope::kVersion},
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
// Those of a whole version.
inline constexpr ChangeKind kVersionChanges[] = {ChangeKind::kInlineCalls, ChangeKind::kWeighBranches,
                                                 ChangeKind::kSplitCold};
constexpr bool is_tuned(ChangeKind kind) {
  return !traits_of(kind).knob.name.empty();
}
// Which form a branch has.
constexpr bool is_of_branch(ChangeKind kind) {
  return kind == ChangeKind::kSelect || kind == ChangeKind::kBranch;
}

// A change of one place: a load, a branch, an operator, a loop. Of a whole version `at` is 0.
struct Site {
  ChangeKind kind = ChangeKind::kPrefetch;
  WasmOffset at;
  friend auto operator<=>(const Site&, const Site&) = default;
};

consteval bool changes_are_in_order() {
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if (static_cast<size_t>(kChanges[i].kind) != i) return false;
  }
  return true;
}
static_assert(changes_are_in_order());

}  // namespace hindsight::jit
