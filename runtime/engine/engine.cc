#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/files.h"
#include "base/printable.h"
#include "feedback/lwp/calibration/machine_model.h"
#include "feedback/policy/policy.h"
#include "runtime/adaptive/engine_policy.h"
#include "runtime/code/exit_gate.h"
#include "runtime/code/tier_manager.h"
#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/fixed_tiers.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/model_tiers.h"
#include "runtime/exec/enter.h"
#include "runtime/storage/code_cache.h"
#include "runtime/storage/profile_store.h"

namespace hindsight {

Result<std::shared_ptr<Engine>> Engine::create(EngineConfig config) {
  return rt::EngineHandle::create(std::move(config), {});
}

Result<std::shared_ptr<Engine>> create_engine_for_tests(EngineConfig config, const TestKnobs& knobs) {
  return rt::EngineHandle::create(std::move(config), knobs);
}

std::span<const std::string_view> decision_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, feedback::kDecisions.size()> names;
    std::ranges::transform(feedback::kDecisions, names.begin(), &feedback::Decision::name);
    return names;
  }();
  return kNames;
}

const char* version() {
  return HINDSIGHT_VERSION;
}

namespace rt {
namespace {

constexpr uint64_t kMostModuleBytes = uint64_t{1} << 30;  // what engines agreed on; also ends endless devices

}  // namespace

Result<std::shared_ptr<EngineHandle>> EngineHandle::create(EngineConfig config, const TestKnobs& knobs) {
  if (config.tier == TierMode::kAuto && !config.profiling)
    return make_error(ErrorKind::kUsage, "tier auto needs profiling; choose a fixed tier to run without");
  const bool counts = config.unit != kTimeUnit;
  if (!counts && (config.tier != TierMode::kAuto || config.feedback))
    return make_error(ErrorKind::kUsage,
                      "unit time says what is hot and nothing else: it is for tier auto without feedback");
  const bool for_tests = knobs.random_hints != 0 || knobs.enter_at_loops || knobs.enter_at_nests;
  if (for_tests && (config.tier != TierMode::kOptimized || config.profiling))
    return make_error(ErrorKind::kUsage,
                      "random hints and entering at loops are for tier optimized without profiling");
  if (knobs.enter_at_nests && (knobs.enter_at_loops || knobs.random_hints != 0))
    return make_error(ErrorKind::kUsage, "nests are entered without hints, and not with remainders");
  if (knobs.inner_nests && !knobs.enter_at_nests)
    return make_error(ErrorKind::kUsage, "inner nests are entered at nests");
  if (knobs.leave_at_loops && !knobs.enter_at_loops)
    return make_error(ErrorKind::kUsage, "only code that was entered at loops is left there");
  if (knobs.leave_for_baseline && !knobs.leave_at_loops)
    return make_error(ErrorKind::kUsage, "code that is left for baseline code is left at loops");
  for (const std::string& name : config.disabled_decisions) {
    const auto names = decision_names();
    if (std::find(names.begin(), names.end(), name) == names.end())
      return make_error(ErrorKind::kUsage, fmt::format("there is no decision called '{}'; there are {}", name,
                                                       fmt::join(names, ", ")));
  }
  jit::CompileOptions options;
  options.bounds = config.guard_pages && guard_pages_available() ? jit::BoundsChecks::kGuardPages
                                                                 : jit::BoundsChecks::kExplicit;
  options.lwp_counting = config.profiling && counts;
  options.lwp_instructions = config.on_record != nullptr;  // no decision needs them
  options.osr_polls = config.tier == TierMode::kAuto || knobs.enter_at_loops || knobs.enter_at_nests;

  std::unique_ptr<TraceDirectory> trace;
  if (config.profiling && config.unit == "model") {
    HINDSIGHT_ASSIGN(config.model, lwp::resolve_model(config.model));
    HINDSIGHT_TRY(check_model(config));
    trace = std::make_unique<TraceDirectory>();
    options.trace = trace.get();
    options.lwp_counting = false;  // the model counts
    options.osr_polls = false;
  }

  // Without memory for it exit() does not wait for callbacks.
  static std::once_flag once;
  std::call_once(once, [] { (void)ExitGate::shut_at_exit(); });
  std::shared_ptr<EngineHandle> engine(new EngineHandle(std::move(config)));
  engine->trace_ = std::move(trace);
  engine->feed_ = std::make_shared<RecordFeed>(engine->config_.on_record);
  HINDSIGHT_ASSIGN(engine->code_, CodeServices::create(options, engine->config_.compile_threads));
  engine->code_->time_passes = engine->config_.time_passes;
  engine->code_->knobs = knobs;
  engine->code_->optimize_only(engine->config_.first_optimized, engine->config_.last_optimized);
  if (engine->config_.log)
    engine->code_->log = [log = engine->config_.log](LogLevel level, std::string_view topic,
                                                     std::string_view line) {
      ExitGate::call_host([&] { log(level, topic, printable_line(line)); });
    };
  engine->code_->most_code_bytes = engine->config_.limits.code_bytes;
  engine->code_->log_level = engine->config_.log_level;
  engine->code_->key = std::make_shared<const UserKey>(
      engine->config_.key_directory.empty() ? default_key_directory() : engine->config_.key_directory);
  if (engine->trace_ == nullptr && !for_tests) {
    engine->code_->cache = CodeCache::create(engine->config_, *engine->code_);
    engine->code_->profiles = ProfileStore::create(engine->config_, *engine->code_);
  }
  if (options.bounds == jit::BoundsChecks::kExplicit && engine->config_.guard_pages)
    engine->code_->say(LogLevel::kInfo, "memory",
                       "address space is limited, to less than guard pages of some memories take (8 GiB "
                       "each): bounds are checked in code");
  if (engine->config_.lwp_instructions) {
    if (const Status emulated = emulate_lwp_here(); !emulated)
      engine->code_->say(LogLevel::kWarning, "lwp", emulated.error().message);
  }
  if (engine->trace_ != nullptr) {
    HINDSIGHT_ASSIGN(engine->tiers_, make_model_tiers(engine->config_, *engine->code_, *engine->feed_));
  } else if (engine->config_.profiling) {
    HINDSIGHT_ASSIGN(engine->tiers_, make_tier_manager(engine->config_, *engine->code_, *engine->feed_));
  } else {
    engine->tiers_ = make_fixed_tiers(engine->config_.tier, *engine->code_);
  }
  return engine;
}

EngineHandle::~EngineHandle() {
  if (!owner_.here()) {
    leak(std::move(attachments_));
    leak(std::move(tiers_));
    leak(std::move(code_));
    leak(std::move(trace_));
    leak(std::move(feed_));
    return;
  }
  // Units first stop producing, then go; nobody is inside a guest of this engine, since stores hold it.
  if (code_ != nullptr) code_->say_system_failures();
  if (tiers_ != nullptr) tiers_->shutdown();
  attachments_->shut_down();
}

FeedbackReport EngineHandle::feedback_report() const {
  FeedbackReport report;
  if (!owner_.here()) {
    report.unit = "none (a fork of the process that is watched)";
    return report;
  }
  report = tiers_->feedback_report();
  for (const jit::PassCost& pass : code_->pass_times.sums())
    report.optimizer_passes.push_back({pass.name, pass.runs, pass.seconds});
  feed_->fill(report.guest);
  report.compile_threads_refused = code_->threads().refused() + code_->threads_for_trials().refused();
  report.compile_tasks_refused =
      code_->threads().refused_tasks() + code_->threads_for_trials().refused_tasks();
  for (const SystemFailureCount& failure : system_failures())
    report.system_refusals.push_back({std::string(failure.words), failure.count,
                                      failure.first_error == 0 ? "" : std::strerror(failure.first_error)});
  return report;
}

std::optional<ModelReport> EngineHandle::model_report() const {
  return owner_.here() ? tiers_->model_report() : std::nullopt;
}

Status EngineHandle::save_profile(const std::string& path) const {
  if (!owner_.here())
    return make_error(ErrorKind::kUsage, "the profile belongs to the process that was forked", path);
  return tiers_->save_profile(path);
}

void EngineHandle::wait_for_compiles() {
  if (owner_.here()) tiers_->wait_for_compiles();
}

StoreServices EngineHandle::store_services(std::shared_ptr<StoreBudget> budget) {
  StoreServices services;
  services.budget = std::move(budget);
  services.builtins = &builtins();
  services.trampolines = &code_->trampolines();
  services.registry = &code_->registry();
  services.dispatch = dispatch_host_call;
  services.bounds = code_->options().bounds;
  services.max_memory_bytes = config_.max_memory_bytes;
  services.max_stack_bytes = config_.max_stack_bytes;
  services.hooks = tiers_.get();
  services.attachments = attachments_.get();
  services.warn = [code = code_.get()](const std::string& words) {
    code->say(LogLevel::kWarning, "interruption", words);
  };
  services.keep_alive = shared_from_this();
  return services;
}

Result<std::shared_ptr<const hindsight::Module>> EngineHandle::load(std::span<const std::byte> bytes,
                                                                    std::string name) {
  const std::span<const uint8_t> binary(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  HINDSIGHT_ASSIGN(auto module, wasm::read_module(binary, std::move(name)));
  if (const uint32_t errors = module->decode_stats.branch_hint_errors)
    code_->say(LogLevel::kInfo, "wasm",
               fmt::format("{}: {} malformed or misplaced in section metadata.code.branch_hint, ignored",
                           module->name, errors));
  HINDSIGHT_ASSIGN(auto code,
                   ModuleCode::create(std::move(module), *code_, tiers_->first_tier(), tiers_.get()));
  tiers_->on_loaded(code);
  code_->say_system_failures();
  return std::make_shared<const ModuleHandle>(std::static_pointer_cast<EngineHandle>(shared_from_this()),
                                              std::move(code));
}

Result<std::shared_ptr<const hindsight::Module>> EngineHandle::load_file(const std::string& path) {
  HINDSIGHT_ASSIGN(const std::vector<std::byte> bytes, read_file(path, kMostModuleBytes));
  return load(bytes, path);
}

}  // namespace rt
}  // namespace hindsight
