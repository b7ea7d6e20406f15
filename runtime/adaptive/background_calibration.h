// Gives a running engine the machine's calibration (feedback/lwp/calibration/calibration.h). It comes from the
// user's cache at once. Else it is measured on a thread of its own at the lowest priority, so that nobody waits
// for it. A process measures once, whichever of its engines asks first.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "feedback/lwp/calibration/calibration.h"

namespace hindsight::rt {

class BackgroundCalibration {
 public:
  using Say = std::function<void(bool warning, const std::string& line)>;

  // `say` gets one line when figures are there, or why not; a cache that cannot be used is a warning. It is called
  // on the caller's thread or on the measuring one. It must stay callable until stop().
  explicit BackgroundCalibration(Say say) : say_(std::move(say)) {}
  ~BackgroundCalibration() { stop(); }
  BackgroundCalibration(const BackgroundCalibration&) = delete;
  BackgroundCalibration& operator=(const BackgroundCalibration&) = delete;

  // What the process knows or the cache holds. Reads a small file; nothing is called on another thread meanwhile.
  void load();
  // Begins a measurement if load() found nothing; once. One thread (the monitor's) calls it. Where there is no
  // thread to be had for measuring, or no memory, that is counted (base/system_failures.h).
  void measure();

  // Abandons a measurement; takes a few milliseconds at most. Nothing is said afterwards.
  void stop();

  // Null until figures are there. Any thread.
  std::shared_ptr<const lwp::Calibration> get() const;

 private:
  void run();  // on the measuring thread

  const Say say_;
  bool begun_ = false;
  // Relaxed: a wish; the thread is joined afterwards.
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hindsight::rt
