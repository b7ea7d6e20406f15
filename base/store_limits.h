// What the guests of one store may make the host hold. A store and those of the threads that its guests spawn count together.
//
// Where a limit is met:
// - Instantiating fails with kResource. The message says what was wanted, what is there and which limit it is.
// - memory.grow and table.grow give -1.
// - WASI calls and thread-spawn answer with an errno.
// - What has no answer traps as "out of resources".
//
// Code counts as long as it is there: all made for modules that have instances in the store, even while other stores share it.
// Each piece is rounded to 64 bytes. Bridges and stubs that all modules of an engine share do not count.
//
// Code is made at a function's first call. Without room for it the call traps as "out of resources". Instantiating fails where the module
// has more code already.
//
// Optimized versions and copies of code take at most half of the limit, so that first calls find room. They are made only with room in the
// budget of every store that uses the module. Otherwise the log says so once, and FeedbackReport::versions_over_limit counts it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hindsight {

struct StoreLimits {
  uint64_t memory_bytes = uint64_t{1}
                          << 40;  // of all linear memories together; a shared one counts where it was made
  uint64_t table_bytes = uint64_t{512} << 20;  // of all tables together, 8 an element
  uint64_t table_elements = 10'000'000;        // of each table; not more than this default
  uint64_t types = 1'000'000;                  // of all modules that have instances, each module once
  uint64_t threads = 1024;                     // that guests have spawned and that still run
  uint64_t descriptors = 1024;  // of WASI, open at a time; standard streams and preopened folders count
  uint64_t exception_bytes = uint64_t{256}
                             << 20;  // of WebAssembly exceptions that something may still refer to
  uint64_t code_bytes = uint64_t{512}
                        << 20;  // of generated code of all modules that have instances; see above
  friend bool operator==(const StoreLimits&, const StoreLimits&) = default;
};

// The limits by the names that messages and the command use.
struct StoreLimitName {
  std::string_view name;
  uint64_t StoreLimits::*value;
};
inline constexpr std::array kStoreLimitNames{
    StoreLimitName{"memory-bytes", &StoreLimits::memory_bytes},
    StoreLimitName{"table-bytes", &StoreLimits::table_bytes},
    StoreLimitName{"table-elements", &StoreLimits::table_elements},
    StoreLimitName{"types", &StoreLimits::types},
    StoreLimitName{"threads", &StoreLimits::threads},
    StoreLimitName{"descriptors", &StoreLimits::descriptors},
    StoreLimitName{"exception-bytes", &StoreLimits::exception_bytes},
    StoreLimitName{"code-bytes", &StoreLimits::code_bytes},
};

}  // namespace hindsight
