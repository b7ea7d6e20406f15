// A Lightweight Profiling unit: the thing that watches one guest thread. One interface, one record format,
// one ring protocol; a reader cannot tell units apart except by name and stated accuracy.
//
// Three kinds of evidence come out:
//   - finished 32-byte records, which the thread writes into its own ring (instrumented code calls
//     hindsight_lwp_record_event or record_event with events 1, 2 and 3);
//   - raw clock samples, which only somebody who knows the code can turn into records 5 and 4.
//   - where the processor samples for itself, finished records 2, 3 and 4 that it made.
//
// Life: created by a factory on any thread. attach() on the guest thread before it runs guest code; detach()
// on that same thread. Destroyed by anybody, after a last drain(). drain(), set_frequency() and counters()
// may run at any time in between, on one other thread (the monitor). They may also run after detach: what was
// sampled before is handed out then.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "feedback/lwp/format/branch_burst.h"
#include "feedback/lwp/format/branch_kinds.h"
#include "feedback/lwp/format/ring.h"
#include "feedback/lwp/format/sample.h"

namespace hindsight {
class TraceDirectory;
}

namespace hindsight::lwp {

enum class Accuracy : uint8_t { kExact, kEstimated };
std::string_view to_string(Accuracy accuracy);

struct EventInfo {
  EventId id;
  Accuracy accuracy;
  std::string_view how;   // what the accuracy rests on, for a person
  std::string_view by{};  // who delivers it where several could: "clock", "hardware: PEBS loads"
  std::string_view
      why{};  // why nobody better does, beginning with who was asked; empty if there is nothing better
};

// Addresses [begin, end) that hold guest code; samples elsewhere are counted and dropped.
struct CodeRange {
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX;
  bool contains(uint64_t pc) const { return pc >= begin && pc < end; }
};

inline constexpr uint32_t kMaxFrequency = 10'000;  // a sample costs about 13 us where it was measured
inline constexpr uint32_t kDefaultFrequency = 250;
// kUsage beyond kMaxFrequency.
Status check_frequency(uint32_t hz);

struct UnitConfig {
  uint32_t frequency_hz =
      kDefaultFrequency;  // samples per second of the thread's time; 0: attached but paused
  CodeRange guest_code{};
  Ring::Options ring{};
  BranchKinds branches{};  // of the hardware unit's branch stacks; other units take what code records
  // The model unit's: what instrumented code writes (null: none does), its configuration (model_config.cc;
  // empty: the default), and whether it keeps the addresses of every load.
  const TraceDirectory* trace = nullptr;
  std::string model{};
  bool remember_addresses = false;
};

// Sums since creation. Everything that was seen and not handed out is in one of them.
struct UnitCounters {
  uint64_t samples = 0;             // raw samples handed out
  uint64_t records = 0;             // records handed out
  uint64_t missed = 0;              // records that found the ring full
  uint64_t lost = 0;                // samples dropped because the monitor came too late
  uint64_t throttled = 0;           // times the kernel stopped sampling because of its own limit
  uint64_t overruns = 0;            // timer expirations that were merged into a later one
  uint64_t non_guest = 0;           // samples outside the guest's code
  uint64_t malformed = 0;           // kernel records that made no sense; what followed them was skipped
  uint64_t discarded = 0;           // records taken by a unit that only counts
  uint64_t hardware_non_guest = 0;  // hardware samples outside the guest's code
  uint64_t inexact = 0;             // hardware samples of which the processor could not say the instruction
  uint64_t no_event =
      0;  // hardware samples that are no LWP event: first-level hits, stores, aborted branches

  constexpr UnitCounters& operator+=(const UnitCounters& other) {
    samples += other.samples;
    records += other.records;
    missed += other.missed;
    lost += other.lost;
    throttled += other.throttled;
    overruns += other.overruns;
    non_guest += other.non_guest;
    malformed += other.malformed;
    discarded += other.discarded;
    hardware_non_guest += other.hardware_non_guest;
    inexact += other.inexact;
    no_event += other.no_event;
    return *this;
  }
};

// What one drain hands out. The monitor owns it, clears it and passes it again, so that steady state
// allocates nothing.
struct Batch {
  std::vector<EventRecord> records;  // the thread's own ring
  std::vector<RawSample> samples;
  // Events 2, 3 and 4 as the processor saw them; their addresses are those of the instructions themselves.
  std::vector<EventRecord> hardware;
  // Event 3 from branch stacks, likewise: taken branches only, so nothing follows from them about how often a
  // branch is taken.
  std::vector<EventRecord> taken_branches;
  void clear() {
    records.clear();
    samples.clear();
    hardware.clear();
    taken_branches.clear();
  }
};

class Unit {
 public:
  virtual ~Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // "clock/perf", "clock/timer", "clock" while not attached, "null".
  virtual std::string_view name() const = 0;
  // The events this unit delivers, and how well.
  virtual std::span<const EventInfo> events() const = 0;

  // Starts watching the calling thread. kResource: limits or permissions; kUsage: already attached, a signal
  // conflict. On error nothing of the attempt remains.
  virtual Status attach() = 0;
  // Stops watching; the calling thread must be the one that attached. Harmless when not attached.
  virtual void detach() = 0;

  // Changes the rate at run time; 0 pauses. kUsage beyond kMaxFrequency. Before attach it sets the rate to
  // begin with.
  virtual Status set_frequency(uint32_t hz) = 0;

  // Appends what is new to `batch`: the ring's records and the clock samples, each in order of time.
  virtual void drain(Batch& batch) = 0;

  virtual UnitCounters counters() const = 0;

  // The thread's own ring. Lives as long as the unit.
  Ring& ring() { return *ring_; }

  // Runs of consecutive branches, which instrumented code records when the monitor asks for them.
  BranchBursts& branch_bursts() { return branch_bursts_; }

 protected:
  explicit Unit(std::unique_ptr<Ring> ring) : ring_(std::move(ring)) {}
  // Appends everything in the ring; returns how many records.
  size_t drain_ring(std::vector<EventRecord>& out);

  std::unique_ptr<Ring> ring_;
  BranchBursts branch_bursts_;
};

// Records one event of the calling thread into its ring.
inline void record_event(Ring& ring, const EventRecord& record) {
  ring.store(record);
}

// Makes units, one for each guest thread. Any thread.
class UnitFactory {
 public:
  virtual ~UnitFactory() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const EventInfo> events() const = 0;
  virtual Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const = 0;
};

// One way of profiling, and whether this machine allows it.
struct UnitProbe {
  std::string name;  // "native", "hardware", "clock/perf", "clock/timer", "model", "null"
  bool available = false;
  bool selected = false;
  std::string reason;  // why it is not available, or available and not selected; empty for the selected one
  // What it delivers on this machine; of one that is not available, what it delivers where it is.
  std::vector<std::pair<EventId, Accuracy>> delivers{};
};

struct Selection {
  std::unique_ptr<UnitFactory> factory;
  std::vector<UnitProbe> probes;  // every unit there is, best first
};

// Chooses by name: "auto", or one of the probes' names, or "clock" for the better of its two sources, or "clock-timer" for the lesser. Asks
// the machine at each call. kUnsupported with the reason if the named unit is not available here, kUsage if
// there is no such name.
Result<Selection> select_unit(std::string_view name);

}  // namespace hindsight::lwp
