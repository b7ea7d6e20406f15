// What Lightweight Profiling costs, measured: attaching and detaching a thread, the guest's calls, and the
// monitor at 500 samples a second of 16 threads. A program of its own, not a test: figures depend on the
// machine. Exit status 1 if one is above what docs/MEASURING.md promises.
//
//   lwp_costs [seconds of each monitor measurement, default 5]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "feedback/lwp/calibration/calibration.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/monitor.h"
#include "runtime/code/guest_unit.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/hindsight.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kThreads = 16;
constexpr uint32_t kHertz = 500;
constexpr auto kPeriod = std::chrono::milliseconds(50);  // between the monitor's rounds, as in steady state

constexpr const char* kGuest = R"((module
  (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
  (memory (export "memory") 256)
  (func (export "work") (param $n i32) (result i32) (local $sum i32) (local $at i32)
    (loop $again
      (local.set $at (i32.and (i32.add (i32.mul (local.get $at) (i32.const 1103515245)) (i32.const 12345))
                              (i32.const 0xfffffc)))
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))
    (local.get $sum))
  (func (export "emit") (param $n i32)
    (loop $again
      (drop (call $insert (i64.const 1) (i32.const 2) (i32.const 3)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))))";

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool g_within = true;
void figure(const std::string& what, double value, double most, const char* unit) {
  const bool within = value <= most;
  g_within &= within;
  fmt::print("{:<64} {:>8.3f} {:<7} at most {:g}: {}\n", what, value, unit, most, within ? "yes" : "NO");
}

std::shared_ptr<Engine> make_engine(bool profiling, std::string unit = "auto") {
  EngineConfig config;
  config.tier = TierMode::kBaseline;
  config.profiling = profiling;
  config.guest_lwp = true;
  config.unit = std::move(unit);
  return Engine::create(config).value();
}

std::shared_ptr<Instance> make_guest(Engine& engine) {
  const std::string_view wat = kGuest;
  Linker linker(engine);
  return linker.instantiate(engine.load(std::as_bytes(std::span(wat)), "guest").value()).value();
}

void attach_and_detach(const std::string& unit) {
  auto selection = lwp::select_unit(unit);
  if (!selection) {
    fmt::print("attach and detach, unit {}: not here ({})\n", unit, selection.error().message);
    return;
  }
  const jit::CodeRegistry registry;
  feedback::Monitor::Config config;
  config.frequency_hz = kHertz;
  feedback::Monitor monitor(registry, std::move(config));
  monitor.start().value();
  std::vector<double> attach, detach;
  for (int i = 0; i < 2000; ++i) {
    const double before = seconds(CLOCK_MONOTONIC);
    auto made = selection->factory->create({.frequency_hz = kHertz}).value();
    if (Status attached = made->attach(); !attached) {
      fmt::print("attach, unit {}: {}\n", unit, attached.error().describe());
      return;
    }
    auto guest = std::make_unique<rt::GuestUnit>(std::shared_ptr<lwp::Unit>(std::move(made)), monitor);
    const double between = seconds(CLOCK_MONOTONIC);
    guest.reset();
    const double after = seconds(CLOCK_MONOTONIC);
    attach.push_back((between - before) * 1e6);
    detach.push_back((after - between) * 1e6);
  }
  figure(fmt::format("attach a thread, unit {}, counters included, median", unit), median(attach), 50, "us");
  figure("detach it, median", median(detach), 50, "us");
}

// Doubled: a page fault may cost anything in a virtual machine.
void calibration() {
  if (const auto measured = lwp::calibrate())
    figure("calibration of the machine, CPU time", 1e3 * measured->seconds,
           2e3 * lwp::kCalibrationBudgetSeconds, "ms");
  else
    fmt::print("calibration: {}\n", measured.error().describe());
}

void guest_calls() {
  constexpr int32_t kCalls = 200'000;
  for (const bool on : {true, false}) {
    auto engine = make_engine(on);
    auto guest = make_guest(*engine);
    std::vector<double> times;
    for (int round = 0; round < 20; ++round) {
      const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
      guest->call("emit", std::array{Value::i32(kCalls)}).value();
      times.push_back((seconds(CLOCK_THREAD_CPUTIME_ID) - before) / kCalls * 1e9);
    }
    figure(fmt::format("insert_event, {}, median", on ? "recorded" : "nobody listens"), median(times),
           on ? 150 : 60, "ns");
  }
}

// The monitor's own CPU time, from its thread's clock, as a share of the wall time in between. Read in
// on_round, which runs on that thread.
class MonitorClock {
 public:
  std::function<void()> on_round() {
    return [this] {
      const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
      if (rounds_ == 0) {
        first_cpu_ = cpu;
        first_wall_ = wall;
      }
      cpu_ = cpu - first_cpu_;
      wall_ = wall - first_wall_;
      rounds_ += 1;
    };
  }
  // Once the monitor has stopped.
  double share() const { return wall_ > 0 ? cpu_ / wall_ : 0; }
  double cpu() const { return cpu_; }
  double wall() const { return wall_; }
  uint64_t rounds() const { return rounds_; }

 private:
  double first_cpu_ = 0, first_wall_ = 0, cpu_ = 0, wall_ = 0;
  uint64_t rounds_ = 0;
};

