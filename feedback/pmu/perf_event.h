// The one door to perf_event_open: descriptors that close themselves, and errno turned into a sentence that
// says what a person can do about it. Any thread.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace hindsight::pmu {

// Owns one file descriptor; empty when moved from.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A zeroed perf_event_attr with its size set, for this thread's user-mode execution only (exclude_kernel,
// exclude_hv).
perf_event_attr make_perf_attr(uint32_t type, uint64_t config);

// Opens `attr` for thread `tid` (0: the caller) on any processor, close-on-exec. `what` names the event in
// the error: kResource where the machine could but will not (permissions, limits), kUnsupported where it has
// no such event. `error`, if given, gets the errno.
Result<FileDescriptor> open_perf_event(const perf_event_attr& attr, std::string_view what, pid_t tid = 0,
                                       int group_fd = -1, int* error = nullptr);

// The same for everything that runs on processor `cpu`: the only way that uncore sources can be counted.
// Needs kernel.perf_event_paranoid at most 0, or CAP_PERFMON.
Result<FileDescriptor> open_perf_event_on_cpu(const perf_event_attr& attr, std::string_view what, int cpu,
                                              int* error = nullptr);

// What an errno of perf_event_open means, e.g. "EACCES: kernel.perf_event_paranoid is 3, ...".
std::string explain_perf_errno(int error);

// kernel.perf_event_paranoid; empty where the kernel has no perf events.
std::optional<int> perf_event_paranoid();

}  // namespace hindsight::pmu
