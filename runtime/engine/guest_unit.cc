#include "runtime/engine/guest_unit.h"

#include <unistd.h>

#include "feedback/lwp/record.h"

namespace hindsight::rt {

GuestUnit::GuestUnit(std::shared_ptr<lwp::Unit> unit, feedback::Monitor& monitor)
    : unit_(std::move(unit)),
      monitor_(monitor),
      thread_(::gettid()),
      random_(reinterpret_cast<uintptr_t>(this) | 1) {
  monitor_.attach(unit_, pmu::PmuCounters::open());
}

GuestUnit::~GuestUnit() {
  // Stop first, drain afterwards: nothing sampled is lost. On another thread (the engine ended first) the
  // unit's own destructor stops it.
  if (::gettid() == thread_) unit_->detach();
  monitor_.detach(unit_.get());
}

int32_t GuestUnit::reload(int32_t interval) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return interval - static_cast<int32_t>(random_ & 0xff);
}

void GuestUnit::arm(jit::ThreadState& thread) {
  thread.lwp_instructions = kInstructionInterval;
  thread.lwp_branches = kBranchInterval;
  thread.lwp_values = kValueInterval;
}

void GuestUnit::instructions(jit::ThreadState& thread, const void* pc) {
  lwp::record_event(unit_->ring(), lwp::make_instructions_record(reinterpret_cast<uint64_t>(pc)));
  thread.lwp_instructions = reload(kInstructionInterval);
}

void GuestUnit::branch(jit::ThreadState& thread, const void* pc, bool taken, const void* target) {
  lwp::record_event(unit_->ring(),
                    lwp::make_branch_record(reinterpret_cast<uint64_t>(pc),
                                            reinterpret_cast<uint64_t>(target), taken, std::nullopt));
  thread.lwp_branches = reload(kBranchInterval);
}

void GuestUnit::value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
                      uint32_t site_flags) {
  lwp::record_event(unit_->ring(), lwp::make_value_record(reinterpret_cast<uint64_t>(pc), value, wasm_offset,
                                                          static_cast<uint16_t>(site_flags)));
  thread.lwp_values = reload(kValueInterval);
}

}  // namespace hindsight::rt
