// What tests ask of an engine beside its configuration (runtime/engine/engine_for_tests.h): ways into code that a
// run takes rarely. Guests compute the same whatever stands here.
#pragma once

#include <cstdint>

namespace hindsight {

struct TestKnobs {
  // Tier optimized without profiling. Not 0: hints drawn from this seed go to the compiler, and changes switch between
  // with and without them at each strip of a loop. No code is kept.
  uint32_t random_hints = 0;
  // The same: functions that have loops begin in baseline code, and enter optimized code at the first loop's head.
  bool enter_at_loops = false;
  // With enter_at_loops: such code is left again, for other code of the function, at the first loop that can be left.
  bool leave_at_loops = false;
  // With leave_at_loops: for baseline code.
  bool leave_for_baseline = false;
  // Tier optimized without profiling: functions that have loops stay in baseline code. The outermost of these that can be nests are compiled
  // as nests, and published with it.
  bool enter_at_nests = false;
  // With enter_at_nests: the innermost ones.
  bool inner_nests = false;
  // Tier auto. Not 0: trials do not go by the processor. A change makes its loop so many times as fast, and a call in a
  // version with a decision counts for so many. So below 1 they lose and above it they win. Whole versions go on trial
  // as soon as they can.
  double trial_bias = 0;
};

}  // namespace hindsight
