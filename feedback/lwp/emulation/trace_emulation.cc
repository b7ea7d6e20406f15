#include "feedback/lwp/emulation/trace_emulation.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cpuid.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "feedback/lwp/emulation/emulator.h"
#include "feedback/lwp/emulation/program_launch.h"
#include "feedback/lwp/emulation/traced_thread.h"

namespace hindsight::lwp {
namespace {

constexpr long kPtraceOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
constexpr int kSystemCallStop = SIGTRAP | 0x80;

// arch_prctl(ARCH_CPUID_SET, 0): CPUID faults in the calling thread and in what it starts, until exec.
constexpr uint64_t kArchCpuidSet = 0x1012;
constexpr uint64_t kArchPrctl64 = 158, kArchPrctl32 = 384;

// Whether the kernel can trap CPUID here. Asks for what is the case anyway, so nothing changes.
bool can_trap_cpuid() {
  return syscall(SYS_arch_prctl, kArchCpuidSet, 1) == 0;
}

SoftwareLwp::Options lwp_options() {
  SoftwareLwp::Options options;
  options.capabilities = emulated_capabilities();
  return options;
}

struct TracedThread {
  TracedThread(pid_t id, pid_t group_id) : tid(id), group(group_id), memory(id), lwp(memory, lwp_options()) {}
  TracedThread(const TracedThread&) = delete;
  TracedThread& operator=(const TracedThread&) = delete;

  void switch_off() { lwp = SoftwareLwp(memory, lwp_options()); }

  const pid_t tid;
  const pid_t group;
  ProcessMemory memory;
  SoftwareLwp lwp;
  // Its creator's report of its birth has been seen, so its LWP state is known.
  bool born = false;
  // It stopped before that, and stays so until then; made by a thread of this group.
  bool held = false;
  pid_t creator_group = 0;
  // It has just become another program: CPUID is to be trapped once the exec call is over.
  bool hides_cpuid_next = false;
};

// All of it on one thread, the tracer. A stop is answered before the next one is waited for.
class Tracer {
 public:
  explicit Tracer(const TraceOptions& options) : options_(options) {}

  Result<TraceReport> run() {
    HINDSIGHT_ASSIGN(const Launch launch, start());
    int status = 0;
    for (;;) {
      const pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD);
      if (tid > 0) {
        WIFSTOPPED(status) ? on_stop(tid, status) : on_end(tid, status);
      } else if (errno != EINTR) {
        break;  // ECHILD: nobody is left
      }
    }
    HINDSIGHT_TRY(launch.became_program());
    return std::move(report_);
  }

 private:
  Result<Launch> start() {
    traps_cpuid_ = can_trap_cpuid() || options_.insist_on_cpuid;
    report_.cpuid_shown = traps_cpuid_;
    if (!traps_cpuid_) {
      report_.cpuid_reason =
          "CPUID cannot be trapped on this machine (arch_prctl(ARCH_CPUID_SET)): programs that ask it see "
          "that the "
          "processor has no Lightweight Profiling";
    }
    HINDSIGHT_ASSIGN(Launch launch, Launch::create(options_.command, kPtraceOptions));
    first_ = launch.pid();
    thread(first_).born = true;
    report_.processes = report_.threads = 1;
    if (options_.started) options_.started(first_);
    launch.go();
    return launch;
  }

  TracedThread& thread(pid_t tid) {
    std::unique_ptr<TracedThread>& entry = threads_[tid];
    if (!entry) entry = std::make_unique<TracedThread>(tid, traced::group_of(tid));
    return *entry;
  }

  // A failure means that the thread was killed meanwhile; its end will be reported.
  void resume(TracedThread& thread, int signal = 0) {
    const auto request = thread.hides_cpuid_next ? PTRACE_SYSCALL : PTRACE_CONT;
    (void)ptrace(request, thread.tid, nullptr, signal);
  }

  void on_stop(pid_t tid, int status) {
    TracedThread& stopped = thread(tid);
    if (!stopped.born) {
      stopped.held = true;
      stopped.creator_group = stopped.group != tid ? stopped.group : traced::parent_of(tid);
      return;
    }
    const int signal = WSTOPSIG(status);
    switch (status >> 16) {
      case 0:
        return signal == kSystemCallStop ? on_exec_done(stopped) : on_signal(stopped, signal);
      case PTRACE_EVENT_FORK:
      case PTRACE_EVENT_VFORK:
      case PTRACE_EVENT_CLONE:
        return on_birth(stopped, status >> 16);
      case PTRACE_EVENT_EXEC:
        return on_exec(stopped);
      case PTRACE_EVENT_STOP:
        if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
          // Job control has stopped the process: it stays so, and we hear when it goes on.
          (void)ptrace(PTRACE_LISTEN, tid, nullptr, nullptr);
          return;
        }
        break;
      default:
        break;
    }
    resume(stopped);
  }

