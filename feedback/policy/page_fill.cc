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
    plan.reason = "no block of the memory was looked at";
    return plan;
  }
  const double untouched_bytes = static_cast<double>(bytes) * e.untouched / seen;
  const std::string what = fmt::format(
      "of {} blocks of 2 MiB looked at in {} MiB of memory {} are full, {} touched in part, {} untouched",
      seen, bytes >> 20, e.full, e.part, e.untouched);
  const double gain = untouched_bytes / 4096 * kSecondsAFault;
  plan.alternatives.push_back(
      {fmt::format("huge pages for {:.0f} MiB before they are touched", untouched_bytes / (1 << 20)), 0,
       gain});
  if (static_cast<double>(bytes) < 2 * config.tlb_reach_bytes) {
    plan.reason = what + ": within what the TLB reaches";
  } else if (e.full < config.min_full_blocks) {
    plan.reason = what + ": not yet known how it is filled";
  } else if (e.full < config.min_full_share * touched) {
    plan.reason = what + ": touched here and there";
  } else if (e.untouched < config.min_untouched_share * seen) {
    plan.reason = what + ": next to nothing is left to ask for";
  } else if (untouched_bytes > config.max_available_share * static_cast<double>(e.available_bytes)) {
    plan.reason = fmt::format("{}: of {} MiB that the machine has left that may take too much", what,
                              e.available_bytes >> 20);
  } else {
    plan.reason = fmt::format("{}: it is being filled, {:.1f} ms of page faults to save", what, 1e3 * gain);
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
