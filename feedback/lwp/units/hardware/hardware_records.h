// From the kernel's samples of hardware events to LWP records: the one place that knows which sample becomes
// which event. All hardware events of a thread share one ring; a sample begins with the identifier of its
// event (PERF_SAMPLE_IDENTIFIER), which says how to read it.
//
//     sample                         records
//     PEBS load                      event 4, if it left the first-level cache
//     IBS operation                  event 4 if it was such a load; event 3 if it was a branch; else event 2
//     branch stack                   event 3 for each entry, the oldest first: all taken
//     instruction (precise or not)   event 2
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "feedback/lwp/format/record.h"
#include "feedback/lwp/units/perf_stream.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

enum class HardwareEventKind : uint8_t { kLoads, kIbs, kBranchStack, kInstructions };

// How the samples of one opened event read.
struct HardwareLayout {
  uint64_t identifier = 0;  // PERF_EVENT_IOC_ID
  HardwareEventKind kind = HardwareEventKind::kInstructions;
  uint64_t sample_type = 0;    // PERF_SAMPLE_IDENTIFIER included
  bool weight_struct = false;  // the latency is the weight's low half
  bool exact_ip = false;  // opened with precise_ip: a sample without PERF_RECORD_MISC_EXACT_IP is dropped
};

// Sums; what was seen and made no record is in one of the last four.
struct HardwareCounts {
  uint64_t records = 0;
  uint64_t non_guest = 0;  // at addresses that hold no guest code
  uint64_t inexact = 0;    // the processor could not say which instruction it was
  uint64_t no_event = 0;   // no LWP event: first-level hits, stores, aborted or wrong-path branches
  uint64_t malformed = 0;  // samples of another layout, or of an event that nobody opened
};

class HardwareRecorder final : public SampleReader {
 public:
  HardwareRecorder(const pmu::ProcessorSignature& processor, CodeRange guest_code)
      : processor_(processor), guest_code_(guest_code) {}

  void add(const HardwareLayout& layout) { layouts_.push_back(layout); }

  // Where records go until the next call. Branch-stack records go to `taken`: they are no sample of all
  // branches, because a branch that is not taken never enters the stack.
  void write_to(std::vector<EventRecord>& records, std::vector<EventRecord>& taken) {
    records_ = &records;
    taken_ = &taken;
  }

  bool read_sample(uint16_t misc, std::span<const std::byte> body) override;

  const HardwareCounts& counts() const { return counts_; }

 private:
  struct Place {  // what all records of one sample share
    uint64_t time;
    uint8_t core;
  };
  bool read_load(const HardwareLayout& layout, uint16_t misc, const struct PerfSample& sample);
  bool read_ibs(const struct PerfSample& sample);
  void read_branches(const struct PerfSample& sample);
  void emit(std::vector<EventRecord>& to, EventRecord record, Place place);

  pmu::ProcessorSignature processor_;
  CodeRange guest_code_;
  std::vector<HardwareLayout> layouts_;  // a handful: searched in order
  std::vector<EventRecord>* records_ = nullptr;
  std::vector<EventRecord>* taken_ = nullptr;
  HardwareCounts counts_;
};

}  // namespace hindsight::lwp
