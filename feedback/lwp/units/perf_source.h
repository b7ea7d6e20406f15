// Clock samples from the kernel: perf_event_open with the task clock, user mode only, user registers with
// each sample, into a ring mapped into this process. No signal is involved; any thread of the process can
// drain the ring. Works for unprivileged users while kernel.perf_event_paranoid is at most 2.
#pragma once

#include <memory>

#include "base/result.h"
#include "feedback/lwp/units/sample_source.h"

namespace hindsight::lwp {

class PerfSource {
 public:
  // Starts sampling the calling thread. kResource or kUnsupported with the reason where the kernel refuses.
  static Result<std::unique_ptr<SampleSource>> open(uint64_t period_ns, CodeRange guest_code);

  // Why open() would be refused now; empty if it would not. Opens and closes.
  static std::string refusal();
};

}  // namespace hindsight::lwp
