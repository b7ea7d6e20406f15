#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {

// Constant-initialized, never destroyed: signal handlers may run until the process ends.
constinit static AddressRanges<8192> g_memory_reservations;
constinit static AddressRanges<256> g_code_ranges;

AddressRanges<8192>& memory_reservations() noexcept {
  return g_memory_reservations;
}
AddressRanges<256>& code_ranges() noexcept {
  return g_code_ranges;
}

}  // namespace hindsight::rt
