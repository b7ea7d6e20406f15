// How often to sample: steadily at 250 Hz, in bursts of 1 or 4 kHz while a decision needs evidence. Pure,
// like every decision: state in, rate and reason out.
//
// A sample costs about 13 us of the guest's time where it was measured, most of it the virtual timer
// interrupt. So 250 Hz is 0.3 % and 4 kHz is 5 %. Bursts are paid from a budget of CPU time. A part of it
// is fixed, because programs are learned at their start; the rest is a share of the run so far. When it is
// spent the rate is steady, whoever asks.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/provenance.h"

namespace hindsight::feedback {

struct SamplingConfig {
  uint32_t steady_hz = 250;
  uint32_t follow_hz = 1000;  // new optimized code, or pages that move: does anything stall there?
  uint32_t learn_hz = 4000;   // code that nothing is known of, or a decision that waits for samples
  double follow_seconds = 0.25;
  double learn_seconds = 0.12;
  double seconds_a_sample = 13e-6;
  double budget_seconds = 0.020;  // CPU time that bursts may cost beyond the steady rate
  double budget_share = 0.001;    // of the run so far, on top
  double place_seconds = 0.010;
  double budget_seconds_a_place = 0.0005;  // on top, for each loop that begins to run in baseline code,
  double most_budget_for_places = 0.020;   // up to so much
};

inline constexpr std::array kSamplingParameters = [] {
  using enum Unit;
  using enum Provenance::Origin;
  constexpr SamplingConfig kConfig;
  return std::array{
      Constant{"steady_hz", kConfig.steady_hz, {kHertz, kMeasured, "costs 0.3 % of a loop that computes"}},
      Constant{
          "follow_hz",
          kConfig.follow_hz,
          {kHertz, kMeasured,
           "costs 1.3 % for a quarter of a second, and shows whether anything stalls in new optimized code"}},
      Constant{
          "learn_hz",
          kConfig.learn_hz,
          {kHertz, kMeasured, "costs 5.3 % for an eighth of a second; 100 samples, in 25 ms, name a load"}},
      Constant{"follow_seconds", kConfig.follow_seconds, {kSeconds, kDerived, "takes 250 samples"}},
      Constant{"learn_seconds", kConfig.learn_seconds, {kSeconds, kDerived, "takes 480 samples"}},
      Constant{"seconds_a_sample",
               kConfig.seconds_a_sample,
               {kSeconds, kMeasured, "is mostly the virtual timer's interrupt"}},
      Constant{"budget_seconds",
               kConfig.budget_seconds,
               {kSeconds, kBound, "lets bursts cost so much in all: 1,600 samples"}},
      Constant{
          "budget_share", kConfig.budget_share, {kShare, kBound, "and this share of the run so far on top"}},
      Constant{"place_seconds",
               kConfig.place_seconds,
               {kSeconds, kDerived,
                "looks so long at learn_hz at a loop that begins to run in baseline code: 40 samples"}},
      Constant{"budget_seconds_a_place",
               kConfig.budget_seconds_a_place,
               {kSeconds, kDerived, "pays for these 40 samples"}},
      Constant{"most_budget_for_places",
               kConfig.most_budget_for_places,
               {kSeconds, kBound, "lets bursts for such loops cost so much in all: 40 loops"}},
  };
}();

struct SamplingState {
  double now = 0;                                                 // seconds since the start
  double new_code = -std::numeric_limits<double>::infinity();     // when code nobody knows last began to run
  double new_version = -std::numeric_limits<double>::infinity();  // when a compile was last asked for or done
  double new_place =
      -std::numeric_limits<double>::infinity();  // when a loop last began to run in baseline code
  double places = 0;                             // how many did
  bool waiting = false;                          // the policy answered "wait" about some function
  bool comparing = false;                        // pages move, and stalls on both kinds are compared
  double spent_seconds = 0;                      // CPU time that bursts have cost, burst_cost() summed up
};

struct SamplingPlan {
  uint32_t hz = 0;
  std::string_view reason;
};

SamplingPlan plan_sampling(const SamplingState& state, const SamplingConfig& config);

// What `seconds` at `hz` cost beyond the steady rate.
double burst_cost(uint32_t hz, double seconds, const SamplingConfig& config);

}  // namespace hindsight::feedback
