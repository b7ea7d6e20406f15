// CompileScale: how long compiles take in this process, for each second that the policy's parameters promise. Those were
// fitted on another machine, perhaps, and with other programs.
//
// Any thread. Nothing is published by the atomic (relaxed): of two compiles that end at the same time, one may not count.
#pragma once

#include <algorithm>
#include <atomic>

namespace hindsight::rt {

class CompileScale {
 public:
  double get() const { return scale_.load(std::memory_order_relaxed); }
  void note(double expected, double measured) {
    if (expected <= 0 || measured <= 0) return;
    const double ratio = std::clamp(measured / expected, kLeast, kMost);
    scale_.store((1 - kWeight) * get() + kWeight * ratio, std::memory_order_relaxed);
  }

 private:
  static constexpr double kWeight = 0.25;            // of the last compile
  static constexpr double kLeast = 0.25, kMost = 8;  // a busy machine says little about the next compile

  std::atomic<double> scale_{1};
};

}  // namespace hindsight::rt
