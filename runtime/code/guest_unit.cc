#include "runtime/code/guest_unit.h"

#include <unistd.h>

#include "base/monotonic_clock.h"
#include "feedback/lwp/format/record.h"

namespace hindsight::rt {

GuestUnit::GuestUnit(std::shared_ptr<lwp::Unit> unit, feedback::Monitor& monitor)
    : unit_(std::move(unit)),
      monitor_(monitor),
      thread_(::gettid()),
      listens_(!unit_->events().empty()),
      random_(reinterpret_cast<uintptr_t>(this) | 1) {
  monitor_.attach(unit_, std::nullopt);  // the monitor opens the counters
}

GuestUnit::~GuestUnit() {
  if (!owner_.here()) {
    // The unit belongs to the parent's thread: its descriptor is shared with it and its ring is not mapped
    // here.
    leak(std::move(unit_));
    return;
  }
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

// Where only entries and back edges take from the counter, what comes next is always the same branch. So some of those that
// follow go by, and one of these is recorded. Selects that come by meanwhile are recorded too, about as many as one in
// kValueInterval.
void GuestUnit::branch(jit::ThreadState& thread, const void* pc, bool taken, const void* target) {
  lwp::BranchBursts& bursts = unit_->branch_bursts();
  if (bursts.active()) {
    const bool more = bursts.add(reinterpret_cast<uint64_t>(pc), taken, reinterpret_cast<uint64_t>(target));
    thread.lwp_branches = more ? kEveryBranch : reload(kBranchInterval);
    return;
  }
  if (passing_ < 0) passing_ = static_cast<int32_t>(random_ >> 8 & 7);
  if (passing_ > 0) {
    --passing_;
    thread.lwp_branches = kEveryBranch;
    return;
  }
  passing_ = -1;
  lwp::record_event(unit_->ring(),
                    lwp::make_branch_record(reinterpret_cast<uint64_t>(pc),
                                            reinterpret_cast<uint64_t>(target), taken, std::nullopt));
  thread.lwp_branches = bursts.begin() ? kEveryBranch : reload(kBranchInterval);
}

void GuestUnit::value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
                      uint32_t site_flags) {
  const bool beside_branches = thread.lwp_values >= 0;
  if (beside_branches && unit_->branch_bursts().active()) return;  // thousands of branches
  lwp::record_event(unit_->ring(), lwp::make_value_record(reinterpret_cast<uint64_t>(pc), value, wasm_offset,
                                                          static_cast<uint16_t>(site_flags)));
  if (!beside_branches) thread.lwp_values = reload(kValueInterval);
}

// What the guest marks is looked at along time, so these records, unlike counted events, carry theirs.
bool GuestUnit::insert_event(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  return unit_->ring()
      .store(lwp::make_programmed_record(reinterpret_cast<uint64_t>(pc), data2, data1, flags, monotonic_ns()))
      .missed;
}

bool GuestUnit::insert_value(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  return unit_->ring()
      .store(lwp::make_value_record(reinterpret_cast<uint64_t>(pc), data2, data1, flags, monotonic_ns()))
      .missed;
}

}  // namespace hindsight::rt
