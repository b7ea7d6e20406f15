#include "feedback/pmu/x86_64.h"

#include <cpuid.h>

namespace hindsight::pmu {

CpuidRegisters cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters r;
  // __get_cpuid_count asks leaf 0 or 8000_0000 for the highest leaf first.
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

CpuidRegisters hypervisor_leaf() {
  CpuidRegisters r{.eax = 0x40000000};
  asm volatile("cpuid" : "+a"(r.eax), "=b"(r.ebx), "+c"(r.ecx), "=d"(r.edx));
  return r;
}

uint64_t read_performance_counter(uint32_t counter) {
  uint32_t low, high;
  asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
  return uint64_t{high} << 32 | low;
}

}  // namespace hindsight::pmu
