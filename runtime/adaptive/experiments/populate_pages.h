// Has the kernel make pages before anybody touches them.
#pragma once

#include <cstdint>

namespace hindsight::rt {

struct Populated {
  int error =
      0;  // or why the kernel would not: EINVAL before Linux 5.14, ENOMEM where nothing is mapped or no memory left
  double seconds = 0;  // that it took
};
// Makes what is not there yet of the pages in [begin, end), multiples of 4 KiB; what is there stays as it is. Any thread.
Populated populate_pages(uint64_t begin, uint64_t end);

}  // namespace hindsight::rt
