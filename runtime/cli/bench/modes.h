// The modes of `hindsight bench`: how the engine is set up for a run. All but `baseline` have the same two compilers and
// differ in what they are told.
//
//     baseline             baseline code alone, nothing watched
//     plain                samples of time say what is hot, and that is optimized; nothing is counted
//     optimized            the same with everything counted that feedback needs, and no use made of it
//     FAMILY[+FAMILY...]   the same with the decisions of these families
//     feedback             all decisions
//     feedback-NAME        all but one decision, or all but one family
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/engine/hindsight.h"
#include "runtime/report/bench_results.h"

namespace hindsight::cli {

// Decisions that are about the same thing. Every decision but *optimize* is in one of them.
struct Family {
  std::string_view name;
  std::array<std::string_view, 4> decisions;  // empty ones at the end
};
// In the order in which `--split` adds them. What needs no code of ours comes first, then what single operations cost.
// Last is where code lies, and when it is entered and left.
inline constexpr std::array kFamilies{
    Family{"pages", {"huge-pages", "populate"}},
    Family{"loads", {"prefetch", "interleave", "jump-pointers", "speculate"}},
    Family{"branches", {"select", "branch", "weigh-branches"}},
    Family{"calls", {"inline-calls"}},
    Family{"values", {"values"}},
    Family{"entry", {"code-layout", "follow-shifts"}},
};

// Sets up what `mode` names; what it does not speak of stays. Error: kUsage, with the words that are modes.
Status apply_mode(std::string_view mode, EngineConfig& config);

// plain, optimized, then one family more each time, and feedback with all. So each step's gain is that of one family,
// on top of those before it.
std::vector<std::string> split_modes();
// The steps between them, named by what they add; the first is what counting adds, which is a loss.
std::vector<report::SplitStep> split_steps();

}  // namespace hindsight::cli
