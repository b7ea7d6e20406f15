// How much memory the processor's TLB reaches, from CPUID: what lies beyond is walked for. It is the second level's
// entries for data on pages of 4 KiB, as Fn8000_0006 (AMD), leaf 0x18 or leaf 2 (Intel) tell them.
//
// Hypervisors show zeros there, or the entries of a processor that is long gone. Fewer than any has had for ten
// years are not believed. A pure decoder and one reader of the running machine; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "feedback/pmu/x86_64.h"

namespace hindsight::lwp {

// Bytes; empty: nobody says. `cpuid` answers as the instruction does, with zeros for leaves that do not exist.
// (AMD APM vol. 3, E.4.5 and E.4.19; Intel SDM vol. 2A, CPUID, leaves 2 and 18H.)
std::optional<uint64_t> decode_tlb_reach(
    const std::function<pmu::CpuidRegisters(uint32_t leaf, uint32_t subleaf)>& cpuid);

std::optional<uint64_t> detect_tlb_reach();

}  // namespace hindsight::lwp
