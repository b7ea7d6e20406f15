#include "feedback/policy/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feedback/policy/page_fill.h"

namespace hindsight::feedback {
namespace {

// Samples are few: what lies between two sampled regions that are near each other is touched as well.
std::vector<PageRange> ranges_of(const std::vector<PageEvidence::Region>& regions, uint64_t gap) {
  std::vector<PageRange> ranges;
  for (const PageEvidence::Region& region : regions) {
    const uint64_t begin = region.index * kHugePageBytes;
    if (!ranges.empty() && begin - ranges.back().end <= gap)
      ranges.back().end = begin + kHugePageBytes;
    else
      ranges.push_back({begin, begin + kHugePageBytes});
  }
  return ranges;
}

// The first so many bytes of the largest of them.
PageRange probe_of(const std::vector<PageRange>& ranges, double bytes) {
  PageRange probe = *std::max_element(
      ranges.begin(), ranges.end(),
      [](const PageRange& a, const PageRange& b) { return a.end - a.begin < b.end - b.begin; });
  const uint64_t pages = std::max<uint64_t>(1, static_cast<uint64_t>(bytes) / kHugePageBytes);
  probe.end = std::min(probe.end, probe.begin + pages * kHugePageBytes);
  return probe;
}

template <typename Ranges>
uint64_t bytes_of(const Ranges& ranges) {
  uint64_t bytes = 0;
  for (const auto& range : ranges) bytes += range.end - range.begin;
  return bytes;
}

// Of the time that the run goes on, which is as long as it took up to now, that in which the pages have moved. They do so one
// after the other, so while they move half of them have.
double seconds_moved(double seconds, double moving_seconds) {
  return moving_seconds < seconds ? seconds - moving_seconds / 2 : seconds * seconds / (2 * moving_seconds);
}

bool gives_up_untold(const PageEpisode& earlier, const PolicyConfig& config) {
  return earlier.state == DecisionState::kUnjudged && earlier.unjudged >= config.most_unjudged_runs;
}

}  // namespace

PagePlan decide_pages(const PageEvidence& e, const PolicyConfig& config) {
  if (e.fill) return decide_fill(*e.fill, config);
  PagePlan plan;
  plan.alternatives.push_back({"nothing", 0, 0});
  if (!config.huge_pages) {
    plan.reason = "decision 'huge-pages' is switched off";
    return plan;
  }
  const auto addresses = static_cast<double>(e.addresses);
  if (addresses < config.min_page_addresses || e.samples <= 0) {
    plan.reason = fmt::format("{} stalled addresses outside of huge pages: too few to decide", e.addresses);
    return plan;
  }
  const double seen_share = std::min(1.0, e.stall_samples / e.samples);
  const bool is_idle = e.seconds_idle > config.max_page_idle_seconds;
  const double stall_share = std::min(1.0, std::max(is_idle ? 0 : seen_share, e.hidden_share));
  std::vector<PageRange> ranges = ranges_of(e.regions, static_cast<uint64_t>(config.max_page_gap_bytes));
  const uint64_t bytes = bytes_of(ranges);
  const auto footprint = static_cast<double>(bytes);
  const double beyond = std::max(0.0, 1 - config.tlb_reach_bytes / footprint);
  plan.stall_share = stall_share;
  plan.estimated_gain = stall_share * config.walk_share_of_stalls * beyond;
  const double gain = plan.estimated_gain * seconds_moved(e.seconds, e.moving_seconds_per_byte * footprint);
  const bool measured = e.move_seconds_per_byte > 0;
  const double cost = (measured ? e.move_seconds_per_byte : config.most_move_seconds_per_byte) * footprint;
  // Without a measurement: the part as slow as it can be, and the whole as quick as it can be after twice the time.
  const double least = config.least_move_seconds_per_byte * footprint;
  const double to_find_out = std::max(config.most_move_seconds_per_byte * config.page_probe_bytes, least / 2);
  plan.alternatives.push_back(
      {fmt::format("move {:.0f} MiB onto huge pages", footprint / (1 << 20)), cost, gain});
  const std::string seen = fmt::format(
      "{} stalled addresses on {} pages in {:.0f} MiB, and {:.0f} of {:.0f} samples ({:.0f} %) stall since "
      "the "
      "first of them {:.2f} s ago{}{}",
      e.addresses, e.distinct_pages, footprint / (1 << 20), e.stall_samples, e.samples, 100 * seen_share,
      e.seconds, is_idle ? fmt::format(", none in the last {:.2f} s", e.seconds_idle) : "",
      e.hidden_share > 0
          ? fmt::format(", or {:.0f} % with the stalls that prefetches hide", 100 * e.hidden_share)
          : "");
  if (static_cast<double>(e.distinct_pages) <
      config.min_page_spread * std::min(addresses, static_cast<double>(kMaxPagesSeen))) {
    plan.reason = seen + ": they share few pages";
  } else if (footprint < 2 * config.tlb_reach_bytes) {
    plan.reason = seen + ": the TLB covers that";
  } else if (footprint < 2 * static_cast<double>(e.vain_bytes)) {
    plan.reason = fmt::format("{}: {} MiB were moved in vain before", seen, e.vain_bytes >> 20);
  } else {
    plan.reason =
        fmt::format("{}: moving gains about {:.1f} ms and costs {:.1f} ms, {}", seen, 1e3 * gain, 1e3 * cost,
                    !measured ? "if the kernel is slow"
                    : e.moving_seconds_per_byte == 0
                        ? "by what moves took so far"
                        : fmt::format("by what moves took so far, which is {:.2f} s for that",
                                      e.moving_seconds_per_byte * footprint));
    plan.most_seconds = gain / config.min_page_return;
    if (gain > config.min_page_return * cost) {
      plan.ranges = ranges;
      plan.whole = std::move(ranges);
      plan.bytes = bytes;
    } else if (!measured && gain > config.min_page_return * to_find_out) {
      plan.ranges = {probe_of(ranges, config.page_probe_bytes)};
      plan.whole = std::move(ranges);
      plan.bytes = plan.ranges.front().end - plan.ranges.front().begin;
      plan.probe = true;
      plan.reason += fmt::format(", or {:.1f} ms if it is quick: moves {} MiB to find out", 1e3 * least,
                                 plan.bytes >> 20);
    }
  }
  return plan;
}

uint64_t bytes_before_hold(const PagePlan& plan, const PolicyConfig& config) {
  const double bytes =
      std::max(config.page_probe_bytes, config.page_trial_share * static_cast<double>(plan.bytes));
  return plan.probe || 2 * bytes > static_cast<double>(plan.bytes) ? 0 : static_cast<uint64_t>(bytes);
}

bool is_told(const PageGain& gain, const PolicyConfig& config) {
  return static_cast<double>(gain.samples) >= config.min_page_trial_samples &&
         config.page_trial_errors * gain.error <= config.max_page_trial_error * std::abs(1 - gain.saved);
}

PageJudgement judge_pages(const PageProgress& progress, const PagePlan& plan, const PolicyConfig& config) {
  const PageGain& gain = progress.gain;
  const double margin = config.page_trial_errors * gain.error;
  PageJudgement judgement;
  const bool told = is_told(gain, config);
  if (gain.samples == 0)
    judgement.words = "no stall was sampled while the pages moved";
  else if (!told)
    judgement.words = fmt::format("{} stall{} sampled while the pages moved", gain.samples,
                                  gain.samples == 1 ? " was" : "s were");
  else
    judgement.words = fmt::format(
        "a stall on moved pages takes {:.0f} to {:.0f} % of one beside them ({} samples while they moved)",
        100 * std::max(0.0, 1 - gain.saved - margin), 100 * (1 - gain.saved + margin), gain.samples);
  const bool holds = progress.held_seconds > 0;
  const bool is_over = progress.held_seconds >= config.most_page_hold_seconds;
  const auto pays = [&](double saved) {
    return saved * plan.stall_share * progress.seconds >= progress.left_seconds;
  };
  if (!told) {
    // Stalls that prefetches hide are hardly sampled; the time of their loops says what the whole gave.
    if (holds && !is_over)
      judgement.verdict = PageVerdict::kHold;
    else if (holds && !progress.timed)
      judgement.verdict = PageVerdict::kStop;
    return judgement;
  }
  const double least = gain.saved - margin, most = gain.saved + margin;
  if (most < 0)
    judgement.verdict = PageVerdict::kUndo;
  else if (progress.left_seconds > 0 && !pays(most))
    judgement.verdict = PageVerdict::kStop;
  else if (holds && progress.held_seconds < config.min_page_hold_seconds)
    // One that is looked at every few milliseconds would look good once.
    judgement.verdict = PageVerdict::kHold;
  else if (holds && least <= 0)
    judgement.verdict = !is_over           ? PageVerdict::kHold
                        : pays(gain.saved) ? PageVerdict::kGoOn
                                           : PageVerdict::kStop;
  return judgement;
}

PageStart decide_pages_at_start(const PageEpisode& earlier, const PolicyConfig& config) {
  if (!config.huge_pages) return {false, "decision 'huge-pages' is switched off"};
  if (earlier.state == DecisionState::kUnjudged)
    return {false, fmt::format("{} run{} could not tell what it gave{}", earlier.unjudged,
                               earlier.unjudged == 1 ? "" : "s one after the other",
                               gives_up_untold(earlier, config) ? ", and it is not tried again" : "")};
  if (earlier.state != DecisionState::kKept)
    return {false, fmt::format("the move of an earlier run was {}", to_string(earlier.state))};
  // Of memory that was filled nothing but the filling was measured, which the outcome has.
  if (!earlier.evidence.fill && brought_nothing(earlier.measured_gain, config))
    return {false, fmt::format("an earlier run kept the move at {:+.1f} %", 100 * earlier.measured_gain)};
  if (earlier.places.empty()) return {false, "an earlier run did not save which addresses it moved"};
  return {true,
          fmt::format("asks for {} MiB before their first touch, as an earlier run moved and kept them{}",
                      bytes_of(earlier.places) >> 20,
                      earlier.measured_gain > 0 ? fmt::format(" ({:+.1f} %)", 100 * earlier.measured_gain)
                                                : std::string())};
}

bool brought_nothing(double measured_gain, const PolicyConfig& config) {
  return measured_gain < config.min_page_gain;
}

uint64_t bytes_in_vain(const PageEpisode& earlier, double seconds, const PolicyConfig& config) {
  const bool fill = earlier.evidence.fill.has_value();
  const bool lost = earlier.state == DecisionState::kRolledBack ||
                    // One without any figure is of a program that knew no better.
                    (earlier.state == DecisionState::kKept && !fill && earlier.measured_gain != 0 &&
                     brought_nothing(earlier.measured_gain, config));
  const bool untold = gives_up_untold(earlier, config) && (fill || seconds < 2 * earlier.evidence.seconds);
  if (!lost && !untold) return 0;
  uint64_t bytes = bytes_of(earlier.ranges);
  // What was tried of a part stands for the whole.
  if (!fill) bytes = std::max(bytes, bytes_of(decide_pages(earlier.evidence, config).whole));
  return bytes;
}

PageEpisode make_page_episode(const PageEvidence& evidence, const PagePlan& plan) {
  PageEpisode episode;
  episode.evidence = evidence;
  for (const PageRange& range : plan.ranges) episode.ranges.push_back({range.begin, range.end});
  episode.reason = plan.reason;
  episode.alternatives = describe_alternatives(plan.alternatives);
  episode.estimated_gain = plan.estimated_gain;
  return episode;
}

bool replays(const PageEpisode& episode, const PolicyConfig& config) {
  return make_page_episode(episode.evidence, decide_pages(episode.evidence, config)).ranges == episode.ranges;
}

}  // namespace hindsight::feedback
