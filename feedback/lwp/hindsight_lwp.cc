#include "feedback/lwp/hindsight_lwp.h"

#include "feedback/lwp/emulation/software_lwp.h"

using namespace hindsight::lwp;

// The C layouts are the C++ ones.
static_assert(sizeof(hindsight_lwp_record) == sizeof(EventRecord));
static_assert(offsetof(hindsight_lwp_record, flags) == offsetof(EventRecord, flags));
static_assert(sizeof(hindsight_lwp_control_block) == kControlBlockBytes);
static_assert(offsetof(hindsight_lwp_control_block, head) == offsetof(ControlBlock, head));
static_assert(offsetof(hindsight_lwp_control_block, tail) == offsetof(ControlBlock, tail));
static_assert(offsetof(hindsight_lwp_control_block, events) == offsetof(ControlBlock, events));
static_assert(HINDSIGHT_LWP_MAX_EVENTS == kMaxEvents);
static_assert(HINDSIGHT_LWP_PROGRAMMED == static_cast<int>(EventId::kProgrammed));
static_assert(HINDSIGHT_LWP_CONTINUOUS == kFlagContinuous && HINDSIGHT_LWP_TIMESTAMPS == kFlagTimestamps &&
              HINDSIGHT_LWP_INTERRUPT == kFlagInterrupt);
static_assert(HINDSIGHT_LWP_TAKEN == kBranchTaken && HINDSIGHT_LWP_PREDICTED == kBranchPredicted &&
              HINDSIGHT_LWP_PREDICTION_VALID == kBranchPredictionValid);

namespace {

// The calling thread's LWP state. Trivially destructible, so it serves whatever runs while a thread ends.
SoftwareLwp& state() {
  static thread_local SoftwareLwp lwp(own_memory());
  return lwp;
}

uint64_t caller(const void* return_address) {
  return reinterpret_cast<uint64_t>(return_address);
}

}  // namespace

extern "C" {

hindsight_lwp_fault hindsight_llwpcb(hindsight_lwp_control_block* block) {
  const auto done = state().llwpcb(reinterpret_cast<uint64_t>(block));
  if (done) return HINDSIGHT_LWP_OK;
  switch (done.error().kind) {
    case FaultKind::kInvalidOpcode:
      return HINDSIGHT_LWP_INVALID_OPCODE;
    case FaultKind::kGeneralProtection:
      return HINDSIGHT_LWP_GENERAL_PROTECTION;
    case FaultKind::kPageFault:
      break;
  }
  return HINDSIGHT_LWP_PAGE_FAULT;
}

hindsight_lwp_control_block* hindsight_slwpcb(void) {
  // The memory never says no, so there is always a value; a fault could only mean "off".
  return reinterpret_cast<hindsight_lwp_control_block*>(state().slwpcb().value_or(0));
}

bool hindsight_lwpins(uint64_t data2, uint32_t data1, uint16_t flags) {
  return state().lwpins(caller(__builtin_return_address(0)), data2, data1, flags).value_or(false);
}

void hindsight_lwpval(uint64_t data2, uint32_t data1, uint16_t flags) {
  (void)state().lwpval(caller(__builtin_return_address(0)), data2, data1, flags);
}

void hindsight_lwp_cpuid(uint32_t leaf, uint32_t registers[4]) {
  const EncodedCapabilities encoded = encode_capabilities(software_capabilities());
  hindsight::pmu::CpuidRegisters answer;
  if (leaf == 0x80000001) answer.ecx = encoded.ecx_80000001;
  if (leaf == 0x8000001C) answer = encoded.leaf_8000001c;
  registers[0] = answer.eax;
  registers[1] = answer.ebx;
  registers[2] = answer.ecx;
  registers[3] = answer.edx;
}

}  // extern "C"
