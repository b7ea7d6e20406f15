// What the command says on stderr, and the exit statuses it says it with.
#pragma once

#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace hindsight::cli {

inline constexpr int kOk = 0;
inline constexpr int kCannotLoad = 1;  // a module, profile or other input cannot be used
inline constexpr int kUsageError = 2;
inline constexpr int kTrapped = 134;  // as a shell shows a process that aborted

// "hindsight: text", made printable, in one write. Its lines stay lines: what is quoted in it was made printable before.
void say(std::string_view text);

// Says the error; the exit status that its kind stands for.
int fail(const Error& error);

// One line an event: "hindsight [0.123] topic: line". Thread-safe.
LogSink stderr_sink();

// What a user who did not ask for a log must hear all the same: "hindsight: warning: topic: line".
LogSink warning_sink();

}  // namespace hindsight::cli
