#include "feedback/lwp/format/record.h"

#include <fmt/format.h>

namespace hindsight::lwp {

std::string_view to_string(EventId id) {
  switch (id) {
    case EventId::kNone:
      return "no event";
    case EventId::kValue:
      return "value sample";
    case EventId::kInstructions:
      return "instructions retired";
    case EventId::kBranches:
      return "branches retired";
    case EventId::kDcacheMiss:
      return "DCache miss";
    case EventId::kCoreClocks:
      return "core clocks";
    case EventId::kReferenceClocks:
      return "reference clocks";
    case EventId::kProgrammed:
      return "programmed event";
  }
  return "unknown";
}

std::string_view to_string(MissSource source) {
  switch (source) {
    case MissSource::kNone:
      return "unknown";
    case MissSource::kLocalL3:
      return "local L3";
    case MissSource::kRemote:
      return "remote cache";
    case MissSource::kDram:
      return "DRAM";
    case MissSource::kOther:
      return "other";
  }
  return "reserved";
}

std::string describe(const EventRecord& r) {
  std::string line = fmt::format("{} at {:#x}", to_string(r.id()), r.address);
  switch (r.id()) {
    case EventId::kValue:
    case EventId::kProgrammed:
      line += fmt::format(", value {:#x}, data {:#x}, flags {:#x}", r.data2, r.data1, r.flags);
      break;
    case EventId::kBranches:
      line += fmt::format(", {} {:#x}", branch_taken(r) ? "taken to" : "not taken, on to", r.data2);
      if (const auto right = branch_predicted_right(r)) line += *right ? ", predicted" : ", mispredicted";
      break;
    case EventId::kDcacheMiss:
      if (const auto address = miss_address(r)) line += fmt::format(", address {:#x}", *address);
      if (r.data1 != 0) line += fmt::format(", {} cycles", r.data1);
      if (miss_source(r) != MissSource::kNone) line += fmt::format(", from {}", to_string(miss_source(r)));
      break;
    case EventId::kInstructions:
    case EventId::kCoreClocks:
    case EventId::kReferenceClocks:
      break;
    case EventId::kNone:
    default:
      line = fmt::format("event {} at {:#x}, data {:#x} {:#x}, flags {:#x}", r.event_id, r.address, r.data1,
                         r.data2, r.flags);
      break;
  }
  if (r.core_id != 0) line += fmt::format(", core {}", r.core_id);
  if (r.timestamp != 0) line += fmt::format(", time {}", r.timestamp);
  return line;
}

}  // namespace hindsight::lwp
