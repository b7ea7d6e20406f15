// How far a decision of feedback has come: the same words in profiles, in reports and in the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hindsight {

// Profiles hold the words: a new state leaves those of the others as they are.
enum class DecisionState : uint8_t {
  kNone,         // nothing yet
  kQueued,       // to be carried out
  kCounting,     // how code is to be placed is found out: its calls are counted
  kPlacing,      // code is copied to where it is to lie
  kMoving,       // pages are moved
  kMoved,        // they are, and what that gave is not known yet
  kCompiled,     // its code runs
  kTrial,        // it is being measured
  kKept,         // measured, and it pays
  kRolledBack,   // measured, and what was there before is back
  kRefused,      // the compiler refused all that was new in it: the code that ran before stays
  kNotPossible,  // of one change: it could not be made there
  kFailed,
  kAbandoned,  // nobody waits for it any more
  kObserved,   // baseline code runs, to be seen again
  kUnjudged,   // carried out, and nothing says what it gave: no later run takes it for one that paid
};
inline constexpr DecisionState kLastDecisionState = DecisionState::kUnjudged;

constexpr const char* to_string(DecisionState state) {
  switch (state) {
    case DecisionState::kNone:
      return "";
    case DecisionState::kQueued:
      return "queued";
    case DecisionState::kCounting:
      return "counting calls";
    case DecisionState::kPlacing:
      return "placing";
    case DecisionState::kMoving:
      return "moving";
    case DecisionState::kMoved:
      return "moved";
    case DecisionState::kCompiled:
      return "compiled";
    case DecisionState::kTrial:
      return "trial";
    case DecisionState::kKept:
      return "kept";
    case DecisionState::kRolledBack:
      return "rolled back";
    case DecisionState::kRefused:
      return "nothing new came of it";
    case DecisionState::kNotPossible:
      return "not possible";
    case DecisionState::kFailed:
      return "failed";
    case DecisionState::kAbandoned:
      return "abandoned";
    case DecisionState::kObserved:
      return "back in baseline code";
    case DecisionState::kUnjudged:
      return "unjudged";
  }
  return "unknown";
}

// "failed: the function is too large". `why`: beside the state, may be empty.
inline std::string state_text(DecisionState state, std::string_view why) {
  std::string text = to_string(state);
  if (!why.empty()) text.append(": ").append(why);
  return text;
}

}  // namespace hindsight
