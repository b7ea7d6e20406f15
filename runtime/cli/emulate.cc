// `hindsight lwp emulate`: a native program with the LWP instructions that the processor lacks.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cerrno>

#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"

namespace hindsight::cli {
namespace {

// As env, nice and timeout have it, whose exit status is also another program's.
constexpr int kNotStarted = 125, kNotExecutable = 126, kNotFound = 127;

// What somebody sends to this process is meant for the program. Relaxed: the handler needs no more than the
// number.
std::atomic<int> g_program{0};

void forward(int signal, siginfo_t* info, void*) {
  // From the terminal the program has it already: it is in the same foreground group.
  if (info->si_code == SI_KERNEL) return;
  const int saved_errno = errno;
  if (const int program = g_program.load(std::memory_order_relaxed); program > 0) kill(program, signal);
  errno = saved_errno;
}

void forward_signals_to(int program) {
  g_program.store(program, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    // What nohup and the like ignore stays ignored, for the program as well.
    if (present.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

std::string summary(const LwpEmulationReport& r) {
  const uint64_t all = r.llwpcb + r.slwpcb + r.lwpins + r.lwpval;
  return fmt::format(
      "emulated {} LWP instructions: llwpcb {}, slwpcb {}, lwpins {}, lwpval {}; {} faulted; programs {}, "
      "processes "
      "{}, threads {}",
      all, r.llwpcb, r.slwpcb, r.lwpins, r.lwpval, r.faults, r.programs, r.processes, r.threads);
}

}  // namespace

int lwp_emulate_command(const EmulateOptions& options) {
  if (options.program.empty()) {
    say("no program to run; `hindsight lwp emulate --help` shows what can be written");
    return kUsageError;
  }
  const auto report = emulate_lwp({options.program, forward_signals_to});
  if (!report) {
    say(report.error().message);
    switch (report.error().kind) {
      case ErrorKind::kUsage:
        return kNotFound;
      case ErrorKind::kUnsupported:
        return kNotExecutable;
      default:
        return kNotStarted;
    }
  }
  const bool none = report->llwpcb + report->slwpcb + report->lwpins + report->lwpval + report->faults == 0;
  // A program that asked CPUID first has executed none of them and said that there is no LWP: say why.
  if (!report->cpuid_shown && (options.summary || none)) {
    say(none ? fmt::format("the program executed no LWP instruction. {}", report->cpuid_reason)
             : report->cpuid_reason);
  }
  if (options.summary) say(summary(*report));
  return report->signal != 0 ? 128 + report->signal : report->exit_status;
}

}  // namespace hindsight::cli
