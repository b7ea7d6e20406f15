#include "feedback/policy/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hindsight::feedback {
namespace {

constexpr double kKiB = 1024;

}  // namespace

LayoutPlan decide_layout(const LayoutEvidence& e, const PolicyConfig& config) {
  LayoutPlan plan;
  plan.alternatives.push_back({"nothing", 0, 0});
  if (!config.changes[jit::ChangeKind::kSplitCold]) {
    plan.reason = "decision 'code-layout' is switched off";
    return plan;
  }
  double samples = 0, tried_samples = 0;
  std::vector<const LayoutEvidence::Function*> order;
  for (const LayoutEvidence::Function& f : e.functions) {
    samples += f.samples;
    if (f.tried) tried_samples += f.samples;
    order.push_back(&f);
  }
  if (samples < config.min_layout_samples || e.samples <= 0) {
    plan.wait = true;
    plan.reason = fmt::format("{:.0f} samples in optimized code: too few to decide", samples);
    return plan;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->samples > b->samples; });
  double held = 0, hot_bytes = 0;
  size_t hot = 0;
  while (hot < order.size() && held < config.hot_code_share * samples) {
    held += order[hot]->samples;
    hot_bytes += order[hot]->code_bytes;
    ++hot;
  }
  const double share = std::min(1.0, samples / e.samples);
  const double beyond = hot_bytes > 0 ? std::max(0.0, 1 - config.itlb_reach_bytes / hot_bytes) : 0;
  plan.estimated_gain = share * config.layout_share * beyond;
  const double gain = plan.estimated_gain * e.seconds;
  const double pages = std::ceil(hot_bytes / static_cast<double>(kHugePageBytes));
  const double cost = config.layout_seconds_per_byte * pages * static_cast<double>(kHugePageBytes) +
                      config.layout_seconds_per_function * static_cast<double>(hot);
  plan.alternatives.push_back(
      {fmt::format("place {} hot functions of {:.0f} KiB together", hot, hot_bytes / kKiB), cost, gain});
  const std::string seen =
      fmt::format("{2} functions of {3:.0f} KiB hold {0:.0f} % of {1:.0f} samples in optimized code",
                  100 * held / samples, samples, hot, hot_bytes / kKiB);
  if (beyond == 0) {
    plan.reason = fmt::format("{}: they fit into the {:.0f} KiB that the instruction TLB covers", seen,
                              config.itlb_reach_bytes / kKiB);
  } else if (e.layouts >= config.max_layouts) {
    plan.reason = fmt::format("{}: placed {} times already", seen, e.layouts);
  } else if (e.layouts > 0 && samples - tried_samples < config.min_layout_news * samples) {
    plan.reason = fmt::format("{}: {:.0f} % of the samples are in code that was placed before", seen,
                              100 * tried_samples / samples);
  } else if (gain <= cost) {
    plan.wait = true;
    plan.reason =
        fmt::format("{}: moving gains about {:.1f} ms and costs {:.1f} ms", seen, 1e3 * gain, 1e3 * cost);
  } else if (e.seconds_settled < config.min_layout_settled &&
             (share < config.min_layout_share || e.layouts + 1 >= config.max_layouts)) {
    // In a flat profile versions are made for as long as the program runs.
    plan.wait = true;
    plan.reason = fmt::format("{}, {:.0f} % of all samples: waits, as functions are still being compiled",
                              seen, 100 * share);
  } else {
    plan.move = true;
    plan.reason =
        fmt::format("{}: moving gains about {:.1f} ms and costs {:.1f} ms", seen, 1e3 * gain, 1e3 * cost);
  }
  return plan;
}

LayoutEpisode make_layout_episode(const LayoutEvidence& evidence, const LayoutPlan& plan) {
  LayoutEpisode episode;
  episode.evidence = evidence;
  episode.moves = plan.move;
  episode.reason = plan.reason;
  episode.alternatives = describe_alternatives(plan.alternatives);
  episode.estimated_gain = plan.estimated_gain;
  return episode;
}

bool replays(const LayoutEpisode& episode, const PolicyConfig& config) {
  return decide_layout(episode.evidence, config).move == episode.moves;
}

}  // namespace hindsight::feedback
