#include "runtime/cli/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/printable.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return;  // stderr is gone: there is nobody left to tell
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void say(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  write_all(STDERR_FILENO, "hindsight: " + printable(text, true) + "\n");
}

int fail(const Error& error) {
  say(error.describe());
  switch (error.kind) {
    case ErrorKind::kUsage:
      return kUsageError;
    case ErrorKind::kTrap:
      return kTrapped;
    default:
      return kCannotLoad;
  }
}

LogSink stderr_sink() {
  // One write a line keeps lines of several threads apart without a lock.
  return [start = std::chrono::steady_clock::now()](LogLevel level, std::string_view topic,
                                                    std::string_view line) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    write_all(STDERR_FILENO,
              fmt::format("hindsight [{:.3f}] {}{}: {}\n", since.count(),
                          level == LogLevel::kWarning ? "warning: " : "", printable(topic), printable(line)));
  };
}

LogSink warning_sink() {
  return [](LogLevel level, std::string_view topic, std::string_view line) {
    if (level == LogLevel::kWarning)
      write_all(STDERR_FILENO,
                fmt::format("hindsight: warning: {}: {}\n", printable(topic), printable(line)));
  };
}

}  // namespace hindsight::cli
