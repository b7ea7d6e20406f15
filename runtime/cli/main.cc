#include <csignal>

#include "runtime/cli/commands.h"

int main(int argc, char** argv) {
  // A closed pipe is an error of the write that met it, not the end of the process: guests see EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  return hindsight::cli::command_line(argc, argv);
}
