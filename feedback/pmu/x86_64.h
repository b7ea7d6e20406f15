// The instructions of x86-64 that this room executes. CPUID is a value, so that decoders are pure functions that tests
// feed with dumps of processors nobody here owns. Any thread may call; nothing fails: a leaf above the highest one reads
// as zeros.
#pragma once

#include <cstdint>

namespace hindsight::pmu {

struct CpuidRegisters {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  friend bool operator==(const CpuidRegisters&, const CpuidRegisters&) = default;
};

// Executes CPUID on the calling thread's processor. All zeros where the leaf does not exist: Intel processors
// would answer with the data of their highest basic leaf instead.
CpuidRegisters cpuid(uint32_t leaf, uint32_t subleaf = 0);
// The first leaf of the range that hypervisors answer, which has a rule of its own for its highest one. Meaningful
// where leaf 1 says that there is a hypervisor.
CpuidRegisters hypervisor_leaf();

// RDPMC: faults where the kernel forbids it (user_counter.h).
uint64_t read_performance_counter(uint32_t counter);

// Bits [high:low] of a register.
constexpr uint32_t bits(uint32_t value, unsigned high, unsigned low) {
  return (value >> low) & (high - low == 31 ? ~0u : (1u << (high - low + 1)) - 1);
}
constexpr bool bit(uint32_t value, unsigned position) {
  return (value >> position) & 1;
}

}  // namespace hindsight::pmu
