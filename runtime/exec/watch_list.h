// WatchList: at which entry's deadline the timer looks, and when. One time an entry: the earliest that was asked for,
// whoever asked last. A look that is too early finds out when the next one is due. One that is too late would be a
// deadline that passes unnoticed. Nothing takes longer than the logarithm of how many there are. Not thread-safe: the
// timer has a lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "runtime/instance/store.h"

namespace hindsight::rt {

class WatchList {
 public:
  using Clock = std::chrono::steady_clock;

  // May throw std::bad_alloc; then nothing is changed.
  void add(const std::shared_ptr<EntryState>& entry, Clock::time_point at) {
    const auto [known, is_new] = by_entry_.try_emplace(entry.get(), by_time_.end());
    if (is_new) {
      try {
        known->second = by_time_.emplace(at, Watch{entry.get(), entry});
      } catch (const std::bad_alloc&) {
        by_entry_.erase(known);
        throw;
      }
      return;
    }
    auto node = by_time_.extract(known->second);
    // One that is gone may have been at this address: an early look more.
    node.key() = std::min(at, node.key());
    node.mapped().entry = entry;
    known->second = by_time_.insert(std::move(node));
  }
  void remove(const EntryState& entry) noexcept {
    const auto known = by_entry_.find(&entry);
    if (known == by_entry_.end()) return;
    by_time_.erase(known->second);
    by_entry_.erase(known);
  }

  // Takes one that is due out. Null where none is; those whose entry is gone go without a word.
  std::shared_ptr<EntryState> take_due(Clock::time_point now) noexcept {
    while (next() <= now && !empty()) {
      const Watch watch = std::move(by_time_.begin()->second);
      by_time_.erase(by_time_.begin());
      by_entry_.erase(watch.key);
      if (auto entry = watch.entry.lock()) return entry;
    }
    return nullptr;
  }
  // The end of time where there is nothing to look at.
  Clock::time_point next() const noexcept {
    return by_time_.empty() ? Clock::time_point::max() : by_time_.begin()->first;
  }
  bool empty() const noexcept { return by_time_.empty(); }
  size_t size() const noexcept { return by_time_.size(); }

 private:
  struct Watch {
    const EntryState* key;
    std::weak_ptr<EntryState> entry;
  };
  using ByTime = std::multimap<Clock::time_point, Watch>;
  ByTime by_time_;
  std::map<const EntryState*, ByTime::iterator> by_entry_;
};

}  // namespace hindsight::rt
