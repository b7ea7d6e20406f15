// The hardware events of one thread, opened: what the plan asks for and the kernel grants, in one ring.
// Internal to the hardware unit, whose lock guards every call but the constructor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "feedback/lwp/units/hardware/hardware_plan.h"
#include "feedback/lwp/units/hardware/hardware_records.h"
#include "feedback/lwp/units/perf_kernel.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

// What became of the plan, event by event.
struct HardwareOutcome {
  struct Delivered {
    EventId event;
    std::string by;  // the request's name
    std::string how;
  };
  struct Refused {
    EventId event;
    std::string why;  // the request's name and the kernel's answer
  };
  std::vector<Delivered> delivered;  // an event may be delivered by several, as on hybrid processors
  std::vector<Refused> refused;

  bool delivers(EventId event) const;
  // All refusals of `event`, in one line; empty if there were none.
  std::string why_not(EventId event) const;
  // Every refusal once, in one line.
  std::string why_nothing() const;
};

// The rows of a unit that has these hardware events and a clock beside them. Each event stands once: by the
// hardware where it delivers it, else as `clock` does, with the reason. What baseline code counts goes on
// beside the hardware, and the row says so. Owns its texts; immutable.
class EventTable {
 public:
  EventTable(const HardwareOutcome& outcome, std::span<const EventInfo> clock, std::string_view clock_name);
  std::span<const EventInfo> rows() const { return rows_; }
  bool says_the_same_as(const EventTable& other) const;

  EventTable(const EventTable&) = delete;
  EventTable& operator=(const EventTable&) = delete;

 private:
  std::string_view keep(std::string text);
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<EventInfo> rows_;
};

// Opens every request of the plan, closes all again and says what would have been delivered.
HardwareOutcome probe_hardware(PerfKernel& kernel, const HardwarePlan& plan);

class HardwareSession {
 public:
  // Opens and starts the plan's events for the calling thread; frequency 0 leaves them stopped. Fails only if
  // not one of them can be had, or their ring cannot.
  static Result<std::unique_ptr<HardwareSession>> open(PerfKernel& kernel, const HardwareMachine& machine,
                                                       uint32_t frequency_hz, CodeRange guest_code,
                                                       const BranchKinds& branches = {});

  const HardwareOutcome& outcome() const { return outcome_; }

  // 0 stops. What cannot be changed stays as it is; the first failure is returned.
  Status set_frequency(uint32_t hz);
  Status stop() { return set_frequency(0); }

  // Appends what is new and adds to `counters`, which holds the unit's sums.
  void drain(Batch& batch, UnitCounters& counters);

 private:
  struct Event {
    pmu::FileDescriptor leader;  // empty where the event leads itself
    pmu::FileDescriptor fd;
    bool fixed_period = false;
    const pmu::FileDescriptor& head() const { return leader ? leader : fd; }
  };

  HardwareSession(PerfKernel& kernel, const HardwareMachine& machine, CodeRange guest_code)
      : kernel_(kernel), recorder_(machine.signature, guest_code) {}
  Status add(Event event, const HardwareLayout& layout);

  PerfKernel& kernel_;
  HardwareOutcome outcome_;
  std::vector<Event> events_;  // the first owns the ring
  std::unique_ptr<PerfRingMemory> ring_;
  HardwareRecorder recorder_;
  HardwareCounts seen_;  // of the recorder, already added to the unit's sums
  std::vector<std::byte> scratch_;
  uint32_t rate_ = 0;  // what the events were last set to, while they run or rest
  bool running_ = false;
};

}  // namespace hindsight::lwp
