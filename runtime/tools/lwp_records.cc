// LWP records of the public API: from bytes, to bytes, in words.
#include <bit>
#include <cstring>

#include "feedback/lwp/format/proposal_2007.h"
#include "feedback/lwp/format/record.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace {

lwp::EventRecord to_record(const LwpRecord& r) {
  return {r.event_id, r.core_id, r.flags, r.data1, r.address, r.data2, r.timestamp};
}

}  // namespace

std::string_view lwp_event_name(uint8_t event_id) {
  return lwp::to_string(static_cast<lwp::EventId>(event_id));
}

std::optional<LwpRecord> decode_lwp_record(std::span<const std::byte, 32> bytes, LwpLayout layout) {
  lwp::EventRecord record;
  std::memcpy(&record, bytes.data(), sizeof record);
  if (layout == LwpLayout::kProposal2007) {
    const auto converted = lwp::from_2007_record(record);
    if (!converted) return std::nullopt;
    record = *converted;
  }
  const bool defined = (record.event_id >= static_cast<uint8_t>(lwp::EventId::kValue) &&
                        record.event_id <= static_cast<uint8_t>(lwp::EventId::kReferenceClocks)) ||
                       record.id() == lwp::EventId::kProgrammed;
  if (!defined) return std::nullopt;
  LwpRecord out;
  out.event_id = record.event_id;
  out.core_id = record.core_id;
  out.flags = record.flags;
  out.data1 = record.data1;
  out.address = record.address;
  out.data2 = record.data2;
  out.timestamp = record.timestamp;
  return out;
}

std::array<std::byte, 32> encode_lwp_record(const LwpRecord& record) {
  return std::bit_cast<std::array<std::byte, 32>>(to_record(record));
}

std::string describe_lwp_record(const LwpRecord& record) {
  return lwp::describe(to_record(record));
}

}  // namespace hindsight
