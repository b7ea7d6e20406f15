// What this machine's loads and branches cost, measured. That is the latency of each cache level and of
// memory, and what a timed load (timed_load.h) shows for data of each. It is also the clocks, and the price
// of a mispredicted branch. Samples say where time is lost; this says how much a miss there costs, and from
// which level a timed load came.
//
// Measured within 50 ms (kCalibrationBudgetSeconds of CPU time) on whatever thread calls; nobody else waits.
// Other programs on the machine make results worse and never better, so the quicker quarter of many short
// stretches counts. Memory bandwidth that others use makes the latency of memory look longer than it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/memory_level.h"
#include "base/result.h"
#include "feedback/lwp/calibration/cache_sizes.h"

namespace hindsight::lwp {

struct LevelTiming {
  uint64_t bytes = 0;           // the cache's size; 0 for memory
  double latency_ns = 0;        // of a load whose address depends on the load before; 0: not measured
  double timed_load_ticks = 0;  // mean of time_load() on data of this level
  bool measured() const { return latency_ns > 0; }
  friend bool operator==(const LevelTiming&, const LevelTiming&) = default;
};

struct Calibration {
  double tsc_ghz = 0;   // ticks of the time-stamp counter a nanosecond
  double core_ghz = 0;  // core cycles a nanosecond, while nothing else ran on the core
  LevelTiming l1, l2, l3, memory;
  double mispredict_ns = 0;  // time lost by one mispredicted branch
  double seconds = 0;        // CPU time that measuring took

  double mispredict_cycles() const { return mispredict_ns * core_ghz; }
  // Nanoseconds of a time in time-stamp ticks.
  double ns_of_ticks(double ticks) const { return tsc_ghz > 0 ? ticks / tsc_ghz : 0; }
  // A single timed load above this came from memory.
  double memory_threshold_ticks() const;
  const LevelTiming& operator[](MemoryLevel level) const;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// Is it what a machine could be: finite numbers, clocks and penalties of a processor's size, levels that get
// slower outwards? Files and disturbed measurements are asked.
bool plausible(const Calibration& calibration);

// The level whose timed loads have the mean nearest to `mean_ticks`; boundaries lie half-way between levels.
// Unknown without that many `samples` as kTimedLoadsToClassify, or without levels.
MemoryLevel classify(const Calibration& calibration, double mean_ticks, uint64_t samples);

inline constexpr double kCalibrationBudgetSeconds = 0.045;

// Measures. `stop` is asked every millisecond or so; true abandons. kResource: abandoned, out of memory, or
// the machine was too busy for plausible figures.
Result<Calibration> calibrate(const std::function<bool()>& stop = {});

}  // namespace hindsight::lwp
