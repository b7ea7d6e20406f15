#include "runtime/cli/accuracy/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "runtime/cli/bench/child.h"
#include "runtime/cli/guest.h"
#include "runtime/cli/options.h"

namespace hindsight::cli {
namespace {

struct Ran {
  double seconds = 0;
  std::shared_ptr<Engine> engine;
};

// Runs the workload to its end with this configuration and checks its answer.
Result<Ran> run(const Workload& workload, bool quick, const EngineConfig& config) {
  RunOptions words;
  words.program = {workload.wasm};
  const auto& args = quick ? workload.quick_args : workload.args;
  words.program.insert(words.program.end(), args.begin(), args.end());
  HINDSIGHT_ASSIGN(RunPlan plan, plan_run(words));
  plan.engine = config;
  plan.wasi.args.front() = std::filesystem::path(plan.module_path).filename().string();
  plan.wasi.stdin_text = "";
  std::string output;
  plan.wasi.stdout_sink = [&output](std::string_view text) {
    output.append(text.substr(0, std::min(text.size(), kMaxOutput - std::min(kMaxOutput, output.size()))));
  };
  const auto start = std::chrono::steady_clock::now();
  Ran ran;
  HINDSIGHT_ASSIGN(ran.engine, Engine::create(plan.engine));
  HINDSIGHT_ASSIGN(const Guest guest, run_guest(*ran.engine, plan));
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!guest.end.trap.empty()) return make_error(ErrorKind::kTrap, guest.end.trap, workload.name);
  const auto& expected = quick ? workload.quick_expected : workload.expected;
  if (expected && output != *expected) {
    return make_error(ErrorKind::kUsage, fmt::format("wrong answer under unit {}", config.unit),
                      workload.name);
  }
  return ran;
}

}  // namespace

Result<ModelSide> run_model(const Workload& workload, const SideOptions& options) {
  EngineConfig config;
  config.tier = TierMode::kBaseline;
  config.unit = "model";
  config.model = options.model;
  config.model_addresses = true;
  HINDSIGHT_ASSIGN(const Ran ran, run(workload, options.quick, config));
  ModelSide side;
  side.report = *ran.engine->model_report();
  side.seconds = ran.seconds;
  return side;
}

Result<ClockSide> run_clock(const Workload& workload, const SideOptions& options) {
  ClockSide side;
  EngineConfig config;
  config.tier = TierMode::kBaseline;  // the code that the model watched, without its instruments
  config.unit = "clock";
  config.sampling_hz = options.hz;
  config.on_record = [&side](const LwpRecord& record) {
    if (record.event_id == 5) {
      if (record.function.empty()) return;
      ++side.samples;
      side.functions[std::string(record.function)] += 1;
      side.code[record.address] += 1;
    } else if (record.event_id == 4) {
      if (record.function.empty() || !record.wasm_offset) {
        ++side.unattributed;
        return;
      }
      Site site{std::string(record.function), *record.wasm_offset};
      side.stalls[site] += 1;
      side.pcs[site][record.address] += 1;
      side.records.push_back({std::move(site), record.guest_address});
    }
  };
  HINDSIGHT_ASSIGN(const Ran ran, run(workload, options.quick, config));
  const FeedbackReport report = ran.engine->feedback_report();
  side.unit = report.unit;
  side.bursts = report.bursts;
  side.seconds = ran.seconds;
  return side;
}

SiteWeights stall_cycles(const ModelReport& report) {
  SiteWeights weights;
  for (const ModelReport::Access& access : report.accesses) {
    if (access.store || access.miss_stall_cycles == 0) continue;
    weights[{access.function, access.wasm_offset}] += static_cast<double>(access.miss_stall_cycles);
  }
  return weights;
}

}  // namespace hindsight::cli
