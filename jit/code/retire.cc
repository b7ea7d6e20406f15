#include "jit/code/retire.h"

#include <algorithm>

namespace hindsight::jit {

void RetireList::add(std::shared_ptr<CodeVersion> version) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(version));
}

size_t RetireList::collect(const Scan& scan, const std::function<void(const CodeVersion&)>& on_free) {
  // The scan may take milliseconds and the threads that it waits for may be in add(): no lock meanwhile. The
  // copies keep the ranges valid.
  std::vector<std::shared_ptr<CodeVersion>> candidates;
  {
    const std::lock_guard lock(mutex_);
    candidates = pending_;
  }
  // Threads in a part go on in the whole: that goes after it, by a scan that began when no part was left.
  std::erase_if(candidates, [](const std::shared_ptr<CodeVersion>& version) {
    return version->parts.load(std::memory_order_acquire) != 0;
  });
  if (candidates.empty()) return 0;

  std::vector<CodeRange> ranges;
  ranges.reserve(candidates.size());
  // The whole allocation: constants, jump tables and OSR slots after the code die with it.
  for (const auto& version : candidates)
    ranges.push_back({version->memory.executable(), version->memory.executable() + version->memory.size()});
  std::vector<bool> live(candidates.size(), false);
  scan(ranges, live);

  // Invariant: a version is freed by the one call that takes it out of pending_, so concurrent calls never
  // report one twice.
  std::vector<std::shared_ptr<CodeVersion>> dead;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (live[i]) continue;
      const auto it = std::find(pending_.begin(), pending_.end(), candidates[i]);
      if (it == pending_.end()) continue;
      dead.push_back(std::move(*it));
      pending_.erase(it);
    }
    freed_ += dead.size();
  }
  for (const auto& version : dead)
    if (on_free) on_free(*version);
  return dead.size();
}

size_t RetireList::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

uint64_t RetireList::freed() const {
  const std::lock_guard lock(mutex_);
  return freed_;
}

}  // namespace hindsight::jit
