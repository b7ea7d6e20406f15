#include "runtime/engine/model_tiers.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>

#include "feedback/lwp/units/model_unit.h"
#include "runtime/code/profiling_counts.h"
#include "runtime/engine/model_sink.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {
namespace {

constexpr std::chrono::milliseconds kPeriod{20};
// Nothing decides by these profiles; what is reported shall not fade.
constexpr double kNeverSeconds = 1e9;

// As TraceFunction::module names it.
uint64_t name_of(const wasm::Module& module) {
  uint64_t name = 0;
  for (size_t i = 0; i < 8; ++i) name = name << 8 | module.content_hash()[i];
  return name;
}

class ModelTiers final : public TierManager {
 public:
  ModelTiers(const EngineConfig& config, CodeServices& services, RecordFeed& feed)
      : config_(config), services_(services) {
    feedback::Monitor::Config monitor;
    monitor.period = kPeriod;
    monitor.half_life_seconds = kNeverSeconds;
    monitor.log = services.log;
    monitor.is_guest_memory = [](uint64_t address) { return memory_reservations().contains(address); };
    monitor.on_record = [&feed](const feedback::LocatedRecord& record) { feed.on_record(record); };
    monitor.only_guest_records = !feed.wants_all();
    monitor_ = std::make_unique<feedback::Monitor>(services_.registry(), std::move(monitor));
  }
  Status start() {
    HINDSIGHT_TRY(monitor_->start());
    services_.say(LogLevel::kInfo, "lwp", "unit model");
    return {};
  }
  ~ModelTiers() override { shutdown(); }

  jit::Tier first_tier() const override { return jit::Tier::kBaseline; }
  void on_loaded(const std::shared_ptr<ModuleCode>& code) override {
    const std::lock_guard lock(mutex_);
    live_.insert(code.get());
    modules_[name_of(*code->module())] = code->module();
  }
  void on_destroyed(ModuleCode& code) override {
    const std::lock_guard lock(mutex_);
    live_.erase(&code);
    gone_.add_compilations(code.counts());
  }
  void on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>&) override {}

  std::shared_ptr<LwpSink> on_first_entry(Store&) override {
    auto unit = make_unit();
    if (!unit) {
      services_.say(LogLevel::kWarning, "lwp",
                    "no model of this thread: " + unit.error().describe() + "; the guest runs on unwatched");
      return std::make_shared<VoidSink>();
    }
    {
      const std::lock_guard lock(mutex_);
      units_.push_back(*unit);
    }
    return std::make_shared<ModelSink>(std::move(*unit), *monitor_);
  }
  void strip_ended(Store&, jit::VmContext*, jit::LoopCell* cell) override {
    std::atomic_ref(cell->countdown).store(INT32_MAX, std::memory_order_relaxed);
  }

  FeedbackReport feedback_report() const override {
    FeedbackReport report;
    report.unit = "model";
    monitor_->round();
    report.counts = profiling_counts(*monitor_);
    const std::lock_guard lock(mutex_);
    ModuleCodeCounts sum = gone_;
    for (ModuleCode* code : live_) sum.add_compilations(code->counts());
    report_compilations(sum, report);
    report.versions_retired = services_.retired().freed();
    report.versions_waiting = services_.retired().pending();
    return report;
  }

  std::optional<ModelReport> model_report() const override;

  Status save_profile(const std::string& path) const override {
    return make_error(ErrorKind::kUsage, "there is no profile to save: the model unit decides nothing", path);
  }
  void wait_for_compiles() override {}
  void shutdown() override { monitor_->stop(); }

 private:
  Result<std::shared_ptr<lwp::ModelUnit>> make_unit() const {
    HINDSIGHT_ASSIGN(lwp::ModelConfig model, lwp::parse_model(config_.model));
    model.remember_addresses = config_.model_addresses;
    lwp::UnitConfig unit_config;
    unit_config.trace = services_.options().trace;
    HINDSIGHT_ASSIGN(std::shared_ptr<lwp::ModelUnit> unit, lwp::ModelUnit::create(model, unit_config));
    HINDSIGHT_TRY(unit->attach());
    return unit;
  }
  const EngineConfig config_;
  CodeServices& services_;
  std::unique_ptr<feedback::Monitor> monitor_;
  mutable std::mutex mutex_;  // protects what follows
  std::set<ModuleCode*> live_;
  ModuleCodeCounts gone_;
  std::map<uint64_t, std::shared_ptr<const wasm::Module>> modules_;
  std::vector<std::shared_ptr<lwp::ModelUnit>> units_;
};

