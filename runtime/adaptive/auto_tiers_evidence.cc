// What AutoTiers tells of evidence: timed loads into the profiles, loads and branches into reports and files.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {
namespace {

constexpr size_t kReported = 16;        // loads, and branches, of a report
constexpr size_t kSavedFunctions = 64;  // of a module, with all their evidence

constexpr size_t kSavedSamples = 256;   // of a module: functions with their places,
constexpr size_t kHottest = 16;         // the first of them with all,
constexpr size_t kPlacesOfOthers = 16;  // others with so many: the profile is written when a program ends

double total_of(const feedback::FunctionCounts& counts) {
  return counts.samples_baseline + counts.samples_optimized;
}

}  // namespace

void AutoTiers::read_timed_loads(std::vector<std::string>* news) const {
  struct Timed {
    const wasm::Module* module;  // a key
    std::string name;            // of the function
    FuncIndex function;
    WasmOffset load;
    feedback::LoadLatency latency;
  };
  std::vector<Timed> all;
  const std::shared_ptr<const lwp::Calibration> calibration = calibration_->get();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [module, state] : modules_) {
      for (const auto& [function, watch] : state.watches) {
        for (const jit::Answer& site : watch.version->answers) {
          if (!site.is_applied() || !site.timed || site.cell >= watch.timed.size()) continue;
          const TimedSums sums = watch.timed[site.cell]->sums(*site.timed);
          if (sums.count() == 0) continue;
          all.push_back({module, news != nullptr ? module->function_name(FuncIndex(function)) : "",
                         FuncIndex(function), site.site.at, latency_of(sums, calibration.get())});
        }
      }
    }
  }
  if (all.empty()) return;
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const Timed& timed : all) {
      const auto found = profiles.find(timed.module);
      if (found != profiles.end()) found->second->set_latency(timed.function, timed.load, timed.latency);
    }
  });
  if (!news) return;
  for (const Timed& timed : all) {
    MemoryLevel& said = said_levels_[{timed.module, timed.load.value}];
    if (timed.latency.level == said) continue;
    said = timed.latency.level;
    news->push_back(fmt::format(
        "load at 0x{:x} in {}: from {}, mean of {} timed loads {:.0f} ticks, {:.0f} % of them from memory "
        "(estimate)",
        timed.load.value, timed.name, to_string(timed.latency.level), timed.latency.timed,
        timed.latency.mean_ticks, 100 * timed.latency.memory_share));
  }
}

std::vector<feedback::FunctionEvidence> AutoTiers::hottest_of(const feedback::Profile& profile) {
  std::vector<std::pair<double, uint32_t>> order;
  for (const auto& [index, counts] : profile.functions()) {
    if (total_of(counts) > 0 || !counts.branches.empty() || !counts.loads.empty())
      order.emplace_back(total_of(counts), index);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kSavedFunctions) order.resize(kSavedFunctions);
  std::vector<feedback::FunctionEvidence> all;
  for (const auto& [samples, index] : order) all.push_back(profile.evidence(FuncIndex(index)));
  return all;
}

std::vector<feedback::FunctionSamples> AutoTiers::samples_of(const feedback::Profile& profile) {
  std::vector<feedback::FunctionSamples> all;
  for (const auto& [index, counts] : profile.functions())
    if (!counts.places.empty()) all.push_back(profile.run_samples(FuncIndex(index)));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  if (all.size() > kSavedSamples) all.resize(kSavedSamples);
  for (size_t i = kHottest; i < all.size(); ++i) feedback::keep_dearest(all[i].places, kPlacesOfOthers);
  return all;
}

void AutoTiers::report_evidence(FeedbackReport& report) const {
  const feedback::MonitorCounts counts = monitor_->counts();
  report.bursts = {.branch_bursts = counts.branch_bursts,
                   .branch_bursts_refused = counts.bursts_refused,
                   .branch_outcomes = counts.burst_outcomes,
                   .branch_judged = counts.burst_judged,
                   .branch_mispredicted = counts.burst_mispredicted,
                   .mispredicted_share = counts.burst_rates.rate()};
  governor_.report(report.bursts);
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const auto& [module, profile] : profiles) {
      for (const auto& [index, function] : profile->functions()) {
        const std::string name = module->function_name(FuncIndex(index));
        for (const auto& [offset, load] : function.loads) {
          report.loads.push_back({.function = name,
                                  .wasm_offset = offset,
                                  .stall_samples = load.stall_baseline + load.stall_optimized,
                                  .function_samples = total_of(function),
                                  .level = std::string(to_string(load.latency.level)),
                                  .timed = load.latency.timed,
                                  .mean_ticks = load.latency.mean_ticks,
                                  .memory_share = load.latency.memory_share,
                                  .latency_ns = load.latency.latency_ns});
        }
        for (const auto& [offset, branch] : function.branches) {
          if (!branch.seen()) continue;
          report.branches.push_back({.function = name,
                                     .wasm_offset = offset,
                                     .sampled = branch.total,
                                     .sampled_taken = branch.taken,
                                     .outcomes = branch.bursts.outcomes,
                                     .taken = branch.bursts.taken,
                                     .judged = branch.bursts.judged,
                                     .mispredicted = branch.bursts.mispredicted});
        }
      }
    }
  });
  std::stable_sort(report.loads.begin(), report.loads.end(), [](const LoadReport& a, const LoadReport& b) {
    return a.stall_samples > b.stall_samples;
  });
  std::stable_sort(report.branches.begin(), report.branches.end(),
                   [](const BranchReport& a, const BranchReport& b) {
                     return std::tie(a.mispredicted, a.outcomes, a.sampled) >
                            std::tie(b.mispredicted, b.outcomes, b.sampled);
                   });
  if (report.loads.size() > kReported) report.loads.resize(kReported);
  if (report.branches.size() > kReported) report.branches.resize(kReported);
}

}  // namespace hindsight::rt
