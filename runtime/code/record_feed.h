// RecordFeed: what becomes of attributed records beside the profile. The guests' own go into the log of the
// report. All of them go to the embedder's callback if there is one. One an engine.
//
// Threads: on_record under the monitor's lock (one at a time); the rest from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "feedback/monitor/monitor.h"
#include "runtime/code/guest_event_log.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

// The calls that the guests of one store made of module hindsight_lwp. Atomic because a report may look at
// any time; written by one thread at a time, the one inside the store. Relaxed: statistics, they order
// nothing.
struct GuestCalls {
  std::atomic<uint64_t> inserted{0}, inserted_full{0};
  std::atomic<uint64_t> values_seen{0}, values_stored{0}, values_full{0};
  std::atomic<uint64_t> off{0};
  static void count(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

class RecordFeed : public std::enable_shared_from_this<RecordFeed> {
 public:
  explicit RecordFeed(std::function<void(const LwpRecord&)> callback);

  bool wants_all() const { return static_cast<bool>(callback_); }
  void on_record(const feedback::LocatedRecord& record);

  GuestEventLog& guest_log() { return log_; }
  // The counts of a store's calls; they stay in the sums after the last reference is gone.
  std::shared_ptr<GuestCalls> new_calls();
  void fill(GuestEventReport& report) const;

 private:
  static void add(GuestEventReport& sum, const GuestCalls& calls);

  const std::function<void(const LwpRecord&)> callback_;
  GuestEventLog log_;
  std::string function_;  // of the record being handed out; under the monitor's lock, as label_ is
  std::string label_;

  mutable std::mutex mutex_;  // protects what follows
  std::set<const GuestCalls*> calls_;
  GuestEventReport ended_;  // the counts of calls alone
};

}  // namespace hindsight::rt
