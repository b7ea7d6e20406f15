// The few numbers that describe repeated runs. Medians because a busy machine makes slow outliers, minimum
// and maximum because a spread that is not shown is a spread that is hidden.
#pragma once

#include <span>

namespace hindsight::report {

struct Spread {
  double median = 0, min = 0, max = 0;
};

// For an empty set all is zero. An even count takes the mean of the middle two.
Spread spread_of(std::span<const double> values);

// Precondition: the values are positive. 0 for an empty set.
double geometric_mean(std::span<const double> values);

}  // namespace hindsight::report
