#include "runtime/cli/bench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "runtime/engine/hindsight.h"

namespace hindsight::cli {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

report::Machine describe_machine() {
  report::Machine machine;
  machine.cpu = processor_name();
  machine.cores = std::thread::hardware_concurrency();
  const auto page = ::sysconf(_SC_PAGESIZE), pages = ::sysconf(_SC_PHYS_PAGES);
  machine.page_bytes = static_cast<uint32_t>(page);
  machine.memory_bytes = static_cast<uint64_t>(page) * static_cast<uint64_t>(pages);
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = std::string(names.sysname) + " " + names.release;
  machine.version = version();
  return machine;
}

}  // namespace hindsight::cli
