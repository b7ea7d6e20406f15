#include "feedback/monitor/branch_bursts.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "feedback/lwp/format/record.h"
#include "feedback/monitor/monitor.h"

namespace hindsight::feedback {
namespace {

// What one branch did in the outcomes of a round, and where it is. Looked up once a round: code may be freed
// between rounds.
struct Site {
  std::optional<jit::RegisteredCode> code;
  std::optional<jit::PcRow> row;
  bool located = false;
  uint64_t key = 0;
  BranchOutcomeCounts counts;
};

}  // namespace

// Modules by number, so that what a predictor is given is the same wherever modules and code are placed.
uint32_t Monitor::number_of(const std::shared_ptr<const wasm::Module>& module) {
  (void)profile_of(module);  // has its module kept
  const auto found = std::find(keep_modules_.begin(), keep_modules_.end(), module);
  return static_cast<uint32_t>(found - keep_modules_.begin());
}

void Monitor::ask_for_bursts() {
  if (!config_.branch_bursts) return;
  const bool series = branch_series_wanted_.exchange(false, std::memory_order_relaxed);
  const bool one = branch_burst_wanted_.exchange(false, std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now();
  for (auto& watched : watched_) {
    ThreadBranches& branches = *watched->branches;
    lwp::BranchBursts& bursts = watched->unit->branch_bursts();
    if (series) branches.schedule.begin_series();
    if (one) branches.schedule.want_one();
    // A burst that was asked for and not begun: no baseline code runs, and none needs to be looked at.
    if (bursts.requested()) continue;
    // It cannot have run for longer than it is there, which costs no call of the kernel to know.
    if (std::chrono::duration<double>(now - branches.begin).count() < branches.schedule.next()) continue;
    if (branches.schedule.due(seconds_run(*watched), watched_.size()))
      bursts.request(lwp::BranchBursts::kMostOutcomes);
  }
}

// Outcomes become the event-3 records that a processor with the prediction bit would have written, one for
// every branch of the burst. They add up to counts of each branch.
void Monitor::attribute_bursts(Watched& watched) {
  if (!watched.branches) return;
  ThreadBranches& branches = *watched.branches;
  branches.rates.records(static_cast<uint64_t>(
      std::ranges::count(watched.batch.records, lwp::EventId::kBranches, &lwp::EventRecord::id)));
  branches.outcomes.clear();
  if (watched.unit->branch_bursts().take(branches.outcomes) == 0) {
    if (branches.replay) branches.replay->gap();
    return;
  }
  draining_ = watched.thread;
  drain_time_ =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::steady_clock::now().time_since_epoch())  // CLOCK_MONOTONIC
                                .count());
  if (!branches.replay) branches.replay = std::make_unique<lwp::BranchReplay>(lwp::make_tage());
  std::unordered_map<uint64_t, Site> sites;
  for (const lwp::BranchOutcome& outcome : branches.outcomes) {
    const auto [found, fresh] = sites.try_emplace(outcome.pc);
    Site& site = found->second;
    if (fresh) {
      const auto* at = reinterpret_cast<const std::byte*>(outcome.pc - 1);  // a return address
      site.code = registry_.find(at);
      if (site.code) {
        site.row = site.code->version->pc_map.find(
            CodeOffset(static_cast<uint32_t>(at - site.code->version->begin())));
      }
      site.located = site.row && site.row->wasm != jit::kNoWasmOffset;
      site.key =
          site.located ? site.row->wasm.value | uint64_t{number_of(site.code->module)} << 32 : outcome.pc;
    }
    if (outcome.first()) counts_.burst_rates += branches.rates.begin();
    const std::optional<bool> right = branches.replay->predicted_right(site.key, outcome);
    counts_.burst_outcomes += 1;
    site.counts.outcomes += 1;
    site.counts.taken += outcome.taken() ? 1 : 0;
    if (right) {
      counts_.burst_judged += 1;
      site.counts.judged += 1;
      site.counts.mispredicted += *right ? 0 : 1;
      counts_.burst_mispredicted += *right ? 0 : 1;
      branches.rates.judged(*right);
    }
    if (!site.located) counts_.burst_unattributed += 1;
    if (config_.on_record) {
      tell(lwp::make_branch_record(outcome.pc, outcome.target(), outcome.taken(), right), nullptr,
           site.code ? &*site.code : nullptr, site.row, /*from_guest=*/false);
    }
  }
  for (const auto& [pc, site] : sites) {
    if (site.located)
      profile_of(site.code->module).add_outcomes(site.code->version->function, site.row->wasm, site.counts);
  }
}

}  // namespace hindsight::feedback
