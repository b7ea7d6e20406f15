#include "feedback/profile/sample_shift.h"

#include <cmath>
#include <numbers>

namespace hindsight::feedback {

void SampleShift::add(uint32_t place) {
  if (settled_ < kSettling) {
    ++settled_;
    return;
  }
  if (references_ < kReference) {
    ++references_;
    ++places_[place].reference;
    return;
  }
  uint32_t& slot = last_[recents_ % kRecent];
  if (recents_ >= kRecent) {
    const auto oldest = places_.find(slot);
    if (--oldest->second.recent == 0 && oldest->second.reference == 0) places_.erase(oldest);
  }
  ++recents_;
  slot = place;
  ++places_[place].recent;
}

double SampleShift::share() const {
  if (recents_ < kRecent) return 0;
  constexpr double kFirst = kReference, kLast = kRecent;
  double distance = 0, chance = 0;
  for (const auto& [place, counts] : places_) {
    distance += std::abs(counts.reference / kFirst - counts.recent / kLast) / 2;
    // Half of what the difference of a place seen so often is on average: about normal, but for those seen once.
    const uint32_t seen = counts.reference + counts.recent;
    const double both = seen / (kFirst + kLast);
    chance +=
        seen == 1 ? both : std::sqrt(both * (1 - both) * (1 / kFirst + 1 / kLast) / (2 * std::numbers::pi));
  }
  return distance - chance;
}

}  // namespace hindsight::feedback
