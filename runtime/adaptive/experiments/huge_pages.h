// Moves ranges of linear memory onto pages of 2 MiB, and back.
//
// MADV_COLLAPSE (Linux 6.1) copies what is there into a huge page at once, whatever the system's setting for
// transparent huge pages is. An access to it waits meanwhile. Where the kernel does not know it, MADV_HUGEPAGE leaves
// it to khugepaged. The contents stay as they are, so nobody has to be stopped. The kernel refuses a range that is not
// mapped any more.
//
// A virtual machine may have to be given the huge page by its host first, 4 KiB at a time. That is nine tenths of what
// such a move takes: 5 ms for 2 MiB in place of 0.4. It was seen on Linux 6.18 below a host that takes free memory
// back. Nobody needs to wait for that. One huge page is made in a place of its own and given back, and the kernel
// hands out first what it got last.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "feedback/policy/pages.h"

namespace hindsight::rt {

struct HugePageResult {
  uint64_t moved_bytes = 0;     // on huge pages after it; of these
  uint64_t copied_bytes = 0;    // those that were not before, as the kernel counts them
  uint64_t refused_bytes = 0;   // nothing there, no huge page free, not mapped
  bool advised = false;         // no MADV_COLLAPSE here: khugepaged was asked to
  bool late = false;            // ended early: who lives there waited longer than they were to
  double seconds = 0;           // wall time of the steps, of it
  double waited_seconds = 0;    // in which an access to the range may have had to wait
  double prepared_seconds = 0;  // in which nobody had to
  std::string first_refusal;    // the kernel's reason
  bool stopped = false;         // stop_here() ended it
};

// A move, a step at a time. One thread at a time, any thread. Every eighth page comes first, then those half way between
// them, and so on: what has moved and what has not are alike meanwhile.
//
// Concurrency: done_ is stored with release after each page, so that who loads it knows those pages as moved. stop_ and hold_
// are wishes (relaxed): a page more does not matter.
class HugePageMove {
 public:
  // Ascending; both ends of each are multiples of 2 MiB. Ends early after the page with which `most_waited_seconds`
  // have been waited. Holds after `bytes_before_hold` (0: nowhere) until go_on().
  explicit HugePageMove(std::vector<feedback::PageRange> ranges,
                        double most_waited_seconds = std::numeric_limits<double>::infinity(),
                        uint64_t bytes_before_hold = 0);
  ~HugePageMove();
  HugePageMove(const HugePageMove&) = delete;
  HugePageMove& operator=(const HugePageMove&) = delete;

  // Goes on for about `seconds`, but for a page at least, or until `stop` is true, or up to where it holds. True: it has
  // ended, and result() is whole.
  bool step(const std::atomic<bool>& stop, double seconds = std::numeric_limits<double>::infinity());
  const HugePageResult& result() const { return result_; }

  // Any thread: the pages in the order in which they move (constant), how many of them have had their turn, which of those
  // have moved, and a wish to leave the rest where it is.
  const std::vector<uint64_t>& order() const { return order_; }
  size_t done() const { return done_.load(std::memory_order_acquire); }
  bool has_moved(size_t page) const { return moved_[page] != 0; }  // precondition: page < done()
  void stop_here() { stop_.store(true, std::memory_order_relaxed); }
  bool holds() const {
    return done() == hold_.load(std::memory_order_relaxed) && !stop_.load(std::memory_order_relaxed);
  }
  void go_on() { hold_.store(kNowhere, std::memory_order_relaxed); }

 private:
  void begin();
  void move_one(uint64_t at);
  bool prepare();
  void end();

  std::vector<feedback::PageRange> ranges_;
  double most_waited_seconds_;
  std::vector<uint64_t> order_;  // addresses
  std::vector<uint8_t> moved_;   // by place in order_; written before done_ passes it
  std::atomic<size_t> done_{0};
  std::atomic<bool> stop_{false};
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
  std::atomic<size_t> hold_{kNowhere};  // pages
  bool begun_ = false, ended_ = false;
  uint64_t there_ = 0;     // on huge pages when it began
  void* place_ = nullptr;  // where pages are made
  HugePageResult result_;
};

// All of it at once.
HugePageResult move_to_huge_pages(uint64_t begin, uint64_t end, const std::atomic<bool>& stop);

// Asks that the first touches of memory that is not touched yet get huge pages, if the system's setting leaves that to
// whom asks. The part inside of whole huge pages counts. False: the kernel refused. Any thread.
bool ask_for_huge_pages(uint64_t begin, uint64_t end);

// Asks that the first touches of memory that is not touched yet get small pages again. What is on huge pages stays
// there. Any thread.
void ask_for_small_pages(uint64_t begin, uint64_t end);

// The way back: splits the range's huge pages and asks for no new ones. Any thread.
void leave_huge_pages(uint64_t begin, uint64_t end);

// How much of the range is on huge pages by now, as the kernel counts it (/proc/self/smaps); 0 where it cannot be
// read.
uint64_t bytes_on_huge_pages(uint64_t begin, uint64_t end);

}  // namespace hindsight::rt
