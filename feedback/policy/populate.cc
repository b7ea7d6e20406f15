#include "feedback/policy/populate.h"

#include <algorithm>

#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

bool populates_growth(const GrowthEvidence& e, const PolicyConfig& config) {
  return config.populate && static_cast<double>(e.step_bytes) <= config.max_growth_step_bytes &&
         static_cast<double>(e.watched_bytes) >= config.min_growth_watched_bytes &&
         static_cast<double>(e.touched_bytes) >=
             config.min_growth_touched_share * static_cast<double>(e.watched_bytes);
}

bool watches_growth(uint64_t populated_steps, const PolicyConfig& config) {
  return populated_steps % std::max<uint64_t>(1, static_cast<uint64_t>(config.growth_watch_every)) == 0;
}

bool is_told(const GrowthTimes& times, const PolicyConfig& config) {
  return times.pairs >= config.min_growth_pairs;
}

bool growth_lost(const GrowthTimes& times, const PolicyConfig& config) {
  return is_told(times, config) && times.ratio * config.max_growth_slowdown < 1;
}

std::vector<uint32_t> blocks_ahead(std::span<const FillBlock> blocks, uint32_t window_blocks) {
  std::vector<uint32_t> ahead;
  for (size_t front = 0; front < blocks.size(); ++front) {
    if (blocks[front] != FillBlock::kJustTouched) continue;
    // The block behind the last one that is made stays untouched, and so says when the guest comes by.
    for (size_t at = front + 1; at + 1 < blocks.size() && at <= front + window_blocks; ++at) {
      if (blocks[at] != FillBlock::kUntouched || blocks[at + 1] != FillBlock::kUntouched) break;
      ahead.push_back(static_cast<uint32_t>(at));
    }
  }
  return ahead;
}

uint32_t window_ahead(uint32_t advances, uint32_t touched_blocks, const PolicyConfig& config) {
  constexpr auto kBlock = static_cast<double>(kHugePageBytes);
  const double first = config.first_window_bytes / kBlock;
  const double most = std::min(config.max_window_bytes / kBlock,
                               config.max_window_share * static_cast<double>(touched_blocks));
  const double wanted = first * static_cast<double>(uint64_t{1} << std::min(advances, 20u));
  constexpr double kMost = 1 << 20;
  return static_cast<uint32_t>(std::min(kMost, std::max(first, std::min(wanted, most))));
}

}  // namespace hindsight::feedback
