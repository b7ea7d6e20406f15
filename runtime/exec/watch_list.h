// WatchList: at which entry's deadline the timer looks, and when. One time an entry: the earliest that was asked for,
// whoever asked last. A look that is too early finds out when the next one is due. One that is too late would be a
// deadline that passes unnoticed. Not thread-safe: the timer has a lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "runtime/instance/store.h"

namespace hindsight::rt {

class WatchList {
 public:
  using Clock = std::chrono::steady_clock;

  // May throw std::bad_alloc; then nothing is changed.
  void add(const std::shared_ptr<EntryState>& entry, Clock::time_point at) {
    const auto [it, is_new] = watches_.try_emplace(entry.get(), Watch{entry, at});
    if (is_new) return;
    // One that is gone may have been at this address: an early look more.
    it->second = {entry, std::min(at, it->second.at)};
  }
  void remove(const std::shared_ptr<EntryState>& entry) noexcept { watches_.erase(entry.get()); }

  // Takes one that is due out. Null where none is; those whose entry is gone go without a word.
  std::shared_ptr<EntryState> take_due(Clock::time_point now) noexcept {
    for (auto it = watches_.begin(); it != watches_.end();) {
      if (it->second.at > now) {
        ++it;
        continue;
      }
      const std::shared_ptr<EntryState> entry = it->second.entry.lock();
      it = watches_.erase(it);
      if (entry != nullptr) return entry;
    }
    return nullptr;
  }
  // The end of time where there is nothing to look at.
  Clock::time_point next() const noexcept {
    Clock::time_point next = Clock::time_point::max();
    for (const auto& [key, watch] : watches_) next = std::min(next, watch.at);
    return next;
  }
  bool empty() const noexcept { return watches_.empty(); }

 private:
  struct Watch {
    std::weak_ptr<EntryState> entry;
    Clock::time_point at;
  };
  std::map<const EntryState*, Watch> watches_;
};

}  // namespace hindsight::rt
