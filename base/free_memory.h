// How much more memory this process can have, as far as the system says beforehand. For work that may take much and that nobody needs. Such
// work is better not begun than ended half way, by an allocation that fails or by the kernel, which ends the process.
#pragma once

#include <cstdint>
#include <string>

namespace hindsight {

// In bytes, the least of three: what is left of the address space (RLIMIT_AS), of the process's control groups, and of the machine
// (MemAvailable). Control groups are those of version 2, including those above. In them, pages of files that nobody used lately count as
// free. UINT64_MAX: nothing says. Some tens of microseconds. Any thread. `root`: in front of the system's own paths; another one is for
// tests.
uint64_t free_memory(const std::string& root = "");

}  // namespace hindsight
