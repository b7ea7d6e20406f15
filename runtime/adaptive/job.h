// Job: a function or one of its loops that is to be compiled, why, and with what.
#pragma once

#include <compare>
#include <limits>
#include <map>
#include <memory>
#include <variant>

#include "feedback/policy/policy.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/code/module_code.h"

namespace hindsight::rt {

// What comes first, in ascending order. What runs in optimized code already, and is to be tried with changes. What is hot: nests, which take little, before functions. Of each kind it is the one
// that ran longest for each second that its compile takes (Smith's rule). Then what earlier runs decided, which is compiled before
// it is hot. Then a version without what a trial has rejected.
struct Hot {
  bool nest = false;
  double seconds = 0;   // of CPU time in the unit so far
  double expected = 1;  // that the compile takes
  double rate() const { return expected > 0 ? seconds / expected : 0; }
  friend auto operator<=>(const Hot& a, const Hot& b) {
    if (a.nest != b.nest) return a.nest ? std::partial_ordering::greater : std::partial_ordering::less;
    return a.rate() <=> b.rate();
  }
  friend bool operator==(const Hot& a, const Hot& b) { return a.nest == b.nest && a.rate() == b.rate(); }
};
struct AtStart {
  double gain = 0;  // of what is to be won for each second of compiling, as StartPlan::priority has it
  friend auto operator<=>(const AtStart&, const AtStart&) = default;
};
struct Undo {
  friend auto operator<=>(const Undo&, const Undo&) = default;
};
// What is to be tried. First what is expected to save most.
struct Later {
  double seconds = 0;   // of CPU time in the unit's optimized code so far
  double expected = 1;  // that the compile takes
  double saves = 0;     // of each further second there, as far as trials are won
  double rate() const { return expected > 0 ? saves * seconds / expected : 0; }
  friend auto operator<=>(const Later& a, const Later& b) { return a.rate() <=> b.rate(); }
  friend bool operator==(const Later& a, const Later& b) { return a.rate() == b.rate(); }
};
using Priority = std::variant<Later, Hot, AtStart, Undo>;

// Seconds that are expected to be saved for each second of compiling, if the unit runs on for as long as it ran. More than can be said of
// what undoes something, or what earlier runs decided.
inline double worth_of(const Priority& priority) {
  // First code is taken to run twice as fast (PolicyConfig::optimized_speedup).
  constexpr double kSavedByFirstCode = 0.5;
  if (const Hot* hot = std::get_if<Hot>(&priority)) return kSavedByFirstCode * hot->rate();
  if (const Later* later = std::get_if<Later>(&priority)) return later->rate();
  return std::numeric_limits<double>::infinity();
}

// Changes that are known to pay: their trials start settled, at this setting.
using Settled = std::map<jit::Site, uint32_t>;

// Of the unit's time, what stalls on each of its loads, as the compiler was told it. The evidence of its episode may be of the whole
// function, or of a time in which the loop had hardly run.
using StallShares = std::map<WasmOffset, double>;

// What is tried in its loops makes a second compile take two to five times as long (second_compiles.h).
inline constexpr double kSecondOfFirst = 3;

struct Job {
  const wasm::Module* module = nullptr;  // a key: it may be gone
  std::weak_ptr<ModuleCode> code;
  feedback::FunctionPlan plan;
  DecisionLog::Id episode = 0;
  Priority priority = Hot();
  Settled settled;
  StallShares stall_shares;       // of compiles before, which this one follows from
  double expected_seconds = 0;    // CPU time that its compile is expected to take; 0: not known
  bool loop_exits = false;        // were asked for
  bool short_loop_exits = false;  // these too
  bool below_guests = false;      // guests go before it: it is compiled on a thread for trials
  bool can_wait = false;          // it is compiled where others have the right of way (right_of_way.h)
  bool cached = false;            // its version is not compiled: it comes out of the code cache
  // Of whole versions, that are in such code.
  std::vector<jit::ChangeKind> cached_changes;

  jit::Unit unit() const { return {plan.function, plan.nest}; }
  // The unit runs in its first code, without what is to be tried (second_compiles.h).
  bool is_second() const { return std::holds_alternative<Later>(priority); }
  // It is hot in baseline code. The other jobs are of what runs in optimized code, or is not hot yet.
  bool is_urgent() const {
    return std::holds_alternative<Hot>(priority) && plan.action == feedback::Action::kOptimize &&
           !plan.only_for_callees;
  }
  // Takes so long to compile that what is short and comes before it does not wait for that.
  bool is_long() const { return expected_seconds > kLongCompileSeconds; }
  // Twice what a loop's own code may take (PolicyConfig::most_nest_seconds).
  static constexpr double kLongCompileSeconds = 0.06;
};

}  // namespace hindsight::rt
