// Says how far a range of memory has been touched: which of its pages the kernel has made. It asks (mincore) about
// some of the range's blocks of 2 MiB.
#pragma once

#include <cstdint>
#include <optional>

namespace hindsight::rt {

struct MemoryFill {
  uint32_t full = 0;  // blocks with nine tenths of their pages or more
  uint32_t part = 0;
  uint32_t untouched = 0;
  friend bool operator==(const MemoryFill&, const MemoryFill&) = default;
};

// How many of the small pages of [begin, end), multiples of 4 KiB, are there. Nothing if the kernel will not say, or they are
// not mapped any more. Any thread.
std::optional<uint64_t> touched_pages(uint64_t begin, uint64_t end);
// Whether so many are nearly all of a block of 2 MiB.
constexpr bool is_full_block(uint64_t pages) {
  return 10 * pages >= 9 * 512;
}

// Looks at up to `most_blocks` blocks, evenly spread; 2 us each. Both ends are multiples of 2 MiB. Nothing if the
// kernel will not say, or the range is not mapped any more. Any thread.
std::optional<MemoryFill> look_at_fill(uint64_t begin, uint64_t end, uint32_t most_blocks);

// What the machine could still give without swapping (/proc/meminfo, MemAvailable); 0 where it cannot be read.
uint64_t available_memory_bytes();

}  // namespace hindsight::rt
