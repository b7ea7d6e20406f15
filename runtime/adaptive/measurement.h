// Measurement: what must not happen at the same time, since the one would be taken for the other's doing. An
// experiment takes a lease before it changes anything that others might be measuring, and keeps it until it has
// measured what it changed itself. Here is the one table of what excludes what.
//
//     loops     a trial of a loop's change, on guest threads (TrialGate, experiments/loop_trial.h). It asks nobody: loops
//               come and go in microseconds, and whoever begins something longer waits for a moment without one
//     memory    ranges of linear memory move onto other pages (page_move.h)
//     places    optimized code moves to another place (code_layout.h)
//     versions  two versions of a function run in turns (version_experiment.h)
//
// Versions exclude all others, and places also exclude each other. Memory goes on beside places: where code lies does
// not show in a loop's time, by which moves of memory are judged. Nor do pages of data show in calls, by which places
// are judged.
//
// Concurrency: any thread. mutex_ protects held_ and is a leaf. Leases begin on the monitor thread and end on any;
// whether loops are measured is a relaxed hint (TrialGate).
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "base/ticks.h"
#include "runtime/adaptive/experiments/loop_trial.h"

namespace hindsight::rt {

enum class Disturbs : uint8_t { kMemory, kPlaces, kVersions };

class Measurement {
 public:
  // Move-only; ends with its last owner. The measurement outlives it.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : of_(std::exchange(other.of_, nullptr)), what_(other.what_) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this == &other) return *this;
      end();
      of_ = std::exchange(other.of_, nullptr);
      what_ = other.what_;
      return *this;
    }
    ~Lease() { end(); }

   private:
    friend class Measurement;
    Lease(Measurement& of, Disturbs what) : of_(&of), what_(what) {}
    void end() {
      if (Measurement* const of = std::exchange(of_, nullptr)) of->end(what_);
    }

    Measurement* of_;
    Disturbs what_;
  };

  // Nothing: something is measured that this would disturb.
  std::optional<Lease> try_begin(Disturbs what) {
    if (loops_are_measured()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (const Disturbs other : {Disturbs::kMemory, Disturbs::kPlaces, Disturbs::kVersions})
      if (excludes(what, other) && held_[index(other)] != 0) return std::nullopt;
    ++held_[index(what)];
    return Lease(*this, what);
  }

  bool is_held(Disturbs what) const {
    const std::lock_guard lock(mutex_);
    return held_[index(what)] != 0;
  }
  bool loops_are_measured() const { return loops_.busy(read_ticks()); }
  TrialGate& loops() { return loops_; }

 private:
  static constexpr size_t index(Disturbs what) { return static_cast<size_t>(what); }
  static constexpr bool excludes(Disturbs what, Disturbs other) {
    if (what == Disturbs::kVersions || other == Disturbs::kVersions) return true;
    return what == Disturbs::kPlaces && other == Disturbs::kPlaces;
  }
  void end(Disturbs what) {
    const std::lock_guard lock(mutex_);
    --held_[index(what)];
  }

  TrialGate loops_;
  mutable std::mutex mutex_;
  std::array<size_t, 3> held_{};
};

}  // namespace hindsight::rt
