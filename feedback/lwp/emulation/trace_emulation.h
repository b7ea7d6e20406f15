// LWP for an unmodified program of this machine. Runs it as a child under ptrace, and executes for it the LWP
// instructions that the processor refuses. Threads, fork, vfork, clone and exec are followed, in programs of
// 64 and of 32 bits. Everything else (signals, stops, exit status) is the program's own affair and passes
// through.
//
// LWP state belongs to a thread. It is off when a thread starts and after exec. A child that got a copy of
// its parent's memory (fork) also gets a copy of the LWP state that names it. One that shares the memory (a
// thread, vfork) does not, for two writers would ruin the ring.
//
// CPUID. A program that asks the processor is told of LWP where the kernel can trap the instruction
// (arch_prctl(ARCH_CPUID_SET), on few machines). Elsewhere it sees the processor's own answer.
//
// What a program can notice: an instruction takes two context switches, and it is being traced. SIGILL, where
// blocked or ignored at an LWP instruction, is neither afterwards: the kernel undoes that before it asks us.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "feedback/lwp/emulation/instruction_counts.h"

namespace hindsight::lwp {

struct TraceOptions {
  // The program (looked for in PATH if it has no slash) and its arguments; environment, descriptors, folder
  // and signal dispositions are the caller's.
  std::vector<std::string> command;
  // Called once with the program's process, before its first instruction; to forward signals for instance.
  // From another thread than the caller's.
  std::function<void(pid_t)> started;
  // Tries to have CPUID trapped even where the machine says that it cannot be. For tests.
  bool insist_on_cpuid = false;
};

struct TraceReport {
  int exit_status = 0;  // of the program; meaningless after a signal
  int signal = 0;       // that ended it, or 0
  InstructionCounts counts;
  uint64_t programs = 0;     // exec calls that succeeded, the first included
  uint64_t processes = 0;    // that ran under us
  uint64_t threads = 0;      // in all of them
  bool cpuid_shown = false;  // CPUID answered with LWP
  std::string cpuid_reason;  // if not, why
};

// Runs the program to its end, and all processes that it started and that were not detached from us. The call
// returns when the last of them has ended, with the fate of the first. If the calling process dies, they are
// killed. Several calls may run at once; each has a thread of its own meanwhile, because ptrace knows
// threads.
//
// Errors: kUsage: there is no such program; kUnsupported: it is there but cannot be executed; kResource: no
// process, or ptrace is not permitted here.
Result<TraceReport> run_emulated(const TraceOptions& options);

}  // namespace hindsight::lwp
