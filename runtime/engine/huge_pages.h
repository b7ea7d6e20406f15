// Moves ranges of linear memory onto pages of 2 MiB, and back.
//
// MADV_COLLAPSE (Linux 6.1) copies what is there into a huge page at once, whatever the system's setting for
// transparent huge pages is; an access to it waits meanwhile. Where the kernel does not know it,
// MADV_HUGEPAGE leaves it to khugepaged. The contents stay as they are, so nobody has to be stopped, and a
// range that is not mapped any more is refused by the kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

namespace hindsight::rt {

struct HugePageResult {
  uint64_t moved_bytes = 0;    // on huge pages behind it; of these
  uint64_t copied_bytes = 0;   // those that were not before, as the kernel counts them
  uint64_t refused_bytes = 0;  // nothing there, no huge page free, not mapped
  bool advised = false;        // no MADV_COLLAPSE here: khugepaged was asked to
  bool late = false;           // ended early: it took longer than it was to
  double seconds = 0;          // wall time
  std::string first_refusal;   // the kernel's reason
};

// Both ends are multiples of 2 MiB. Ends early once `stop` is true, or behind the page with which it took
// `most_seconds`. Any thread.
HugePageResult move_to_huge_pages(uint64_t begin, uint64_t end, const std::atomic<bool>& stop,
                                  double most_seconds = std::numeric_limits<double>::infinity());

// Of memory that is not touched yet: its first touches get huge pages, if the system's setting leaves that to
// whom asks. The part inside of whole huge pages counts. False: the kernel refused. Any thread.
bool ask_for_huge_pages(uint64_t begin, uint64_t end);

// Of memory that is not touched yet: its first touches get small pages again. What is on huge pages stays there. Any
// thread.
void ask_for_small_pages(uint64_t begin, uint64_t end);

// The way back: splits the range's huge pages and asks for no new ones. Any thread.
void leave_huge_pages(uint64_t begin, uint64_t end);

// Of the range, what is on huge pages by now, as the kernel counts it (/proc/self/smaps); 0 where it cannot
// be read.
uint64_t bytes_on_huge_pages(uint64_t begin, uint64_t end);

}  // namespace hindsight::rt
