#include "runtime/adaptive/experiments/growth_trial.h"

#include <vector>

#include "runtime/adaptive/experiments/median.h"

namespace hindsight::rt {

void GrowthTrial::add(const Step& step) {
  if (step.bytes == 0 || step.seconds <= 0) return interrupt();
  const auto units = [](const Step& of) { return static_cast<double>(of.bytes) / kUnitBytes; };
  Sum& sum = step.made ? made_sum_ : left_sum_;
  sum.units += units(step);
  sum.faults += static_cast<double>(step.faults);
  if (step.made && left_.bytes != 0) {
    if (pairs_.size() == kMostPairs) pairs_.pop_front();
    pairs_.push_back({left_.seconds / units(left_), step.seconds / units(step)});
  }
  left_ = step.made ? Step{} : step;
}

feedback::GrowthTimes GrowthTrial::times() const {
  feedback::GrowthTimes times;
  times.pairs = static_cast<uint32_t>(pairs_.size());
  std::vector<double> ratios, left, made;
  for (const Pair& pair : pairs_) {
    ratios.push_back(pair.left_seconds / pair.made_seconds);
    left.push_back(pair.left_seconds);
    made.push_back(pair.made_seconds);
  }
  times.left_seconds = median(left);
  times.made_seconds = median(made);
  times.ratio = median(ratios);
  if (left_sum_.units > 0) times.left_faults = left_sum_.faults / left_sum_.units;
  if (made_sum_.units > 0) times.made_faults = made_sum_.faults / made_sum_.units;
  return times;
}

}  // namespace hindsight::rt