  void on_birth(TracedThread& creator, int event) {
    unsigned long message = 0;
    if (ptrace(PTRACE_GETEVENTMSG, creator.tid, nullptr, &message) == 0 && message != 0) {
      const auto tid = static_cast<pid_t>(message);
      TracedThread& child = thread(tid);
      if (!child.born) {
        child.born = true;
        ++report_.threads;
        if (child.group == tid) ++report_.processes;
        const bool may_inherit = creator.lwp.on() && child.group == tid;
        if (may_inherit && !traced::share_memory(creator.tid, tid, event != PTRACE_EVENT_FORK)) {
          // Fails where the block is not in the child's memory any more: then it starts with LWP off.
          (void)child.lwp.restore(creator.lwp.save());
        }
        if (child.held) release(child);
      }
    }
    resume(creator);
  }

  void release(TracedThread& thread) {
    thread.born = true;
    thread.held = false;
    resume(thread);
  }

  void on_exec(TracedThread& thread) {
    // The thread that called exec goes on under the number of its process; all others of the process end.
    unsigned long former = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.tid, nullptr, &former) == 0) {
      const auto tid = static_cast<pid_t>(former);
      if (tid != thread.tid) threads_.erase(tid);
    }
    ++report_.programs;
    thread.switch_off();
    thread.hides_cpuid_next = traps_cpuid_;
    resume(thread);
  }

  void on_exec_done(TracedThread& thread) {
    thread.hides_cpuid_next = false;
    const auto registers = traced::read_registers(thread.tid);
    if (registers) {
      const uint64_t number = registers->width == CodeWidth::k64 ? kArchPrctl64 : kArchPrctl32;
      const auto done = traced::run_system_call(thread.tid, number, {kArchCpuidSet, 0, 0});
      if (done.death) return on_end(thread.tid, *done.death);
      if (done.result != 0) {
        report_.cpuid_shown = false;
        report_.cpuid_reason = "a program could not be made to trap CPUID";
      }
    }
    resume(thread);
  }

  void on_signal(TracedThread& thread, int signal) {
    if (signal == SIGILL || (signal == SIGSEGV && traps_cpuid_)) {
      const auto info = traced::read_signal(thread.tid);
      auto registers = traced::read_registers(thread.tid);
      // Sent by somebody, or in a kind of code that we do not know: not for us.
      if (info && registers && info->si_code > 0) {
        if (signal == SIGILL) return on_undefined_instruction(thread, *registers);
        if (info->si_code == SI_KERNEL && answer_cpuid(thread, *registers)) return resume(thread);
      }
    }
    resume(thread, signal);
  }

  void on_undefined_instruction(TracedThread& thread, Registers& registers) {
    const auto instruction = fetch_lwp(thread.memory, registers.ip, registers.width);
    if (!instruction) return resume(thread, SIGILL);
    const Outcome<void> done = execute(*instruction, registers, thread.memory, thread.lwp);
    if (!done) {
      ++report_.counts.faults;
      return resume(thread, traced::turn_into_fault(thread.tid, done.error()));
    }
    ++report_.counts.executed[static_cast<unsigned>(instruction->operation)];
    (void)traced::write_registers(thread.tid, registers);
    resume(thread);
  }

  bool answer_cpuid(TracedThread& thread, Registers& registers) {
    std::array<std::byte, 2> code;
    if (!thread.memory.read(registers.ip, code)) return false;
    if (code != std::array{std::byte{0x0F}, std::byte{0xA2}}) return false;
    const auto leaf = static_cast<uint32_t>(registers.general[0]);
    pmu::CpuidRegisters answer;
    __cpuid_count(leaf, static_cast<uint32_t>(registers.general[1]), answer.eax, answer.ebx, answer.ecx,
                  answer.edx);
    answer = with_emulated_lwp(leaf, answer);
    registers.general[0] = answer.eax;
    registers.general[1] = answer.ecx;
    registers.general[2] = answer.edx;
    registers.general[3] = answer.ebx;
    registers.ip += code.size();
    return traced::write_registers(thread.tid, registers);
  }

  void on_end(pid_t tid, int status) {
    if (tid == first_) {
      report_.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      report_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    const auto entry = threads_.find(tid);
    if (entry == threads_.end()) return;
    const pid_t group = entry->second->group;
    threads_.erase(entry);
    // A creator that was killed before it could report a birth will not do so any more. (It takes the last
    // thread of its process with it.)
    for (const auto& [other, thread] : threads_) {
      if (thread->born && thread->group == group) return;
    }
    for (const auto& [other, thread] : threads_) {
      if (thread->held && thread->creator_group == group) release(*thread);
    }
  }

  const TraceOptions& options_;
  TraceReport report_;
  std::map<pid_t, std::unique_ptr<TracedThread>> threads_;
  pid_t first_ = -1;
  bool traps_cpuid_ = false;
};

}  // namespace

Result<TraceReport> run_emulated(const TraceOptions& options) {
  std::optional<Result<TraceReport>> result;
  // Tracing belongs to a thread, and so does waiting for children: a thread of our own takes nothing from the
  // caller's.
  try {
    std::thread([&] { result = Tracer(options).run(); }).join();
  } catch (const std::system_error& error) {
    return make_error(ErrorKind::kResource, fmt::format("no thread for the trace: {}", error.what()));
  }
  return std::move(*result);
}

}  // namespace hindsight::lwp
