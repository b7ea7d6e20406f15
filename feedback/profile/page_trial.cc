#include "feedback/profile/page_trial.h"

#include <algorithm>
#include <cmath>

namespace hindsight::feedback {
namespace {

// Few addresses are known before a move. How they are spread counts beside so many that are spread evenly.
constexpr double kEvenSamples = 200;
// exp(4) is more than any page walk: beyond it nothing is looked for.
constexpr double kMostLogRatio = 4;

double probability(double log_ratio, double share) {
  const double ratio = std::exp(log_ratio);
  return ratio * share / (ratio * share + 1 - share);
}

}  // namespace

PageTrial::PageTrial(const std::vector<PageEvidence::Region>& regions) {
  if (regions.empty()) return;
  known_ = kEvenSamples;
  for (const PageEvidence::Region& region : regions) known_ += static_cast<double>(region.addresses);
  const double even = kEvenSamples / static_cast<double>(regions.size());
  for (const PageEvidence::Region& region : regions)
    regions_[region.index].share = (static_cast<double>(region.addresses) + even) / known_;
}

void PageTrial::moved(uint64_t region) {
  const auto found = regions_.find(region);
  if (found == regions_.end() || found->second.moved) return;
  found->second.moved = true;
  moved_share_ = std::min(1.0, moved_share_ + found->second.share);
}

void PageTrial::add(uint64_t region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return;
  Bin& bin = bins_[std::min(kBins - 1, static_cast<size_t>(moved_share_ * kBins))];
  bin.all += 1;
  bin.moved += found->second.moved ? 1 : 0;
  bin.share_sum += moved_share_;
}

PageGain PageTrial::gain() const {
  struct Point {
    double share, all, moved;
  };
  std::vector<Point> points;
  PageGain gain;
  for (const Bin& bin : bins_) {
    if (bin.all == 0) continue;
    const double share = bin.share_sum / static_cast<double>(bin.all);
    // All or none of it had moved: such a sample says nothing.
    if (share < 0.5 / kBins || share > 1 - 0.5 / kBins) continue;
    points.push_back({share, static_cast<double>(bin.all), static_cast<double>(bin.moved)});
    gain.samples += bin.all;
  }
  if (gain.samples == 0) return gain;
  // The expected count grows with the ratio.
  double low = -kMostLogRatio, high = kMostLogRatio;
  for (int step = 0; step < 50; ++step) {
    const double middle = (low + high) / 2;
    double excess = 0;
    for (const Point& point : points) excess += point.moved - point.all * probability(middle, point.share);
    (excess > 0 ? low : high) = middle;
  }
  const double log_ratio = (low + high) / 2;
  double information = 0, share_information = 0;
  for (const Point& point : points) {
    const double p = probability(log_ratio, point.share);
    information += point.all * p * (1 - p);
    share_information += point.all * point.share * (1 - point.share);
  }
  const double mean = share_information / static_cast<double>(gain.samples);  // of m (1 - m)
  const double ratio = std::exp(log_ratio);
  gain.saved = 1 - ratio;
  gain.error = ratio * std::sqrt(1 / std::max(information, 1e-9) + 1 / (known_ * mean));
  return gain;
}

}  // namespace hindsight::feedback
