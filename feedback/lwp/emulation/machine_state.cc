#include "feedback/lwp/emulation/machine_state.h"

namespace hindsight::lwp {

LwpConfig decode_lwp_config(uint64_t msr) {
  return {.enabled = decode_features(static_cast<uint32_t>(msr)),
          .core_id = static_cast<uint8_t>(msr >> 32),
          .interrupt_vector = static_cast<uint8_t>(msr >> 40)};
}

uint64_t encode_lwp_config(const LwpConfig& config) {
  return encode_features(config.enabled) | uint64_t{config.core_id} << 32 |
         uint64_t{config.interrupt_vector} << 40;
}

Outcome<Capabilities> enable(const Capabilities& hardware, const LwpConfig& config, bool xcr0_lwp) {
  const uint32_t wanted = encode_features(config.enabled);
  if (wanted & ~encode_features(hardware.hardware)) {
    return std::unexpected(
        Fault{FaultKind::kGeneralProtection, 0, "LWP_CFG enables what the hardware does not have"});
  }
  Capabilities seen = hardware;
  seen.usable = xcr0_lwp ? config.enabled : FeatureSet{};
  return seen;
}

}  // namespace hindsight::lwp