std::optional<ModelReport> ModelTiers::model_report() const {
  ModelReport report;
  report.model = config_.model;
  const std::lock_guard lock(mutex_);
  const auto name = [&](uint64_t module, FuncIndex function) {
    const auto found = modules_.find(module);
    return found == modules_.end() ? fmt::format("func[{}]", function.value)
                                   : found->second->function_name(function);
  };
  std::map<std::pair<uint64_t, uint32_t>, size_t> accesses, branches, functions;
  // The address sets live in the units, which the function keeps.
  auto sets = std::make_shared<std::multimap<std::pair<std::string, uint32_t>, const lwp::AddressSet*>>();
  for (const auto& unit : units_) {
    const lwp::ModelTotals totals = unit->totals();
    report.instructions += totals.instructions;
    report.cycles += totals.cycles;
    report.unfinished += totals.unfinished;
    report.unknown += totals.unknown;
    for (const lwp::ModelAccess& from : totals.accesses) {
      const auto [at, fresh] = accesses.try_emplace({from.module, from.offset.value}, report.accesses.size());
      if (fresh) report.accesses.emplace_back();
      ModelReport::Access& to = report.accesses[at->second];
      to.function = name(from.module, from.function);
      to.wasm_offset = from.offset.value;
      to.store = from.store;
      to.executions += from.executions;
      for (size_t level = 0; level < to.from_level.size(); ++level)
        to.from_level[level] += from.from_level[level];
      to.tlb_misses += from.tlb_misses;
      to.latency_cycles += from.latency_cycles;
      to.stall_cycles += from.stall_cycles;
      to.miss_stall_cycles += from.miss_stall_cycles;
      if (from.addresses) sets->insert({{to.function, to.wasm_offset}, from.addresses});
    }
    for (const lwp::ModelBranch& from : totals.branches) {
      const auto [at, fresh] = branches.try_emplace({from.module, from.offset.value}, report.branches.size());
      if (fresh) report.branches.emplace_back();
      ModelReport::Branch& to = report.branches[at->second];
      to.function = name(from.module, from.function);
      to.wasm_offset = from.offset.value;
      to.call = is_indirect_call(from.kind);
      to.computed = from.kind == TraceEnd::kTable || to.call;
      to.executions += from.executions;
      to.taken += from.taken;
      to.mispredicted += from.mispredicted;
    }
    for (const lwp::ModelFunction& from : totals.functions) {
      const auto [at, fresh] =
          functions.try_emplace({from.module, from.function.value}, report.functions.size());
      if (fresh) report.functions.emplace_back();
      ModelReport::Function& to = report.functions[at->second];
      to.function = name(from.module, from.function);
      to.instructions += from.instructions;
      to.cycles += from.cycles;
    }
  }
  report.loaded = [sets, keep = units_](std::string_view function, uint32_t offset, uint64_t address) {
    const auto [begin, end] = sets->equal_range({std::string(function), offset});
    for (auto set = begin; set != end; ++set)
      if (set->second->contains(address)) return true;
    return false;
  };
  return report;
}

}  // namespace

Status check_model(const EngineConfig& config) {
  if (config.tier == TierMode::kOptimized)
    return make_error(ErrorKind::kUsage,
                      "the model unit watches baseline code; choose tier auto or baseline");
  HINDSIGHT_TRY(lwp::parse_model(config.model));
  return {};
}

Result<std::unique_ptr<TierManager>> make_model_tiers(const EngineConfig& config, CodeServices& services,
                                                      RecordFeed& feed) {
  auto tiers = std::make_unique<ModelTiers>(config, services, feed);
  HINDSIGHT_TRY(tiers->start());
  return tiers;
}

}  // namespace hindsight::rt
