#include "runtime/adaptive/experiments/populate_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; glibc 2.36 does not name it everywhere
#endif

namespace hindsight::rt {

Populated populate_pages(uint64_t begin, uint64_t end) {
  const auto start = std::chrono::steady_clock::now();
  const bool made = ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0;
  const int error = made ? 0 : errno;
  return {error, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace hindsight::rt
