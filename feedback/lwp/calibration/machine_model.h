// The modelled core, set to the machine at hand: what compares the model with samples taken here needs the
// caches that the samples saw.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "feedback/lwp/calibration/calibration.h"

namespace hindsight::lwp {

// What this machine leaves a program of its last-level cache, in bytes. Sizes tried are the second level's size times 2,
// 4, ...; the result is the largest of which the cache answers three of four loads. That is judged by the mean time of a
// random chase of pointers over pages of 4 KiB, between the last level's latency and memory's. Cores that share the
// cache, of other guests of the machine too, leave less than its size. Takes up to a second. 0: there is no third level,
// or not that much of it.
uint64_t last_level_share(const Calibration& calibration);

// Latencies and sizes as calibrated, as words for parse_model. Pure.
std::string machine_words(const Calibration& calibration, uint64_t last_level_share);

// `words` for parse_model, where the first may be "machine". In its place comes what was measured, now or earlier
// (calibration_cache.h); the last level's share is always measured now. Other text is returned as it is.
Result<std::string> resolve_model(std::string_view words);

}  // namespace hindsight::lwp
