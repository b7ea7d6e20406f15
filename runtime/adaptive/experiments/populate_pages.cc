#include "runtime/adaptive/experiments/populate_pages.h"

#include <sys/mman.h>

#include <cerrno>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; glibc 2.36 does not name it everywhere
#endif

namespace hindsight::rt {

int populate_pages(uint64_t begin, uint64_t end) {
  return ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
}

}  // namespace hindsight::rt
