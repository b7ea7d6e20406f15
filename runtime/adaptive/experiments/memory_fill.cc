#include "runtime/adaptive/experiments/memory_fill.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "feedback/profile/evidence.h"

namespace hindsight::rt {

using feedback::kHugePageBytes;

std::optional<uint64_t> touched_pages(uint64_t begin, uint64_t end) {
  constexpr uint64_t kPage = 4096;
  std::array<unsigned char, kHugePageBytes / kPage> there;
  uint64_t touched = 0;
  for (uint64_t at = begin; at < end; at += kHugePageBytes) {
    const uint64_t bytes = std::min(end - at, kHugePageBytes);
    if (::mincore(reinterpret_cast<void*>(at), bytes, there.data()) != 0) return std::nullopt;
    touched += static_cast<uint64_t>(std::count_if(there.begin(),
                                                   there.begin() + static_cast<ptrdiff_t>(bytes / kPage),
                                                   [](unsigned char page) { return (page & 1) != 0; }));
  }
  return touched;
}

std::optional<MemoryFill> look_at_fill(uint64_t begin, uint64_t end, uint32_t most_blocks) {
  MemoryFill fill;
  const uint64_t blocks = (end - begin) / kHugePageBytes;
  const uint64_t looked_at = std::min<uint64_t>(blocks, most_blocks);
  for (uint64_t i = 0; i < looked_at; ++i) {
    const uint64_t at = begin + i * blocks / looked_at * kHugePageBytes;
    const std::optional<uint64_t> pages = touched_pages(at, at + kHugePageBytes);
    if (!pages) return std::nullopt;
    ++(is_full_block(*pages) ? fill.full : *pages > 0 ? fill.part : fill.untouched);
  }
  return fill;
}

uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %lu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

}  // namespace hindsight::rt
