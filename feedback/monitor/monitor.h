// The monitor: the one thread that drains every LWP unit, reads the PMU counts that exist, attributes each
// record to a code version, function and wasm offset, and aggregates it into the module's profile. It decides
// nothing: after each round it calls on_round, in which the engine may look at the profiles and act.
//
// Threads: attach/detach may be called by any guest thread; everything else of the profiles happens on the
// monitor thread, or under with_profiles(). Nothing here ever blocks a guest thread but for the short lock of
// attach/detach.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "feedback/lwp/unit.h"
#include "feedback/pmu/counters.h"
#include "feedback/profile/profile.h"
#include "jit/code/code_registry.h"

namespace hindsight::feedback {

// Every record that a unit ever made is in exactly one of the outcome counts.
struct MonitorCounts {
  uint64_t clock_records = 0;       // event 5, one a raw sample
  uint64_t clock_attributed = 0;    // to a version and a wasm offset
  uint64_t clock_no_offset = 0;     // to a version, but to no wasm instruction (prologue, padding)
  uint64_t clock_unknown_code = 0;  // guest code memory, no version there (trampolines, freed code)
  uint64_t stall_records = 0;       // event 4: a load stands in front of the sampled pc
  uint64_t stall_addresses = 0;
  uint64_t stall_no_offset = 0;  // no load of the guest at that place in the code
  uint64_t runtime_loads = 0;    // samples behind a load of the runtime's own data: no event 4
  uint64_t branch_records = 0;
  uint64_t branch_unattributed = 0;
  uint64_t instruction_records = 0;
  uint64_t instruction_unattributed = 0;
  uint64_t value_records = 0;
  uint64_t other_records = 0;  // ids that this monitor has no use for
  uint64_t rounds = 0;
};

struct PmuReading {
  std::string name;
  bool available = false;
  std::string why_not;
  double value = 0;  // summed over threads, scaled for multiplexing
  double scale = 1;  // 1 = counted all the time
};

class Monitor {
 public:
  struct Config {
    uint32_t frequency_hz = lwp::kDefaultFrequency;
    std::chrono::microseconds period{5000};  // between rounds
    double half_life_seconds = 2.0;          // of the profile's counts
    LogSink log;
    // Is this address in some linear memory? A load from anywhere else (tables, globals, cells) is no stall
    // of the guest's data. Unset: every address is.
    std::function<bool(uint64_t address)> is_guest_memory;
    std::function<void()> on_round;  // on the monitor thread, no lock held
  };

  Monitor(const jit::CodeRegistry& registry, Config config);
  ~Monitor();  // stops the thread after a last round
  void start();
  void stop();

  // The calling guest thread is watched by `unit` (attached already) until detach(same unit).
  void attach(std::shared_ptr<lwp::Unit> unit, std::optional<pmu::PmuCounters> counters);
  void detach(const lwp::Unit* unit);

  // From on_round or any thread: takes effect at once on all units.
  void set_frequency(uint32_t hz);
  void set_period(std::chrono::microseconds period);
  uint32_t frequency() const;

  // Runs `look` with the profiles, excluding rounds. The map's key is the module.
  using Profiles = std::map<const wasm::Module*, std::unique_ptr<Profile>>;
  void with_profiles(const std::function<void(Profiles&)>& look);

  MonitorCounts counts() const;
  lwp::UnitCounters unit_counters() const;  // summed over all units, ended ones included
  std::vector<PmuReading> pmu() const;

  // One round now, on the calling thread (which must not be a guest thread inside the guest). Used by tests
  // and at the end of a run.
  void round();

 private:
  struct Watched {
    std::shared_ptr<lwp::Unit> unit;
    std::optional<pmu::PmuCounters> counters;
    lwp::Batch batch;
  };
  void run();
  void drain(Watched& watched);
  void attribute_sample(const lwp::RawSample& sample);
  void attribute(const lwp::EventRecord& record, double seconds);
  Profile& profile_of(const std::shared_ptr<const wasm::Module>& module);

  const jit::CodeRegistry& registry_;
  Config config_;

  mutable std::mutex mutex_;  // protects everything below but thread control
  std::vector<std::unique_ptr<Watched>> watched_;
  Profiles profiles_;
  std::vector<std::shared_ptr<const wasm::Module>> keep_modules_;
  MonitorCounts counts_;
  lwp::UnitCounters ended_;
  std::map<std::string, PmuReading> pmu_ended_;
  uint32_t frequency_hz_;
  std::chrono::steady_clock::time_point last_decay_;

  std::mutex control_mutex_;  // protects stop_ and period_
  std::condition_variable control_;
  bool stop_ = false;
  std::chrono::microseconds period_;
  std::thread thread_;
};

}  // namespace hindsight::feedback
