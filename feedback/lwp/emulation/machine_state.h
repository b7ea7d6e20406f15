// What an operating system handles of LWP: the two model-specific registers and the XSAVE area that a thread
// switch keeps. Typed layouts, decoders and encoders; nothing here executes a privileged instruction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "feedback/lwp/emulation/fault.h"
#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/format/record.h"

namespace hindsight::lwp {

inline constexpr uint32_t kMsrLwpConfig = 0xC0000105;        // LWP_CFG
inline constexpr uint32_t kMsrLwpControlBlock = 0xC0000106;  // LWP_CBADDR

// LWP_CFG. What a processor offers, the operating system switches on here; CPUID Fn8000_001C EAX then shows
// it to programs.
struct LwpConfig {
  FeatureSet enabled;            // 31:0, the bits of CPUID's EDX
  uint8_t core_id = 0;           // 39:32, what records carry as CoreId
  uint8_t interrupt_vector = 0;  // 47:40, of the threshold interrupt
  friend bool operator==(const LwpConfig&, const LwpConfig&) = default;
};
LwpConfig decode_lwp_config(uint64_t msr);
uint64_t encode_lwp_config(const LwpConfig& config);

// LWP_CBADDR: the calling thread's control block, 0 while LWP is off.
struct LwpControlBlockAddress {
  uint64_t address = 0;  // 63:0, linear
};
static_assert(sizeof(LwpControlBlockAddress) == 8);

// The capabilities that programs see once the operating system wrote LWP_CFG and set or cleared XCR0[62]:
// `usable` becomes what both sides have, or nothing. #GP, as writing the register would be, if `config`
// enables what the hardware lacks.
Outcome<Capabilities> enable(const Capabilities& hardware, const LwpConfig& config, bool xcr0_lwp);

// 48-bit linear addresses: what processors with LWP had.
constexpr bool is_canonical(uint64_t address) {
  return static_cast<uint64_t>(static_cast<int64_t>(address << 16) >> 16) == address;
}

// CS of a thread, which says how wide its code is.
inline constexpr uint16_t kSelector32 = 0x23;  // __USER32_CS
inline constexpr uint16_t kSelector64 = 0x33;  // __USER_CS

// XSAVE component 62: where it stands in the (standard-form) area, and its content.
inline constexpr unsigned kXsaveComponent = 62;
inline constexpr uint32_t kXsaveOffset = 832;
inline constexpr uint32_t kXsaveSize = 128;
inline constexpr unsigned kXsaveEventCounters = 16;

struct XsaveArea {
  uint64_t block_address = 0;  // 0: LWP is off, and the rest has no meaning
  uint32_t flags = 0;          // as the control block's, what is on
  uint32_t head = 0;
  uint64_t buffer_base = 0;
  uint32_t buffer_size = 0;  // bytes
  uint32_t filters = 0;
  EventRecord pending;  // gathered but not yet in the ring; event 0: none
  std::array<uint32_t, kXsaveEventCounters> event_counters{};  // [n - 1] of EventId n, encode_counter()
};

static_assert(sizeof(XsaveArea) == kXsaveSize);
static_assert(offsetof(XsaveArea, block_address) == 0);
static_assert(offsetof(XsaveArea, flags) == 8);
static_assert(offsetof(XsaveArea, head) == 12);
static_assert(offsetof(XsaveArea, buffer_base) == 16);
static_assert(offsetof(XsaveArea, buffer_size) == 24);
static_assert(offsetof(XsaveArea, filters) == 28);
static_assert(offsetof(XsaveArea, pending) == 32);
static_assert(offsetof(XsaveArea, event_counters) == 64);

}  // namespace hindsight::lwp
