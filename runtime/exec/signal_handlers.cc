// Signal handlers. Everything reachable from here is async-signal-safe, with one exception that has an
// argument of its own:
//
// A handler runs between two instructions of the interrupted thread. Functions are unsafe in it because the
// interrupted instruction may be inside the same function's critical section. If the interrupted pc is in
// generated code, the thread is inside no C or C++ function at its innermost frame, and the frames below it
// are runtime functions that hold no lock while the guest runs. So once the pc is known to be generated code,
// the handler may take CodeRegistry's shared lock to tell guest functions from trampolines.
#include "runtime/exec/signal_handlers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/exec/guest_thread.h"
#include "runtime/exec/scan_handler.h"
#include "runtime/instance/address_ranges.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {
namespace {

constexpr uintptr_t kRedZoneBytes = 128;
constexpr greg_t kDirectionFlag = 0x400;

// Written once before the handlers are installed, read by them.
struct sigaction g_previous_segv;
struct sigaction g_previous_bus;
int g_kick_signal = 0;

uintptr_t reg(const ucontext_t& context, int which) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[which]);
}

void redirect(ucontext_t& context, GuestThread& thread, FaultRecord::Kind kind, uintptr_t pc,
              uintptr_t address) {
  thread.fault = {kind, pc, reg(context, REG_RBP), reg(context, REG_RSP), address};
  greg_t* regs = context.uc_mcontext.gregs;
  // As if the function had been called: the stack is 16-byte aligned before a return address is pushed.
  regs[REG_RSP] = static_cast<greg_t>(((reg(context, REG_RSP) - kRedZoneBytes) & ~uintptr_t{15}) - 8);
  regs[REG_RIP] = reinterpret_cast<greg_t>(&trap_after_signal);
  regs[REG_EFL] &= ~kDirectionFlag;
}

// The store whose guest code or builtin the thread is in; null outside the guest and in host functions.
Store* store_in_guest(GuestThread& thread) {
  Activation* activation = thread.activation.load(std::memory_order_relaxed);
  if (activation == nullptr) return nullptr;
  Store* store = activation->store;
  if (store->host_frame != 0) return nullptr;
  if (store->thread()->entry_sp.load(std::memory_order_relaxed) == 0) return nullptr;
  return store;
}

bool handle_fault(siginfo_t* info, ucontext_t& context) {
  GuestThread* thread = this_guest_thread_or_null();
  if (thread == nullptr || info->si_code <= 0 || store_in_guest(*thread) == nullptr) return false;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (!memory_reservations().contains(address)) return false;
  uintptr_t pc = reg(context, REG_RIP);
  if (!code_ranges().contains(pc)) {
    // A C function (memcpy) called by generated code or by a builtin. Leaf functions of libc do not touch
    // rbp; if the caller was generated code its address is on top of the stack.
    const uintptr_t sp = reg(context, REG_RSP);
    if (sp < thread->stack_begin || sp + 8 > thread->stack_end) return false;
    uintptr_t caller;
    std::memcpy(&caller, reinterpret_cast<const void*>(sp), sizeof caller);
    pc = code_ranges().contains(caller) ? caller - 1 : 0;
  }
  redirect(context, *thread, FaultRecord::Kind::kMemoryFault, pc, address);
  return true;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = signal == SIGBUS ? g_previous_bus : g_previous_segv;
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  // The default: let the instruction fault again, this time without a handler.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) raise(signal);  // sent by kill: would not come again
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (!handle_fault(info, *static_cast<ucontext_t*>(context))) pass_on(signal, info, context);
  errno = saved_errno;
}

void interrupt_if_asked(GuestThread& thread, ucontext_t& context) {
  Store* store = store_in_guest(thread);
  if (store == nullptr) return;
  if (store->thread()->interrupt_requested.load(std::memory_order_relaxed) == 0) return;
  const uintptr_t pc = reg(context, REG_RIP);
  if (!code_ranges().contains(pc)) return;
  // In a trampoline the entry's frame is being made or unmade: leave it, the signal comes again.
  if (!store->services().registry->find(reinterpret_cast<const void*>(pc))) return;
  redirect(context, thread, FaultRecord::Kind::kInterrupt, pc, 0);
}

void on_kick(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  GuestThread* thread = this_guest_thread_or_null();
  if (thread != nullptr) {
    auto& user_context = *static_cast<ucontext_t*>(context);
    answer_scan(*thread, user_context);
    interrupt_if_asked(*thread, user_context);
  }
  errno = saved_errno;
}

int choose_kick_signal() {
  // From the middle up: libraries that use real-time signals start at SIGRTMIN.
  for (int signal = SIGRTMIN + 5; signal <= SIGRTMAX; signal++) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) != 0) continue;
    if (!(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_DFL) return signal;
  }
  return SIGURG;  // all taken: one whose default is to be ignored
}

void install() {
  g_kick_signal = choose_kick_signal();
  struct sigaction kick {};
  kick.sa_sigaction = on_kick;
  kick.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&kick.sa_mask);
  sigaction(g_kick_signal, &kick, nullptr);

  struct sigaction fault {};
  fault.sa_sigaction = on_fault;
  fault.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&fault.sa_mask);
  sigaddset(&fault.sa_mask, g_kick_signal);
  // The previous handlers are read before ours can run.
  sigaction(SIGSEGV, nullptr, &g_previous_segv);
  sigaction(SIGBUS, nullptr, &g_previous_bus);
  sigaction(SIGSEGV, &fault, nullptr);
  sigaction(SIGBUS, &fault, nullptr);
}

}  // namespace

void install_signal_handlers() {
  static std::once_flag once;
  std::call_once(once, install);
}

int kick_signal() {
  return g_kick_signal;
}

bool kick_thread(pid_t tid) {
  return ::syscall(SYS_tgkill, getpid(), tid, g_kick_signal) == 0;
}

}  // namespace hindsight::rt
