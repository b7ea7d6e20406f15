// GuestProcessors: where guests run, so that what the engine does for them is done elsewhere.
//
// A thread that wakes begins where it ran last, wherever guests have come since then, and the kernel takes milliseconds to part two that
// share a processor while another one is idle. What the engine's thread takes there the guest waits.
//
// Concurrency: any thread. mutex_ protects all; nothing is called with it held that waits. Where a thread runs is written by
// the kernel, and may be another place as soon as it was read: then a round or a pass of a compile is made beside a guest, or elsewhere for nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/thread_processor.h"

namespace hindsight::feedback {

class GuestProcessors {
 public:
  // The guest's thread that makes it is one of them as long as this exists, which may not outlive that thread.
  class Member {
   public:
    explicit Member(GuestProcessors& all);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    GuestProcessors& all_;
    const ThreadProcessor thread_ = ThreadProcessor::of_this_thread();
  };

  // Takes the calling thread, which is none of a guest's, off a processor that a guest's thread runs on or ran on last, if there is one that none is on.
  // It may come back (leave_processors()).
  void make_way() noexcept;
  // So many times it went to another one.
  uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  // protects what follows
  std::vector<ThreadProcessor> threads_;
  std::atomic<uint64_t> moves_{0};  // relaxed: a count
};

}  // namespace hindsight::feedback
