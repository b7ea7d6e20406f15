// The monitor is the one thread that drains every LWP unit and reads the PMU counts that exist. It attributes
// each record to a code version, function and wasm offset, and aggregates it into the module's profile. It
// decides nothing: after each round it calls on_round, in which the engine may look at the profiles and act.
//
// Threads: attach/detach may be called by any guest thread; everything else of the profiles happens on the
// monitor thread, or under with_profiles(). Nothing here ever blocks a guest thread but for the short lock of
// attach/detach.
#pragma once

#include <atomic>
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

#include <sys/types.h>

#include "base/log.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/guest_processors.h"
#include "feedback/monitor/misprediction_rate.h"
#include "feedback/pmu/counters.h"
#include "feedback/profile/profile.h"
#include "jit/code/code_registry.h"
#include "jit/code/pc_map.h"

namespace hindsight::feedback {

// Every record that a unit ever made is in exactly one of the outcome counts.
struct MonitorCounts {
  uint64_t clock_records = 0;       // event 5, one a raw sample
  uint64_t clock_attributed = 0;    // to a version and a wasm offset
  uint64_t clock_no_offset = 0;     // to a version, but to no wasm instruction (prologue, padding)
  uint64_t clock_unknown_code = 0;  // guest code memory, no version there (trampolines, freed code)
  uint64_t stall_records = 0;       // event 4: a load stands in front of the sampled pc
  uint64_t stall_addresses = 0;
  uint64_t stall_no_offset = 0;  // no load of the guest at that place, or one that a change added
  uint64_t runtime_loads = 0;    // samples after a load of the runtime's own data: no event 4
  uint64_t store_stalls = 0;     // samples after a store of the guest's: no event 4 either
  uint64_t branch_records = 0;
  uint64_t branch_unattributed = 0;
  uint64_t instruction_records = 0;
  uint64_t instruction_unattributed = 0;
  uint64_t value_records = 0;  // event 1 of values that generated code sampled by itself
  uint64_t value_unattributed = 0;
  uint64_t guest_values = 0;           // event 1 that the guest asked for
  uint64_t guest_events = 0;           // event 255
  uint64_t guest_unattributed = 0;     // of these two: their call is in no version that is known
  uint64_t hardware_records = 0;       // events 2, 3 and 4 that the processor sampled by itself
  uint64_t hardware_unattributed = 0;  // of these: in no version that is known, or at no instruction
  uint64_t hardware_addresses = 0;     // of these: data addresses of loads that also stalled
  uint64_t other_records = 0;          // ids that this monitor has no use for
  uint64_t branch_bursts = 0;          // runs of consecutive branches that threads began
  uint64_t bursts_refused = 0;         // asked for, but what came before was not drained yet
  uint64_t burst_outcomes = 0;  // branches in them: event 3, with the predictor model's view where it has one
  uint64_t burst_judged = 0;    // of these, not in a warm-up
  uint64_t burst_mispredicted = 0;  // of those judged
  uint64_t burst_unattributed = 0;  // of the outcomes: in no version that is known, or at no instruction
  MispredictionSums burst_rates;    // the run's misprediction rate, each burst for the branches around it
  uint64_t rounds = 0;
  uint64_t rounds_broken_off = 0;  // for want of memory, or of something else; what they had in hand is lost
};

// One record with what the monitor found out about it. Everything it refers to lives during the call.
struct LocatedRecord {
  const lwp::EventRecord& record;
  uint64_t time_ns;                  // CLOCK_MONOTONIC
  bool exact_time;                   // of the event; else of the round that drained it
  uint64_t cpu_ns;                   // CPU time that a clock record stands for; else 0
  pid_t thread;                      // kernel id
  bool from_guest;                   // the guest asked for it: event 255, or event 1 of a value of its own
  bool optimized;                    // the code's tier, if `module` is set
  const wasm::Module* module;        // null: in no code version that is known
  FuncIndex function;                // whose body holds the instruction; the compiled one if unknown
  std::optional<WasmOffset> offset;  // of the WebAssembly instruction
};

struct PmuReading {
  std::string name;
  bool available = false;
  std::string why_not;
  double value = 0;  // summed over threads, scaled for multiplexing
  double scale = 1;  // share of its time in which the least counted thread was counted; 1: all of it
};

struct ThreadBranches;  // branch_bursts.h

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
    // Sees every record that was drained or made of a sample, in the order of draining. There is one call at a
    // time, with the monitor's lock held: it must be short and must not call the monitor. With
    // `only_guest_records` it sees those alone that the guest asked for, and the others cost nothing more.
    std::function<void(const LocatedRecord&)> on_record;
    bool only_guest_records = false;
    // Counts the processor's events of every thread that was attached without counters and is watched when a
    // round of the monitor's own ends. Opening counters takes longer than attaching may, so threads do not do
    // it.
    bool count_events = false;
    // Asks threads for bursts of consecutive branches and runs them through a predictor model. For units whose
    // branch records come from instrumented code.
    bool branch_bursts = false;
    HotRule hot = {};  // of the profiles
  };

  Monitor(const jit::CodeRegistry& registry, Config config);
  ~Monitor();  // stops the thread after a last round
  // kResource: there is no thread to be had. Then nothing is drained, and nobody need stop it.
  Status start();
  void stop();

  // The calling guest thread is watched by `unit` (attached already) until detach(same unit).
  void attach(std::shared_ptr<lwp::Unit> unit, std::optional<pmu::PmuCounters> counters);
  void detach(const lwp::Unit* unit);

  // From on_round or any thread: takes effect at once on all units.
  void set_frequency(uint32_t hz);
  void set_period(std::chrono::microseconds period);
  uint32_t frequency() const;

  // New code runs: a series of branch bursts is wanted from every thread that is not in the middle of one.
  // Effective from the next round on; bounded whatever is asked for (burst_schedule.h). Any thread.
  void begin_branch_series() { branch_series_wanted_.store(true, std::memory_order_relaxed); }
  // Other code begins to run: one burst of every thread, on the same terms.
  void want_branch_burst() { branch_burst_wanted_.store(true, std::memory_order_relaxed); }

  // Runs `look` with the profiles, excluding rounds. The map's key is the module.
  using Profiles = std::map<const wasm::Module*, std::unique_ptr<Profile>>;
  void with_profiles(const std::function<void(Profiles&)>& look);
  // A profile that is to be put among these.
  std::unique_ptr<Profile> make_profile(const std::shared_ptr<const wasm::Module>& module) const {
    return std::make_unique<Profile>(module, config_.hot);
  }
  // What ran late of all modules, forgotten ones included.
  LateSummary late() const;
  // Lets go of a module that no code is left of, with its profile. Any thread.
  void forget(const wasm::Module* module);

  MonitorCounts counts() const;
  lwp::UnitCounters unit_counters() const;  // summed over all units, ended ones included
  // Records that threads wrote into their rings: drained + missed + still in a ring.
  uint64_t emitted() const;
  std::vector<PmuReading> pmu() const;
  // CPU time that the watched threads have taken since each was attached. It includes what earlier threads had
  // taken when they were detached. A difference of two readings is what guests ran in between.
  double guest_seconds() const;
  // Threads that are watched now. Any thread.
  size_t guest_threads() const;
  // Of these. Rounds of the monitor's own are made elsewhere if they can; what else is done for guests may be.
  GuestProcessors& guest_processors() { return guest_processors_; }

  // One round now, on the calling thread (which must not be a guest thread inside the guest). Used by tests
  // and at the end of a run.
  void round();

 private:
  struct Watched {
    explicit Watched(GuestProcessors& all);
    const GuestProcessors::Member processor;
    std::shared_ptr<lwp::Unit> unit;
    std::optional<pmu::PmuCounters> counters;
    lwp::Batch batch;
    pid_t thread = 0;
    double seconds_at_attach = 0;              // its CPU time
    std::unique_ptr<ThreadBranches> branches;  // null: no bursts
  };
  void run();
  void note_broken_off(const char* why) noexcept;
  void open_counters();
  void drain(Watched& watched);
  // CPU time, since it was attached.
  static double seconds_run(const Watched& watched);
  void ask_for_bursts();
  void attribute_bursts(Watched& watched);
  uint32_t number_of(const std::shared_ptr<const wasm::Module>& module);
  // Latency and source of a miss at this instruction, as timed loads of it said; {0, none} if none did.
  std::pair<uint32_t, lwp::MissSource> estimate(const jit::RegisteredCode& code, CodeOffset instruction);
  void attribute_sample(const lwp::RawSample& sample);
  // `sample`: the raw sample that the record was made of, if any.
  void attribute(const lwp::EventRecord& record, const lwp::RawSample* sample);
  void attribute_hardware(const lwp::EventRecord& record);
  void tell(const lwp::EventRecord& record, const lwp::RawSample* sample, const jit::RegisteredCode* code,
            const std::optional<jit::PcRow>& row, bool from_guest);
  Profile& profile_of(const std::shared_ptr<const wasm::Module>& module);

  const jit::CodeRegistry& registry_;
  Config config_;
  GuestProcessors guest_processors_;

  mutable std::mutex mutex_;  // protects everything below but thread control
  std::vector<std::unique_ptr<Watched>> watched_;
  Profiles profiles_;
  std::vector<std::shared_ptr<const wasm::Module>> keep_modules_;  // null: forgotten, a place for another
  MonitorCounts counts_;
  LateSummary forgotten_late_;
  lwp::UnitCounters ended_;
  uint64_t ended_emitted_ = 0;
  double ended_seconds_ = 0;
  pid_t draining_ = 0;       // whose records are being attributed
  uint64_t drain_time_ = 0;  // ns, CLOCK_MONOTONIC; when this round began
  std::map<std::string, PmuReading> pmu_ended_;
  std::vector<pmu::PmuCounters> closing_;  // of ended threads, in the sum; the next round closes them
  uint32_t frequency_hz_;
  uint64_t ended_bursts_ = 0, ended_refused_ = 0;
  // Relaxed: wishes, nothing is published by them.
  std::atomic<bool> branch_series_wanted_{false}, branch_burst_wanted_{false};
  std::chrono::steady_clock::time_point last_decay_;

  std::mutex control_mutex_;  // protects stop_ and period_
  std::condition_variable control_;
  bool stop_ = false;
  std::chrono::microseconds period_;
  std::thread thread_;
};

}  // namespace hindsight::feedback
