#include <fmt/format.h>
#include <sys/platform/x86.h>

#include "base/immortal.h"
#include "runtime/code/machine_identity.h"

namespace hindsight::rt {

std::string processor_identity() {
  static const Immortal<std::string> identity([] {
    std::string text;
    // By register: what is stable. Leaf 1's EBX says on which core this runs, 8000_0008's EAX and ECX how
    // large addresses and the package are.
    struct Leaf {
      unsigned index;
      bool eax, ebx, ecx, edx;
    };
    constexpr Leaf kLeaves[] = {
        {CPUID_INDEX_1, true, false, true, true},          {CPUID_INDEX_7, false, true, true, true},
        {CPUID_INDEX_80000001, true, true, true, true},    {CPUID_INDEX_D_ECX_1, true, false, false, false},
        {CPUID_INDEX_80000008, false, true, false, false}, {CPUID_INDEX_7_ECX_1, true, true, true, true},
        {CPUID_INDEX_19, false, true, false, false}};
    for (const Leaf& leaf : kLeaves) {
      const cpuid_feature* const known = __x86_get_cpuid_feature_leaf(leaf.index);
      if (known == nullptr) continue;
      const bool wanted[] = {leaf.eax, leaf.ebx, leaf.ecx, leaf.edx};
      for (int i = 0; i < 4; ++i)
        if (wanted[i]) text += fmt::format("{:x}/{:x} ", known->cpuid_array[i], known->active_array[i]);
    }
    if (!text.empty()) text.pop_back();
    return text;
  }());
  return *identity;
}

}  // namespace hindsight::rt
