#include "feedback/lwp/units/hardware/hardware_records.h"

#include <linux/perf_event.h>

#include <algorithm>

#include "feedback/lwp/units/hardware/ibs.h"
#include "feedback/lwp/units/memory_source.h"
#include "feedback/lwp/units/perf_sample.h"

namespace hindsight::lwp {
namespace {

// Cycles. WEIGHT_STRUCT has the load's latency in the low half; the plain weight is a whole word, which only
// nonsense makes larger than 32 bits.
uint32_t latency_of(const HardwareLayout& layout, uint64_t weight) {
  if (layout.weight_struct) return static_cast<uint32_t>(weight);
  return static_cast<uint32_t>(std::min<uint64_t>(weight, UINT32_MAX));
}

}  // namespace

void HardwareRecorder::emit(std::vector<EventRecord>& to, EventRecord record, Place place) {
  if (!guest_code_.contains(record.address)) {
    ++counts_.non_guest;
    return;
  }
  record.core_id = place.core;
  record.timestamp = place.time;
  to.push_back(record);
  ++counts_.records;
}

bool HardwareRecorder::read_sample(uint16_t misc, std::span<const std::byte> body) {
  const auto identifier = perf_sample_identifier(body);
  const auto layout = std::ranges::find_if(
      layouts_, [&](const HardwareLayout& l) { return identifier && l.identifier == *identifier; });
  const auto sample = layout == layouts_.end() ? std::nullopt : parse_perf_sample(body, layout->sample_type);
  if (!sample) {
    ++counts_.malformed;
    return false;
  }
  switch (layout->kind) {
    case HardwareEventKind::kLoads:
      return read_load(*layout, misc, *sample);
    case HardwareEventKind::kIbs:
      return read_ibs(*sample);
    case HardwareEventKind::kBranchStack:
      read_branches(*sample);
      return true;
    case HardwareEventKind::kInstructions:
      if (layout->exact_ip && !(misc & PERF_RECORD_MISC_EXACT_IP)) {
        ++counts_.inexact;
        return true;
      }
      emit(*records_, make_instructions_record(sample->ip),
           {sample->time, static_cast<uint8_t>(sample->cpu)});
      return true;
  }
  return false;
}

bool HardwareRecorder::read_load(const HardwareLayout& layout, uint16_t misc, const PerfSample& sample) {
  if (layout.exact_ip && !(misc & PERF_RECORD_MISC_EXACT_IP)) {
    ++counts_.inexact;
    return true;
  }
  const LoadOrigin origin = decode_perf_data_source(sample.data_source);
  if (!perf_data_source_is_load(sample.data_source) || !origin.missed_l1) {
    ++counts_.no_event;
    return true;
  }
  // Address 0 is how the kernel says that there is none.
  const auto address = sample.address != 0 ? std::optional(sample.address) : std::nullopt;
  emit(*records_,
       make_dcache_miss_record(sample.ip, address, latency_of(layout, sample.weight), origin.source),
       {sample.time, static_cast<uint8_t>(sample.cpu)});
  return true;
}

bool HardwareRecorder::read_ibs(const PerfSample& sample) {
  const auto op = decode_ibs_raw(sample.raw, processor_);
  if (!op) {
    ++counts_.malformed;
    return false;
  }
  if (!op->rip_valid) {
    ++counts_.inexact;
    return true;
  }
  const Place place{sample.time, static_cast<uint8_t>(sample.cpu)};
  // One record an instruction at most, as LWP has it; what says more wins.
  if (op->branch) {
    emit(*records_, make_branch_record(op->rip, op->target.value_or(0), op->taken, !op->mispredicted), place);
  } else if (op->load && op->l1_miss) {
    emit(*records_, make_dcache_miss_record(op->rip, op->address, op->latency, op->source), place);
  } else {
    emit(*records_, make_instructions_record(op->rip), place);
  }
  return true;
}

void HardwareRecorder::read_branches(const PerfSample& sample) {
  const Place place{sample.time, static_cast<uint8_t>(sample.cpu)};
  for (size_t i = sample.branch_count(); i-- > 0;) {  // the kernel's first is the newest
    const BranchEntry entry = sample.branch(i);
    if (entry.aborted() || entry.wrong_path()) {
      ++counts_.no_event;
      continue;
    }
    std::optional<bool> right;
    if (entry.mispredicted() || entry.predicted()) right = !entry.mispredicted();
    emit(*taken_, make_branch_record(entry.from, entry.to, /*taken=*/true, right), place);
  }
}

}  // namespace hindsight::lwp
