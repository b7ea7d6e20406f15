// The 32-byte event record of Lightweight Profiling, final layout (AMD publication 43724): what every unit
// writes and every reader gets, whoever made it. The layout is shared with generated code and with native
// programs; offsets are fixed here once.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "feedback/lwp/format/unconfirmed.h"  // flags of event 4

namespace hindsight::lwp {

// EventIds. Bit n of a control block's Flags and slot n of its counters belong to EventId n.
enum class EventId : uint8_t {
  kNone = 0,  // never stored; a zeroed slot
  kValue = 1,
  kInstructions = 2,
  kBranches = 3,
  kDcacheMiss = 4,
  kCoreClocks = 5,
  kReferenceClocks = 6,
  kProgrammed = 255,  // LWPINS
};

// "value sample", "DCache miss", ...; "unknown" for ids without a meaning.
std::string_view to_string(EventId id);

struct EventRecord {
  uint8_t event_id = 0;
  uint8_t core_id = 0;
  uint16_t flags = 0;
  uint32_t data1 = 0;
  uint64_t address = 0;    // of the instruction
  uint64_t data2 = 0;      // first operand, branch target or data address
  uint64_t timestamp = 0;  // zero, or a time stamp where the control block asks for PTSC

  EventId id() const { return static_cast<EventId>(event_id); }
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

inline constexpr uint32_t kRecordSize = 32;
static_assert(sizeof(EventRecord) == kRecordSize);
static_assert(offsetof(EventRecord, event_id) == 0);
static_assert(offsetof(EventRecord, core_id) == 1);
static_assert(offsetof(EventRecord, flags) == 2);
static_assert(offsetof(EventRecord, data1) == 4);
static_assert(offsetof(EventRecord, address) == 8);
static_assert(offsetof(EventRecord, data2) == 16);
static_assert(offsetof(EventRecord, timestamp) == 24);
static_assert(std::endian::native == std::endian::little, "the layout is little endian");

// The record as the four words that rings move.
using RecordWords = std::array<uint64_t, 4>;
constexpr RecordWords to_words(const EventRecord& record) {
  return std::bit_cast<RecordWords>(record);
}
constexpr EventRecord from_words(const RecordWords& words) {
  return std::bit_cast<EventRecord>(words);
}

// Flags of event 3.
inline constexpr uint16_t kBranchTaken = 1u << 15;
inline constexpr uint16_t kBranchPredicted = 1u << 14;
inline constexpr uint16_t kBranchPredictionValid = 1u << 13;  // kBranchPredicted means something

// Where a missing load's data came from.
enum class MissSource : uint8_t {
  kNone = 0,  // not known
  kLocalL3 = 1,
  kRemote = 2,
  kDram = 3,
  kOther = 7,
};
std::string_view to_string(MissSource source);

// Builders. `pc` is the address of the instruction that caused the event; `timestamp` 0 means none.
constexpr EventRecord make_value_record(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags = 0,
                                        uint64_t timestamp = 0) {
  return {static_cast<uint8_t>(EventId::kValue), 0, flags, data1, pc, data2, timestamp};
}
constexpr EventRecord make_instructions_record(uint64_t pc, uint64_t timestamp = 0) {
  return {static_cast<uint8_t>(EventId::kInstructions), 0, 0, 0, pc, 0, timestamp};
}
// `target` is the address executed next: the branch target, or the fall-through of a branch not taken.
// `predicted_right` is empty where nobody knows.
constexpr EventRecord make_branch_record(uint64_t pc, uint64_t target, bool taken,
                                         std::optional<bool> predicted_right = std::nullopt,
                                         uint64_t timestamp = 0) {
  uint16_t flags = taken ? kBranchTaken : 0;
  if (predicted_right) flags |= kBranchPredictionValid | (*predicted_right ? kBranchPredicted : 0);
  return {static_cast<uint8_t>(EventId::kBranches), 0, flags, 0, pc, target, timestamp};
}
// `address` is empty where the data address is not known; `latency` in core cycles, 0 where unknown.
constexpr EventRecord make_dcache_miss_record(uint64_t pc, std::optional<uint64_t> address, uint32_t latency,
                                              MissSource source, uint64_t timestamp = 0) {
  uint16_t flags = static_cast<uint16_t>(static_cast<unsigned>(source) << kMissSourceShift);
  if (address) flags |= kMissAddressValid;
  return {static_cast<uint8_t>(EventId::kDcacheMiss), 0, flags, latency, pc, address.value_or(0), timestamp};
}
constexpr EventRecord make_clock_record(uint64_t pc, uint64_t timestamp = 0) {
  return {static_cast<uint8_t>(EventId::kCoreClocks), 0, 0, 0, pc, 0, timestamp};
}
constexpr EventRecord make_reference_clock_record(uint64_t pc, uint64_t timestamp = 0) {
  return {static_cast<uint8_t>(EventId::kReferenceClocks), 0, 0, 0, pc, 0, timestamp};
}
constexpr EventRecord make_programmed_record(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags,
                                             uint64_t timestamp = 0) {
  return {static_cast<uint8_t>(EventId::kProgrammed), 0, flags, data1, pc, data2, timestamp};
}

// Readers; meaningful for records of the event they name.
constexpr bool branch_taken(const EventRecord& r) {
  return r.flags & kBranchTaken;
}
// Empty where the record does not say.
constexpr std::optional<bool> branch_predicted_right(const EventRecord& r) {
  if (!(r.flags & kBranchPredictionValid)) return std::nullopt;
  return (r.flags & kBranchPredicted) != 0;
}
constexpr MissSource miss_source(const EventRecord& r) {
  return static_cast<MissSource>((r.flags & kMissSourceMask) >> kMissSourceShift);
}
constexpr std::optional<uint64_t> miss_address(const EventRecord& r) {
  if (!(r.flags & kMissAddressValid)) return std::nullopt;
  return r.data2;
}

// One readable line without newline, e.g. "DCache miss at 0x401000, address 0x7f00, 250 cycles, from DRAM".
std::string describe(const EventRecord& record);

}  // namespace hindsight::lwp
