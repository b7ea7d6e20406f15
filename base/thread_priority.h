// Which threads go first where there are more than processors.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace hindsight {

// Of nice values (setpriority(2)), each of which takes a tenth of the processor's time from a thread in favor of the others.
inline constexpr int kMostNice = 19;

// Lowers the priority of the calling thread alone, on Linux, below that of the threads of this process that do what they did. It
// cannot be taken back, and threads that it starts have it as well. Refused (no more than a filter of system calls would), the thread competes as any other.
inline void lower_priority_of_this_thread(int steps) {
  const auto self = static_cast<id_t>(::gettid());
  (void)::setpriority(PRIO_PROCESS, self, std::min(::getpriority(PRIO_PROCESS, self) + steps, kMostNice));
}

}  // namespace hindsight
