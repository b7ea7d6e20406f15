// One workload under one unit, and what the unit said about it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/cli/accuracy/score.h"
#include "runtime/cli/bench/manifest.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::cli {

// The truth: every execution of every instruction, on a processor that is modelled.
struct ModelSide {
  ModelReport report;
  double seconds = 0;
};

// Real hardware, watched by time samples.
struct ClockSide {
  std::string unit;
  double seconds = 0;
  uint64_t samples = 0;                     // in known guest code
  std::map<std::string, double> functions;  // samples
  SiteWeights stalls;                       // samples right after this load
  std::map<Site, std::map<uint64_t, double>>
      pcs;                          // samples by place in the code: of each load, its instruction's address
  std::map<uint64_t, double> code;  // samples by address
  struct Stall {
    Site site;
    std::optional<uint64_t> guest_address;
  };
  std::vector<Stall> records;
  BurstReport bursts;
  uint64_t unattributed = 0;  // stall records at no known load
};

struct SideOptions {
  bool quick = false;
  uint32_t hz = 1000;
  std::string model;  // words for EngineConfig::model
};

// Errors: the guest could not run, trapped, or printed a wrong answer.
Result<ModelSide> run_model(const Workload& workload, const SideOptions& options);
Result<ClockSide> run_clock(const Workload& workload, const SideOptions& options);

// Samples after each load beyond those that a load that never waits would have: see accuracy.cc.
SiteWeights stall_samples(const ClockSide& clock);
// Cycles that each load stalled because it missed.
SiteWeights stall_cycles(const ModelReport& report);

}  // namespace hindsight::cli
