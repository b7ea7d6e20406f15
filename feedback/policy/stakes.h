// Stakes: what it costs to find out whether changes of code pay, and what they may save if they do.
//
// A unit that ran so long is taken to run as long again (as in every online decision between renting and buying: R. Karp, "On-Line
// Algorithms Versus Off-Line Algorithms", 1992). So a compile for trials is worth its while where
//
//     seconds that the unit ran * share that may be saved  >=  price * seconds that the compile takes
//     price = share of the compile's time that the guest loses / share of trials that are won
//
// With a processor of its own a compile takes little from the guest. On one processor it takes all. And a program in which nothing
// was won so far is asked ever less.
#pragma once

#include "feedback/policy/policy.h"

namespace hindsight::feedback {

// How it went so far in this process.
struct TrialRecord {
  double taken = 0;  // of compiles' CPU time, how much longer they waited for the processor: 0 to 1
  uint32_t won = 0, lost = 0;
};
// Of trials, how many are expected to be won.
double share_won(const TrialRecord& record, const PolicyConfig& config);
double price_of_trying(const TrialRecord& record, const PolicyConfig& config);

struct Stake {
  double seconds_run = 0;
  double may_save = 0;         // of each further second
  double compile_seconds = 0;  // CPU time, expected
};
bool is_worth_trying(const Stake& stake, const TrialRecord& record, const PolicyConfig& config);

// Of the unit's time, by what is to be tried of the plan: an upper bound. Of several changes of one load, by the best. With
// jump pointers, all that the loop stalls on may be saved.
double may_save(const FunctionPlan& plan, const FunctionEvidence& evidence);

}  // namespace hindsight::feedback
