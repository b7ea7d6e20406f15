// EngineClock: seconds since an engine's start. Constant, so any thread.
#pragma once

#include <chrono>

namespace hindsight::rt {

class EngineClock {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  double seconds(Time at) const { return std::chrono::duration<double>(at - start_).count(); }
  double now() const { return seconds(Clock::now()); }

 private:
  const Time start_ = Clock::now();
};

}  // namespace hindsight::rt
