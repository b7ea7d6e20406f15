#include "feedback/pmu/perf_event.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace hindsight::pmu {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

perf_event_attr make_perf_attr(uint32_t type, uint64_t config) {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  return attr;
}

namespace {

Result<FileDescriptor> open_event(const perf_event_attr& attr, std::string_view what, pid_t tid, int cpu,
                                  int group_fd, int* error_out) {
  perf_event_attr copy = attr;  // the kernel writes its own size back on E2BIG
  const long fd = syscall(SYS_perf_event_open, &copy, tid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return FileDescriptor(static_cast<int>(fd));
  const int error = errno;
  if (error_out) *error_out = error;
  const bool absent =
      error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
  return make_error(absent ? ErrorKind::kUnsupported : ErrorKind::kResource,
                    fmt::format("{}: {}", what, explain_perf_errno(error)));
}

}  // namespace

Result<FileDescriptor> open_perf_event(const perf_event_attr& attr, std::string_view what, pid_t tid,
                                       int group_fd, int* error_out) {
  return open_event(attr, what, tid, -1, group_fd, error_out);
}

Result<FileDescriptor> open_perf_event_on_cpu(const perf_event_attr& attr, std::string_view what, int cpu,
                                              int* error_out) {
  return open_event(attr, what, -1, cpu, -1, error_out);
}

std::string explain_perf_errno(int error) {
  const char* name = strerrorname_np(error);
  const std::string code = name ? name : fmt::format("errno {}", error);
  switch (error) {
    case EACCES:
    case EPERM: {
      const std::optional<int> paranoid = perf_event_paranoid();
      if (paranoid && *paranoid > 2) {
        return fmt::format("{}: kernel.perf_event_paranoid is {}, this needs 2 or CAP_PERFMON", code,
                           *paranoid);
      }
      if (error == EACCES && paranoid && *paranoid > 0) {
        return fmt::format(
            "{}: kernel.perf_event_paranoid is {}; events of the kernel need 1, of whole processors 0, or "
            "CAP_PERFMON; or a security module forbids it",
            code, *paranoid);
      }
      return code +
             ": forbidden here, by a seccomp filter (as containers have), a security module or a missing "
             "CAP_PERFMON";
    }
    case ENOSYS:
      return code + ": this kernel was built without perf events, or a filter hides them";
    case ENOENT:
      return code + ": the processor, as this machine shows it, has no such event";
    case ENODEV:
      return code + ": no PMU that could count it";
    case EOPNOTSUPP:
      return code + ": no PMU, or one that cannot count this way";
    case EMFILE:
    case ENFILE:
      return code + ": too many open files";
    case EBUSY:
      return code + ": somebody else holds the counters exclusively";
    case EINVAL:
      return code + ": this kernel does not know one of the requested attributes";
    case ENODATA:
      return code + ": this load event needs its auxiliary event in front of it in the same group";
    case ENOMEM:
      return code + ": out of kernel memory";
    case ENOSPC:
      return code + ": too many events or breakpoints for the hardware";
    case ESRCH:
      return code + ": the thread has ended";
    default:
      return code + ": " + strerror(error);
  }
}

std::optional<int> perf_event_paranoid() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace hindsight::pmu
