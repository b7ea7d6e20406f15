// Fixed tiers: the null object of tiering. Code is compiled once, by one tier, at the first call; nothing is
// profiled and nothing decided.
#include <mutex>
#include <set>

#include "base/fork_gate.h"
#include "runtime/code/profiling_counts.h"
#include "runtime/engine/fixed_tiers.h"
#include "runtime/storage/code_cache.h"

namespace hindsight::rt {
namespace {

constexpr int32_t kTestedStrip = 37;  // iterations between with and without random hints

class FixedTiers final : public TierManager {
 public:
  FixedTiers(TierMode mode, CodeServices& services)
      : first_(mode == TierMode::kOptimized ? jit::Tier::kOptimized : jit::Tier::kBaseline),
        services_(services) {}

  jit::Tier first_tier() const override { return first_; }

  void on_loaded(const std::shared_ptr<ModuleCode>& code) override {
    {
      const std::lock_guard lock(mutex_);
      live_.insert(code.get());
    }
    if (services_.cache == nullptr) return;
    for (KeptCode& kept : services_.cache->load(*code->module())) {
      if (code->adopt(kept.version)) code->publish(kept.version);
    }
  }
  void on_destroyed(ModuleCode& code) override {
    save(code);
    const std::lock_guard lock(mutex_);
    live_.erase(&code);
    gone_.add_compilations(code.counts());
  }
  void on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>&) override {}

  std::shared_ptr<LwpSink> on_first_entry(Store&) override { return nullptr; }
  void strip_ended(Store&, jit::VmContext*, jit::LoopCell* cell) override {
    // Relaxed throughout, as loop_cell.h says.
    if (services_.knobs.random_hints == 0) {
      std::atomic_ref(cell->countdown).store(INT32_MAX, std::memory_order_relaxed);
      return;
    }
    const std::atomic_ref enabled(cell->enabled);
    enabled.store(enabled.load(std::memory_order_relaxed) ^ 1, std::memory_order_relaxed);
    std::atomic_ref(cell->countdown).store(kTestedStrip, std::memory_order_relaxed);
  }

  FeedbackReport feedback_report() const override {
    const std::lock_guard lock(mutex_);
    ModuleCodeCounts sum = gone_;
    FeedbackReport report;
    for (ModuleCode* code : live_) {
      sum.add_compilations(code->counts());
      report_left_in_baseline(*code, report);
    }
    report.unit = "none (profiling is off)";
    report_compilations(sum, report);
    report.versions_retired = services_.retired().freed();
    report.versions_waiting = services_.retired().pending();
    return report;
  }
  Status save_profile(const std::string& path) const override {
    return make_error(ErrorKind::kUsage, "there is no profile to save: profiling is off", path);
  }
  void wait_for_compiles() override {}
  void shutdown() override {}

 private:
  void save(const ModuleCode& code) {
    if (services_.cache == nullptr) return;
    std::vector<KeptCode> kept;
    for (auto& version : code.optimized_versions()) kept.push_back({std::move(version), {}, {}, {}});
    services_.cache->save(*code.module(), kept);
  }

  const jit::Tier first_;
  CodeServices& services_;
  mutable ForkSafeMutex mutex_;  // protects what follows
  std::set<ModuleCode*> live_;
  ModuleCodeCounts gone_;
};

}  // namespace

std::unique_ptr<TierManager> make_fixed_tiers(TierMode mode, CodeServices& services) {
  return std::make_unique<FixedTiers>(mode, services);
}

}  // namespace hindsight::rt
