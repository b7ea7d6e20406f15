#include "feedback/policy/page_fill.h"

#include <fmt/format.h>

namespace hindsight::feedback {

PagePlan decide_fill(const FillEvidence& e, const PolicyConfig& config) {
  PagePlan plan;
  plan.alternatives.push_back({"nothing", 0, 0});
  if (!config.huge_pages) {
    plan.reason = "decision 'huge-pages' is switched off";
    return plan;
  }
  const uint64_t bytes = e.end - e.begin;
  const double touched = double{0} + e.full + e.part;
  const double seen = touched + e.untouched;
  if (seen == 0) {
    plan.reason = "no block of the memory was examined";
    return plan;
  }
  const double untouched_bytes = static_cast<double>(bytes) * e.untouched / seen;
  const std::string what = fmt::format(
      "{2} of {0} examined blocks of 2 MiB in {1} MiB of memory are full, {3} touched in part, {4} untouched",
      seen, bytes >> 20, e.full, e.part, e.untouched);
  const double gain = untouched_bytes / 4096 * kSecondsAFault;
  plan.alternatives.push_back(
      {fmt::format("ask for huge pages for {:.0f} MiB before their first touch", untouched_bytes / (1 << 20)),
       0, gain});
  if (static_cast<double>(bytes) < 2 * config.tlb_reach_bytes) {
    plan.reason = what + ": the TLB covers that";
  } else if (bytes < 2 * e.vain_bytes) {
    plan.reason = fmt::format("{}: {} MiB were asked for in vain by earlier runs", what, e.vain_bytes >> 20);
  } else if (e.full < config.min_full_blocks) {
    plan.reason = what + ": too few are full to tell how the memory is filled";
  } else if (e.full < config.min_full_share * touched) {
    plan.reason = what + ": the memory is touched in scattered places";
  } else if (e.untouched < config.min_untouched_share * seen) {
    plan.reason = what + ": too little of the memory is left untouched";
  } else if (untouched_bytes > config.max_available_share * static_cast<double>(e.available_bytes)) {
    plan.reason = fmt::format("{}: that may take too much of the {} MiB that the machine has left", what,
                              e.available_bytes >> 20);
  } else {
    plan.reason =
        fmt::format("{}: the memory is being filled, and huge pages save about {:.1f} ms of page faults",
                    what, 1e3 * gain);
    plan.ranges = {{e.begin, e.end}};
    plan.bytes = bytes;
  }
  return plan;
}

bool fills_slower(double before, double since, const PolicyConfig& config) {
  return before > 0 && since > 0 && before > config.max_fill_slowdown * since;
}

bool goes_on_filling(const FillEvidence& when_asked, uint32_t untouched_now) {
  return 2 * uint64_t{untouched_now} <= when_asked.untouched;
}

}  // namespace hindsight::feedback
