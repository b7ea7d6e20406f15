// Evidence of a function in a program with a flat profile.
#pragma once

#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

// One of hundreds of functions that share the time: `samples` at 250 Hz in the whole run, hardly any of late.
inline FunctionEvidence flat_function(double samples) {
  FunctionEvidence e;
  e.function = FuncIndex(7);
  e.name = "part";
  e.code_bytes = 1000;
  e.samples_baseline = 1;
  e.seconds_baseline = 0.004;
  e.total_samples = 700;
  e.samples_run_baseline = samples;
  e.seconds_run_baseline = e.seconds_run = 0.004 * samples;
  e.entered = Entered::kAgain;
  return e;
}

}  // namespace hindsight::feedback
