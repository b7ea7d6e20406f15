// GuestUnit: one guest thread's LWP unit as the runtime sees it. Counting baseline code calls it when an
// event counter runs out; it writes the 32-byte record into the thread's ring and reloads the counter.
#pragma once

#include <sys/types.h>

#include <memory>

#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/monitor.h"
#include "runtime/code/owner_process.h"
#include "runtime/exec/lwp_sink.h"

namespace hindsight::rt {

// Event intervals of counting code. A record costs 50 to 200 ns on the guest's thread (the more where each branch of a burst is
// recorded; seen by perf in one program). One by one at these intervals that is below 0.1 % of baseline code's time.
inline constexpr int32_t kInstructionInterval = 2'000'000;
using feedback::kBranchInterval;
// Few instructions count as values; what an indirect call calls has to be known within tens of milliseconds.
using feedback::kValueInterval;

class GuestUnit final : public LwpSink {
 public:
  // The unit is attached to the calling thread; the monitor learns of it here and forgets it in the
  // destructor.
  GuestUnit(std::shared_ptr<lwp::Unit> unit, feedback::Monitor& monitor);
  ~GuestUnit() override;

  void arm(jit::ThreadState& thread) override;
  void instructions(jit::ThreadState& thread, const void* pc) override;
  void branch(jit::ThreadState& thread, const void* pc, bool taken, const void* target) override;
  void value(jit::ThreadState& thread, const void* pc, uint32_t wasm_offset, uint64_t value,
             uint32_t site_flags) override;
  bool listens() const override { return listens_; }
  bool insert_event(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) override;
  bool insert_value(const void* pc, uint64_t data2, uint32_t data1, uint16_t flags) override;

 private:
  static constexpr int32_t kEveryBranch = -1;  // the counter while every branch is to come by

  // The counter's next start: the interval with its low bits random, as the control block's Random field
  // asks.
  int32_t reload(int32_t interval);

  std::shared_ptr<lwp::Unit> unit_;
  feedback::Monitor& monitor_;
  pid_t thread_;        // kernel id of the attached thread
  const bool listens_;  // the unit hands records out
  const OwnerProcess owner_;
  uint64_t random_;
  int32_t passing_ = -1;  // branches that go by before one is recorded; negative: none is due
};

}  // namespace hindsight::rt
