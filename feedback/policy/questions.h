// decide() as a table of questions, asked in order until one of them has the answer. Private to the room.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "feedback/policy/changes/change_policy.h"
#include "feedback/policy/policy.h"

namespace hindsight::feedback {

struct Case {
  Case(const FunctionEvidence& evidence, const PolicyConfig& policy);
  void offer(std::string name, double cost, double gain) {
    plan.alternatives.push_back({std::move(name), cost, gain});
  }
  // Decided, or at least answered: with this action, for this reason.
  bool answer(Action action, std::string reason);

  const FunctionEvidence& e;
  const PolicyConfig& config;
  const double compile_cost;
  FunctionPlan plan;
};

// True: it is decided, and `plan` says what. False: `plan` has the alternatives that were weighed, and nothing else.
using Question = bool (*)(Case&);

// The questions for a function that runs baseline code (first_compile.cc), and for one that was compiled
// (later_compiles.cc).
std::span<const Question> first_questions();
std::span<const Question> later_questions();

// A plan about one of the function's loops as a nest, first compile or later one, or that such a plan is waited for. None:
// the function is decided about as a whole. That is so wherever nothing is known of its loops as nests (nest_compiles.cc).
std::optional<FunctionPlan> decide_nest(const FunctionEvidence& e, const PolicyConfig& config);
// Nests are inside of what is compiled for the first time: this loop, or the function. What was not possible in one of them alone,
// or did not pay, may in that: a search has the loop around it now, and what was fetched ahead in each row is fetched rows ahead.
void forget_of_nests(FunctionEvidence& e, const LoopEvidence* within);
// Whether a loop that can be a nest is what runs in baseline code.
bool is_for_nests(const FunctionEvidence& e, const PolicyConfig& config);

// What nests and whole functions are asked alike.
// Everything that there is to ask for in a first compile.
std::vector<Candidate> propose_all(const Case& c);
// Offers the compile by itself, and with each kind of change that there may be in it.
void weigh_changes(Case& c);
// Why the compile would come too early. Of several reasons the one that optimized code would not show.
std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config);
// Why to wait for what its next call would say: whether it is called again. Not called so far, and not yet seen to sit in a
// loop. A function may take a small part of the time, between calls of others. It is not waited for as long as it takes to run
// that long itself.
std::optional<std::string> wants_its_next_call(const FunctionEvidence& e, const PolicyConfig& config);
// What a plan says of first code that came before it was known what to try in it.
inline constexpr std::string_view kTriedLater = "; what is to be tried in it is asked later";
// Of such code: is it known by now, and worth a compile? `samples` of baseline code and it; `seconds` that it ran; `function`: that it is of.
bool ask_what_to_try(Case& c, double samples, double seconds, const FunctionEvidence& function);
// Is there a stall that nobody has tried to remove? Answers in any case.
bool ask_for_new_stalls(Case& c);
// Do its calls go elsewhere by now, or its time? Then the plan says what to do about it.
bool ask_whether_it_moved(Case& c);
// How many more compiles are earned by running so long.
uint32_t earned_compiles(double seconds_run, const PolicyConfig& config);

// Loops run on in baseline code, though there is optimized code.
bool is_left_behind(const FunctionEvidence& e, const PolicyConfig& config);
// Loops run on in an optimized version before the published one.
bool has_stayed(const FunctionEvidence& e, const PolicyConfig& config);
// The hottest loop, and of the loops around it as many as may be, outermost first. Where optimized code runs it can be
// left by some loops only, of which the new code then has the innermost around the hottest one. None for a function
// that is entered again anyway: its next call runs the new code.
std::vector<LoopIndex> plan_osr_loops(const FunctionEvidence& e, const PolicyConfig& config);

}  // namespace hindsight::feedback
