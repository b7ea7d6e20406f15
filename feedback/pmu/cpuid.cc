#include "feedback/pmu/cpuid.h"

#include <cpuid.h>

namespace hindsight::pmu {

CpuidRegisters cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters r;
  // __get_cpuid_count asks leaf 0 or 8000_0000 for the highest leaf first.
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

}  // namespace hindsight::pmu
