#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <system_error>

#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"

namespace {

// A write beyond the limit of file sizes is an error of that write as well. Handled and not ignored, so that programs
// that this one starts find the signal as it was.
void fail_writes_beyond_the_limit() {
  struct sigaction action {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  (void)sigaction(SIGXFSZ, &action, nullptr);  // of a signal that there is: cannot fail
}

}  // namespace

int main(int argc, char** argv) {
  fail_writes_beyond_the_limit();
  // A closed pipe is an error of the write that met it, not the end of the process: guests see EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  int status = hindsight::cli::kCannotLoad;
  int error = 0;
  try {
    status = hindsight::cli::command_line(argc, argv);
  } catch (const std::system_error& thrown) {  // fmt's, of a stdout that cannot be written
    error = thrown.code().value();
  }
  // What was printed may still wait to be written. Who closed the pipe wants no more, and knows.
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (lost && error == 0) error = errno;  // 0: it was an earlier write
  if ((!lost && error == 0) || error == EPIPE) return status;
  hindsight::cli::say("the output could not be written" +
                      (error == 0 ? "" : std::string(": ") + std::strerror(error)));
  return status == 0 ? hindsight::cli::kCannotLoad : status;
}
