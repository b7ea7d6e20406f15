// The optional instructions that baseline code uses where they exist. SSE4.1 is assumed everywhere.
#pragma once

namespace hindsight::jit::baseline {

struct TargetFeatures {
  bool lzcnt = false;
  bool tzcnt = false;
  bool popcnt = false;
  bool bmi2 = false;
  bool sse42 = false;
  bool avx = false;
  bool avx2 = false;
  bool fma = false;
  static TargetFeatures host();
};

}  // namespace hindsight::jit::baseline
