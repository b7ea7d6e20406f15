#include "feedback/monitor/guest_processors.h"

#include <sched.h>

#include <algorithm>
#include <new>

namespace hindsight::feedback {

GuestProcessors::Member::Member(GuestProcessors& all) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  all_.threads_.push_back(thread_);
}

GuestProcessors::Member::~Member() {
  const std::lock_guard lock(all_.mutex_);
  all_.threads_.erase(std::ranges::find(all_.threads_, thread_));
}

void GuestProcessors::make_way() noexcept {
  const int here = ::sched_getcpu();
  if (here < 0) return;
  try {
    std::vector<int> theirs;
    {
      const std::lock_guard lock(mutex_);
      if (std::ranges::none_of(threads_, [here](ThreadProcessor thread) { return thread.get() == here; }))
        return;
      theirs.reserve(threads_.size());
      for (const ThreadProcessor thread : threads_) theirs.push_back(thread.get());
    }
    if (leave_processors(theirs)) moves_.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // then what is to be done is done here
  }
}

}  // namespace hindsight::feedback