feedback::Monitor::Config monitor_config(MonitorClock& clock) {
  feedback::Monitor::Config config;
  config.frequency_hz = kHertz;
  config.period = kPeriod;
  config.is_guest_memory = [](uint64_t address) { return rt::memory_reservations().contains(address); };
  config.on_round = clock.on_round();
  return config;
}

lwp::UnitConfig unit_config(rt::EngineHandle& inside) {
  return {.frequency_hz = kHertz,
          .guest_code = {reinterpret_cast<uint64_t>(inside.code().arena().executable_begin()),
                         reinterpret_cast<uint64_t>(inside.code().arena().executable_end())}};
}

// Samples as they really are, and what keeps their code.
struct Taken {
  std::shared_ptr<Engine> engine;
  std::shared_ptr<Instance> guest;
  std::vector<lwp::RawSample> samples;
};

// 16 threads that run guest code, each with a unit of its own. On a machine with fewer processors they get
// fewer samples than 16 x 500.
Taken monitor_with_threads(double run_seconds) {
  auto engine = make_engine(false);
  auto& inside = static_cast<rt::EngineHandle&>(*engine);
  auto selection = lwp::select_unit("auto").value();
  MonitorClock clock;
  feedback::Monitor monitor(inside.code().registry(), monitor_config(clock));
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  monitor.start().value();
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      auto guest = make_guest(*engine);
      auto made = selection.factory->create(unit_config(inside)).value();
      if (!made->attach()) return;
      const rt::GuestUnit unit(std::shared_ptr<lwp::Unit>(std::move(made)), monitor);
      while (!stop) guest->call("work", std::array{Value::i32(500'000)}).value();
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(run_seconds));
  monitor.stop();
  stop = true;
  threads.clear();
  const auto counts = monitor.counts();
  fmt::print("{} threads, unit {}: {:.0f} samples a second ({} attributed of {}), {} stalls, {} rounds\n",
             kThreads, selection.factory->name(), static_cast<double>(counts.clock_records) / clock.wall(),
             counts.clock_attributed, counts.clock_records, counts.stall_records, clock.rounds());
  figure("monitor's CPU time with these threads, of one core", 100 * clock.share(), 1, "%");

  Taken taken{engine, make_guest(*engine), {}};
  auto unit = selection.factory->create(unit_config(inside)).value();
  lwp::Batch batch;
  if (unit->attach()) {
    for (int i = 0; i < 400 && batch.samples.size() < 200; ++i) {
      taken.guest->call("work", std::array{Value::i32(2'000'000)}).value();
      unit->drain(batch);
    }
    unit->detach();
  }
  taken.samples = std::move(batch.samples);
  return taken;
}

// A unit that hands out real samples at exactly its rate.
class ReplayUnit final : public lwp::Unit {
 public:
  explicit ReplayUnit(std::vector<lwp::RawSample> samples)
      : Unit(std::move(*lwp::Ring::create({}))), samples_(std::move(samples)) {}
  std::string_view name() const override { return "replay"; }
  std::span<const lwp::EventInfo> events() const override { return {}; }
  Status attach() override { return {}; }
  void detach() override {}
  Status set_frequency(uint32_t) override { return {}; }
  void drain(lwp::Batch& batch) override {
    drain_ring(batch.records);
    const auto due = static_cast<uint64_t>((seconds(CLOCK_MONOTONIC) - start_) * kHertz);
    for (; handed_out_ < due; ++handed_out_) batch.samples.push_back(samples_[handed_out_ % samples_.size()]);
  }
  lwp::UnitCounters counters() const override { return {}; }

 private:
  const std::vector<lwp::RawSample> samples_;
  const double start_ = seconds(CLOCK_MONOTONIC);
  uint64_t handed_out_ = 0;
};

// All 8,000 samples a second, whatever the machine: the samples are real, their arrival is replayed.
void monitor_with_replay(double run_seconds, const Taken& taken) {
  auto& inside = static_cast<rt::EngineHandle&>(*taken.engine);
  if (taken.samples.empty()) {
    fmt::print("no samples to replay\n");
    g_within = false;
    return;
  }
  MonitorClock clock;
  feedback::Monitor monitor(inside.code().registry(), monitor_config(clock));
  for (uint32_t i = 0; i < kThreads; ++i) {
    monitor.attach(std::make_shared<ReplayUnit>(taken.samples), std::nullopt);
  }
  monitor.start().value();
  std::this_thread::sleep_for(std::chrono::duration<double>(run_seconds));
  monitor.stop();
  const auto counts = monitor.counts();
  const auto total = static_cast<double>(counts.clock_records);
  fmt::print("{} units replayed: {:.0f} samples a second, {} stalls, {} rounds, {:.0f} ns a sample\n",
             kThreads, total / clock.wall(), counts.stall_records, clock.rounds(),
             clock.cpu() / std::max(total, 1.0) * 1e9);
  figure("monitor's CPU time at 500 Hz x 16 threads, of one core", 100 * clock.share(), 1, "%");
}

}  // namespace
}  // namespace hindsight

int main(int argc, char** argv) {
  using namespace hindsight;
  const double run_seconds = argc > 1 ? std::atof(argv[1]) : 5;
  attach_and_detach("clock/perf");
  attach_and_detach("clock/timer");
  calibration();
  guest_calls();
  monitor_with_replay(run_seconds, monitor_with_threads(run_seconds));
  return g_within ? 0 : 1;
}
