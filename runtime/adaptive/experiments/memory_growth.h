// MemoryGrowth: the decision populate, for memory that grows by small steps. Looks whether guests touch what they grow
// their memories by, and has the kernel make the pages of later steps at once (feedback/policy/populate.h).
//
// The guest waits while they are made, which is less than what its page faults would take; nothing is made beyond what
// it has asked for. Whether it is less is tried as long as the memory grows (growth_trial.h). Where it is not, all further growth
// of that memory is the guest's.
//
// Concurrency: grown() on guest threads, the rest on any. mutex_ protects the members below it; with it held only the
// kernel is called.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/experiments/growth_trial.h"

namespace hindsight::rt {

class MemoryGrowth final : public Experiment {
 public:
  explicit MemoryGrowth(const EngineParts& engine) : engine_(engine) {}

  // The memory at `base` has grown, and the guest is about to go on.
  void grown(const wasm::Module* module, uint64_t base, uint64_t old_bytes, uint64_t bytes);

  // Experiment
  void round(const Round& round) override;
  size_t forget_decisions(const wasm::Module* module) override;
  void report(DecisionSink& decisions) const override;

 private:
  // Of the calling thread.
  struct Reading {
    double seconds = 0;  // CPU time
    uint64_t faults = 0;
  };
  static Reading read_thread();
  struct Watched {
    const wasm::Module* module = nullptr;
    uint64_t bytes = 0;                             // of the memory, when it was last seen
    uint64_t left_begin = 0, left_end = 0;          // the last step, if it was left to the guest
    uint64_t watched_bytes = 0, touched_bytes = 0;  // of steps that were, the last ones counting most
    uint64_t populated_steps = 0, populated_bytes = 0;
    double seconds = 0;      // that this took
    double begun_at = 0;     // seconds of the engine, where any were made
    bool populates = false;  // the last step that could be
    bool said = false;
    // What the last step takes: from the end of its growth on, beside making its pages.
    GrowthTrial::Step step = {};
    Reading step_begun = {};
    std::thread::id grower = {};
    GrowthTrial trial = {};
    bool lost = false;
  };
  static void end_step(Watched& watch, const Reading& now);
  static void begin_step(Watched& watch, const GrowthTrial::Step& step, const Reading& now);
  static void look_at_left(Watched& watch);
  static std::string reason_of(const Watched& watch);
  std::string outcome_of(const Watched& watch) const;

  const EngineParts engine_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Watched> watched_;  // by base
  bool refused_ = false;                 // the kernel makes no pages ahead
};

}  // namespace hindsight::rt
