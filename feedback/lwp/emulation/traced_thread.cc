#include "feedback/lwp/emulation/traced_thread.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hindsight::lwp::traced {
namespace {

constexpr uint64_t kNoSystemCall = ~uint64_t{0};

using SavedRegister = unsigned long long user_regs_struct::*;
// Encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
constexpr std::array<SavedRegister, 16> kOrder = {
    &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx, &user_regs_struct::rbx,
    &user_regs_struct::rsp, &user_regs_struct::rbp, &user_regs_struct::rsi, &user_regs_struct::rdi,
    &user_regs_struct::r8,  &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
    &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14, &user_regs_struct::r15};

bool get(pid_t tid, user_regs_struct& saved) {
  return ptrace(PTRACE_GETREGS, tid, nullptr, &saved) == 0;
}
bool set(pid_t tid, const user_regs_struct& saved) {
  return ptrace(PTRACE_SETREGS, tid, nullptr, &saved) == 0;
}

// The words of a line "Name:\twords" of a thread's status file; empty if gone.
std::string status_field(pid_t tid, std::string_view name) {
  const std::string path = "/proc/" + std::to_string(tid) + "/status";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text(8192, '\0');
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  const std::string label = "\n" + std::string(name) + ":\t";
  const size_t at = text.find(label);
  if (at == std::string::npos) return {};
  const size_t begin = at + label.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

pid_t pid_field(pid_t tid, std::string_view name) {
  const std::string text = status_field(tid, name);
  pid_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool ignores(pid_t tid, int signal) {
  const std::string text = status_field(tid, "SigIgn");
  uint64_t mask = 0;
  std::from_chars(text.data(), text.data() + text.size(), mask, 16);
  return mask >> (signal - 1) & 1;
}

}  // namespace

std::optional<Registers> read_registers(pid_t tid) {
  user_regs_struct saved;
  if (!get(tid, saved)) return std::nullopt;
  if (saved.cs != kSelector32 && saved.cs != kSelector64) return std::nullopt;
  Registers out;
  out.width = saved.cs == kSelector64 ? CodeWidth::k64 : CodeWidth::k32;
  for (unsigned i = 0; i < kOrder.size(); ++i) out.general[i] = saved.*kOrder[i];
  out.ip = saved.rip;
  out.flags = saved.eflags;
  out.fs_base = saved.fs_base;
  out.gs_base = saved.gs_base;
  return out;
}

bool write_registers(pid_t tid, const Registers& registers) {
  user_regs_struct saved;
  if (!get(tid, saved)) return false;
  for (unsigned i = 0; i < kOrder.size(); ++i) saved.*kOrder[i] = registers.general[i];
  saved.rip = registers.ip;
  saved.eflags = registers.flags;
  return set(tid, saved);
}

std::optional<siginfo_t> read_signal(pid_t tid) {
  siginfo_t info;
  if (ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0) return std::nullopt;
  return info;
}

int turn_into_fault(pid_t tid, const Fault& fault) {
  siginfo_t info = segmentation_fault(fault);
  (void)ptrace(PTRACE_SETSIGINFO, tid, nullptr, &info);
  // A signal that is blocked would wait, and the instruction be repeated for ever. (The kernel would also
  // take away its handler; no program can tell before it has one.)
  uint64_t blocked = 0;
  constexpr uint64_t kSegv = uint64_t{1} << (SIGSEGV - 1);
  if (ptrace(PTRACE_GETSIGMASK, tid, sizeof blocked, &blocked) == 0 && (blocked & kSegv)) {
    blocked &= ~kSegv;
    (void)ptrace(PTRACE_SETSIGMASK, tid, sizeof blocked, &blocked);
  }
  return ignores(tid, SIGSEGV) ? SIGKILL : SIGSEGV;
}

SystemCallOutcome run_system_call(pid_t tid, uint64_t number, std::array<uint64_t, 3> arguments) {
  SystemCallOutcome outcome;
  user_regs_struct before;
  if (!get(tid, before)) return outcome;
  const bool wide = before.cs == kSelector64;
  // Written over the code that comes next, and taken away again. POKETEXT may write where the program may
  // not.
  errno = 0;
  const long code_before = ptrace(PTRACE_PEEKTEXT, tid, before.rip, nullptr);
  if (errno != 0) return outcome;
  const long instruction = wide ? 0x050F : 0x80CD;  // syscall; int 0x80
  const long code = (code_before & ~0xFFFFL) | instruction;
  if (ptrace(PTRACE_POKETEXT, tid, before.rip, code) != 0) return outcome;

  user_regs_struct during = before;
  during.orig_rax = kNoSystemCall;  // nothing to restart
  during.rax = number;
  (wide ? during.rdi : during.rbx) = arguments[0];
  (wide ? during.rsi : during.rcx) = arguments[1];
  during.rdx = arguments[2];
  std::vector<int> postponed;
  if (set(tid, during)) {
    for (;;) {
      int status = 0;
      if (ptrace(PTRACE_SINGLESTEP, tid, nullptr, nullptr) != 0 || waitpid(tid, &status, __WALL) != tid) {
        return outcome;
      }
      if (!WIFSTOPPED(status)) {
        outcome.death = status;
        return outcome;
      }
      if (status >> 16 != 0) continue;  // a group stop; its signal does not come again
      const auto info = read_signal(tid);
      if (WSTOPSIG(status) == SIGTRAP && info && info->si_code > 0) break;  // the step is done
      postponed.push_back(WSTOPSIG(status));
    }
    user_regs_struct after;
    if (get(tid, after)) {
      outcome.result = wide ? static_cast<int64_t>(after.rax) : int64_t{static_cast<int32_t>(after.rax)};
    }
  }
  (void)ptrace(PTRACE_POKETEXT, tid, before.rip, code_before);
  before.orig_rax = kNoSystemCall;
  (void)set(tid, before);
  const pid_t group = group_of(tid);
  for (const int signal : postponed) syscall(SYS_tgkill, group, tid, signal);
  return outcome;
}

pid_t group_of(pid_t tid) {
  return pid_field(tid, "Tgid");
}

pid_t parent_of(pid_t tid) {
  return pid_field(tid, "PPid");
}

bool share_memory(pid_t a, pid_t b, bool if_unknown) {
  const long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
  return order < 0 ? if_unknown : order == 0;
}

}  // namespace hindsight::lwp::traced
