// What the system refused and the product went on without, counted for the process by what was wanted. So no error of a
// system call is lost where nothing else tells of it. Whoever has a log says each once (CodeServices), and reports name
// them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hindsight {

enum class SystemFailure : uint8_t {
  kMemoryGrowth,   // memory.grow answers that it could not
  kMemoryRelease,  // a linear memory's addresses stay taken
  kCodeRelease,    // pages of freed code stay
  kSignalStack,    // handlers run on the thread's own stack
  kSamplingRate,   // a thread is sampled as often as before
  kCounters,       // a group of performance counters counts nothing
  kHugePages,      // pages stay small
  kInterruption,   // a guest may go on in a loop
  kKeptFiles,      // code or profiles are not kept between runs, or not used
  kCalibration,    // it is not known what this machine's loads cost
};
inline constexpr size_t kSystemFailures = 10;

// Whether each is told of where it happens, by the name of the file: then nobody else need say it.
inline constexpr bool said_where_it_happens(SystemFailure what) {
  return what == SystemFailure::kKeptFiles;
}

struct SystemFailureCount {
  SystemFailure what;
  std::string_view words;  // "making a linear memory larger"
  uint64_t count = 0;
  int first_error = 0;  // an errno; 0: nobody said
};

// `error`: an errno, or 0. Any thread; async-signal-safe.
void count_system_failure(SystemFailure what, int error) noexcept;
// Those that happened, in the order of the enumerators.
std::vector<SystemFailureCount> system_failures();

}  // namespace hindsight
