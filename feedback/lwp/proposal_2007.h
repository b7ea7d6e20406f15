// Reads what the Lightweight Profiling proposal of August 2007 describes, where it differs from the final
// specification: EventIds one lower (there were no value samples yet) and another CPUID leaf. Read-only:
// nothing writes this format, no processor was sold with it; simulators and papers of that time use it.
//
// The records themselves have the same 32 bytes, flags included. The proposal's control block is not read: an
// event slot named its event instead of standing at its event's place.
#pragma once

#include <optional>

#include "feedback/lwp/capabilities.h"
#include "feedback/lwp/record.h"

namespace hindsight::lwp {

// The record in the final numbering: 1 instructions, 2 branches and 3 DCache misses become 2, 3 and 4. Empty
// for any other EventId, which the proposal does not define.
std::optional<EventRecord> from_2007_record(const EventRecord& record);

// CPUID Fn8000_001C as proposed: EAX 0 enabled, 1 instructions, 2 branches, 3 DCache misses, 31 interrupt;
// EDX the same as available, but with the interrupt at 1 and the events from 2; EBX block size in bytes,
// record size, events at a time, version. Since the proposal left the presence bit open, the leaf is
// believed. `event_offset` is the fixed 40 of its control block.
Capabilities decode_2007_capabilities(const pmu::CpuidRegisters& leaf_8000001c);

}  // namespace hindsight::lwp
