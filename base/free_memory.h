// How much more memory this process can have, as far as the system says beforehand. For work that may take much and that nobody
// needs: it is better not begun than ended half way, where an allocation fails, or where the kernel ends the process.
#pragma once

#include <cstdint>
#include <string>

namespace hindsight {

// Bytes: the least of what is left of the address space (RLIMIT_AS), of the process's control groups (version 2, those above
// included; pages of files that nobody used lately count as free) and of the machine (MemAvailable). UINT64_MAX: nothing says. Some tens of
// microseconds. Any thread. `root`: in front of the system's own paths; another one is for tests.
uint64_t free_memory(const std::string& root = "");

}  // namespace hindsight
