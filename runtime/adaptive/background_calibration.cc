#include "runtime/adaptive/background_calibration.h"

#include <fmt/format.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>

#include "base/host_signals.h"
#include "base/immortal.h"
#include "base/system_failures.h"
#include "base/thread_priority.h"
#include "feedback/lwp/calibration/calibration_cache.h"

namespace hindsight::rt {
namespace {

// The machine is the same for every engine of the process.
std::mutex process_mutex;  // protects the next two
Immortal<std::shared_ptr<const lwp::Calibration>> process_calibration;
bool process_measures = false;

std::string describe(const lwp::MachineCalibration& found) {
  const lwp::Calibration& c = found.values;
  std::string line =
      found.measured ? fmt::format("measured in {:.0f} ms", c.seconds * 1e3) : "from the cache";
  line += fmt::format(
      ": L1 {:.1f} ns, L2 {:.1f} ns, L3 {:.1f} ns, memory {:.0f} ns, core {:.2f} GHz, "
      "misprediction {:.0f} cycles",
      c.l1.latency_ns, c.l2.latency_ns, c.l3.latency_ns, c.memory.latency_ns, c.core_ghz,
      c.mispredict_cycles());
  if (!found.note.empty()) line += "; " + found.note;
  return line;
}

void end_measuring() {
  const std::lock_guard lock(process_mutex);
  process_measures = false;
}

// Whoever needs the figures has none.
void go_without(int error) {
  end_measuring();
  count_system_failure(SystemFailure::kCalibration, error);
}

void keep(const lwp::Calibration& calibration) {
  const std::lock_guard lock(process_mutex);
  *process_calibration = std::make_shared<const lwp::Calibration>(calibration);
}

}  // namespace

void BackgroundCalibration::stop() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const lwp::Calibration> BackgroundCalibration::get() const {
  const std::lock_guard lock(process_mutex);
  return *process_calibration;
}

void BackgroundCalibration::load() {
  if (get()) return;
  std::string note;
  const auto known = lwp::known_calibration(note);
  if (known) {
    keep(known->values);
    say_(false, describe(*known));
  } else if (!note.empty()) {
    say_(true, note);
  }
}

void BackgroundCalibration::measure() {
  if (begun_) return;
  begun_ = true;
  {
    const std::lock_guard lock(process_mutex);
    if (*process_calibration || process_measures) return;
    process_measures = true;
  }
  try {
    const HostSignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& none) {
    go_without(none.code().value());
  } catch (const std::bad_alloc&) {
    go_without(ENOMEM);
  }
}

void BackgroundCalibration::run() {
  // Whoever has work goes first; what that does to a figure, another pass undoes.
  lower_priority_of_this_thread(kMostNice);
  try {
    const auto found =
        lwp::machine_calibration(/*anew=*/true, [this] { return stop_.load(std::memory_order_relaxed); });
    if (found) keep(found->values);
    end_measuring();
    if (!stop_.load(std::memory_order_relaxed))
      say_(false, found ? describe(*found) : found.error().describe());
  } catch (const std::bad_alloc&) {
    go_without(ENOMEM);
  }
}

}  // namespace hindsight::rt
