// Job: a function that is to be compiled, why, and with what.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <variant>

#include "feedback/policy/policy.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/code/module_code.h"

namespace hindsight::rt {

// What comes first, in ascending order. What is hot, the longest runner first. Then what earlier runs decided,
// which is compiled before it is hot. Then a version without what a trial has rejected.
struct Hot {
  double seconds = 0;  // of CPU time in the function so far
  friend auto operator<=>(const Hot&, const Hot&) = default;
};
struct AtStart {
  double gain = 0;  // of what is to be won for each second of compiling, as StartPlan::priority has it
  friend auto operator<=>(const AtStart&, const AtStart&) = default;
};
struct Undo {
  friend auto operator<=>(const Undo&, const Undo&) = default;
};
using Priority = std::variant<Hot, AtStart, Undo>;

// Changes that are known to pay: their trials start settled, at this setting.
using Settled = std::map<jit::Site, uint32_t>;

struct Job {
  const wasm::Module* module = nullptr;  // a key: it may be gone
  std::weak_ptr<ModuleCode> code;
  feedback::FunctionPlan plan;
  DecisionLog::Id episode = 0;
  Priority priority;
  Settled settled;
  bool loop_exits = false;  // were asked for
  bool cached = false;      // its version is not compiled: it comes out of the code cache
};

}  // namespace hindsight::rt
