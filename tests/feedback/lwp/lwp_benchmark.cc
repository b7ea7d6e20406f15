// What the library's hot paths cost, with Google Benchmark. Not a test: nothing here passes or fails.
//   build/release/bin/lwp_benchmark
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "feedback/lwp/emulation/software_lwp.h"
#include "feedback/lwp/format/ring.h"
#include "feedback/lwp/units/unit.h"
#include "tests/feedback/lwp/emulation/software_lwp_area.h"

namespace hindsight::lwp {
namespace {

// The monitor's side alone: a full ring is emptied in portions of a drain.
void drain_full_ring(benchmark::State& state) {
  const auto slots = static_cast<uint32_t>(state.range(0));
  auto ring = std::move(*Ring::create({.records = slots}));
  std::vector<EventRecord> out(256);
  uint64_t drained = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint32_t i = 0; i + 1 < slots; ++i) ring->store(make_instructions_record(i));
    state.ResumeTiming();
    while (const size_t n = ring->read(out)) {
      benchmark::DoNotOptimize(out.data());
      drained += n;
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(drained));
}
BENCHMARK(drain_full_ring)->Arg(2048)->Arg(65536)->Arg(1 << 20);

// Both sides at once: a thread stores without pause, the measured one drains. Counts what was drained.
void drain_while_written(benchmark::State& state) {
  auto ring = std::move(*Ring::create({.records = static_cast<uint32_t>(state.range(0))}));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) ring->store(make_instructions_record(i));
  });
  std::vector<EventRecord> out(256);
  uint64_t drained = 0;
  for (auto _ : state) {
    drained += ring->read(out);
    benchmark::DoNotOptimize(out.data());
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
  state.SetItemsProcessed(static_cast<int64_t>(drained));
  state.counters["missed_share"] = static_cast<double>(ring->missed()) / static_cast<double>(ring->emitted());
}
BENCHMARK(drain_while_written)->Arg(2048)->Arg(65536)->UseRealTime();

// The unit's drain, as the monitor calls it.
void unit_drain(benchmark::State& state) {
  auto selection = select_unit("clock");
  if (!selection) return state.SkipWithError(selection.error().message.c_str());
  auto unit = std::move(*selection->factory->create({.frequency_hz = 0}));
  Batch batch;
  uint64_t drained = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint32_t i = 0; i < 2000; ++i) record_event(unit->ring(), make_instructions_record(i));
    batch.clear();
    state.ResumeTiming();
    unit->drain(batch);
    drained += batch.records.size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(drained));
}
BENCHMARK(unit_drain);

void store(benchmark::State& state) {
  auto ring = std::move(*Ring::create({.records = 2048, .continuous = true}));
  for (auto _ : state) ring->store(make_instructions_record(1));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(store);

void attach_and_detach(benchmark::State& state, const char* name) {
  auto selection = select_unit(name);
  if (!selection) return state.SkipWithError(selection.error().message.c_str());
  auto unit = std::move(*selection->factory->create({}));
  for (auto _ : state) {
    if (!unit->attach()) return state.SkipWithError("attach failed");
    unit->detach();
  }
}
BENCHMARK_CAPTURE(attach_and_detach, perf, "clock/perf");
BENCHMARK_CAPTURE(attach_and_detach, timer, "clock/timer");

void llwpcb_and_off(benchmark::State& state) {
  Area area(64);
  area.ask(EventId::kInstructions, 1000);
  SoftwareLwp lwp(own_memory());
  for (auto _ : state) {
    (void)lwp.llwpcb(area.address());
    (void)lwp.llwpcb(0);
  }
}
BENCHMARK(llwpcb_and_off);

void software_lwpins(benchmark::State& state) {
  Area area(2048);
  area.block.flags = kFlagContinuous;
  SoftwareLwp lwp(own_memory());
  (void)lwp.llwpcb(area.address());
  for (auto _ : state) benchmark::DoNotOptimize(lwp.lwpins(1, 2, 3, 4));
}
BENCHMARK(software_lwpins);

void software_retire(benchmark::State& state) {
  Area area(2048);
  area.block.flags |= kFlagContinuous;
  area.ask(EventId::kInstructions, 1000);
  area.ask(EventId::kBranches, 1000);
  SoftwareLwp lwp(own_memory());
  (void)lwp.llwpcb(area.address());
  for (auto _ : state) benchmark::DoNotOptimize(lwp.retire(branch(1)));
}
BENCHMARK(software_retire);

}  // namespace
}  // namespace hindsight::lwp

BENCHMARK_MAIN();
