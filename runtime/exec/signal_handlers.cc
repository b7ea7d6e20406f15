// Signal handlers. Everything reachable from here is async-signal-safe, with one exception that has an
// argument of its own:
//
// A handler runs between two instructions of the interrupted thread. Functions are unsafe in it because the
// interrupted instruction may be inside the same function's critical section. If the interrupted pc is in
// generated code, the thread is inside no C or C++ function at its innermost frame. The frames below it are
// runtime functions that hold no lock while the guest runs. So once the pc is known to be generated code, the
// handler may take CodeRegistry's shared lock to tell guest functions from trampolines.
#include "runtime/exec/signal_handlers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/exec/guest_thread.h"
#include "runtime/exec/scan_handler.h"
#include "runtime/exec/x86_64.h"
#include "runtime/instance/address_ranges.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {
namespace {

// Written once before the handlers are installed, read by them.
struct sigaction g_previous_segv;
struct sigaction g_previous_bus;
struct sigaction g_previous_kick;
// SIGURG, as Go has it. It is a standard signal: the kernel delivers it also where the user's quota of pending
// signals is used up, which refuses a real-time one. No second one waits in a queue. It is ignored where nobody
// handles it. It is hardly used for what it was made for, and there a spurious one does no harm.
constexpr int kKickSignal = SIGURG;

void redirect(ucontext_t& context, GuestThread& thread, FaultRecord::Kind kind, uintptr_t pc,
              uintptr_t address) {
  thread.fault = {kind, pc, x86_64::fp_of(context), x86_64::sp_of(context), address};
  x86_64::redirect(context, &trap_after_signal);
}

// The store whose guest code or builtin the thread is in; null outside the guest and in host functions.
Store* store_in_guest(GuestThread& thread) {
  Activation* activation = thread.activation.load(std::memory_order_relaxed);
  if (activation == nullptr) return nullptr;
  if (activation->low.load(std::memory_order_relaxed) != 0) return nullptr;
  Store* store = activation->store;
  if (store->thread()->entry_sp.load(std::memory_order_relaxed) == 0) return nullptr;
  return store;
}

bool handle_fault(siginfo_t* info, ucontext_t& context) {
  GuestThread* thread = this_guest_thread_or_null();
  if (thread == nullptr || info->si_code <= 0 || store_in_guest(*thread) == nullptr) return false;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (!memory_reservations().contains(address)) return false;
  uintptr_t pc = x86_64::pc_of(context);
  if (!code_ranges().contains(pc)) {
    // A C function (memcpy) called by generated code or by a builtin. Leaf functions of libc do not touch
    // rbp; if the caller was generated code its address is on top of the stack.
    const uintptr_t sp = x86_64::sp_of(context);
    if (sp < thread->stack_begin || sp + 8 > thread->stack_end) return false;
    uintptr_t caller;
    std::memcpy(&caller, reinterpret_cast<const void*>(sp), sizeof caller);
    pc = code_ranges().contains(caller) ? caller - 1 : 0;
  }
  redirect(context, *thread, FaultRecord::Kind::kMemoryFault, pc, address);
  return true;
}

// False: there was no handler.
bool hand_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
    return true;
  }
  if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) return false;
  previous.sa_handler(signal);
  return true;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if (hand_on(signal == SIGBUS ? g_previous_bus : g_previous_segv, signal, info, context)) return;
  // The default: let the instruction fault again, this time without a handler.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) raise(signal);  // sent by kill: would not come again
}

void interrupt_if_asked(GuestThread& thread, ucontext_t& context) {
  Store* store = store_in_guest(thread);
  if (store == nullptr) return;
  if (store->thread()->interrupt_requested.load(std::memory_order_relaxed) == 0) return;
  const uintptr_t pc = x86_64::pc_of(context);
  if (!code_ranges().contains(pc)) return;
  // In a trampoline the entry's frame is being made or unmade: leave it, the signal comes again.
  if (!store->services().registry->find(reinterpret_cast<const void*>(pc))) return;
  redirect(context, thread, FaultRecord::Kind::kInterrupt, pc, 0);
}

// Could tgkill of this process have left this? Also what the kernel leaves of it without memory or quota for more.
bool looks_like_a_kick(const siginfo_t& info) {
  return (info.si_code == SI_TKILL && info.si_pid == getpid()) ||
         (info.si_code == SI_USER && info.si_pid == 0);
}

// Takes one of the signals that were sent in the kick's place; false: none is on its way.
bool take_kick_otherwise(GuestThread& thread) {
  // Relaxed: see on_kick. By comparison, since a handler of the other such signal, or a sender, may come in between.
  uint32_t kicks = thread.kicks_otherwise.load(std::memory_order_relaxed);
  while (kicks != 0)
    if (thread.kicks_otherwise.compare_exchange_weak(kicks, kicks - 1, std::memory_order_relaxed))
      return true;
  return false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto& user_context = *static_cast<ucontext_t*>(context);
  // A fault that comes while the signal is on its way is not lost: it happens again.
  GuestThread* const thread = this_guest_thread_or_null();
  if (thread != nullptr && looks_like_a_kick(*info) && take_kick_otherwise(*thread))
    interrupt_if_asked(*thread, user_context);
  else if (!handle_fault(info, user_context))
    pass_on(signal, info, context);
  errno = saved_errno;
}

void on_kick(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  bool ours = false;
  if (GuestThread* thread = this_guest_thread_or_null()) {
    // Relaxed: only how the thread looks to whoever asks after it, who asks twice.
    thread->handles_kick.store(true, std::memory_order_relaxed);
    // Relaxed: the flag says nothing but itself, and was set before the signal was sent.
    ours = thread->kicked.exchange(false, std::memory_order_relaxed) && looks_like_a_kick(*info);
    auto& user_context = *static_cast<ucontext_t*>(context);
    answer_scan(*thread, user_context);
    // Before the host's handler, which may leave by a jump.
    thread->handles_kick.store(false, std::memory_order_relaxed);
    // Handed on before the thread is redirected: the host's handler sees where it was.
    if (!ours) hand_on(g_previous_kick, signal, info, context);
    interrupt_if_asked(*thread, user_context);
  } else {
    hand_on(g_previous_kick, signal, info, context);
  }
  errno = saved_errno;
}

void install() {
  struct sigaction kick {};
  kick.sa_sigaction = on_kick;
  kick.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&kick.sa_mask);
  // The previous handlers are read before ours can run.
  sigaction(kKickSignal, nullptr, &g_previous_kick);
  sigaction(kKickSignal, &kick, nullptr);

  struct sigaction fault {};
  fault.sa_sigaction = on_fault;
  fault.sa_flags =
      SA_SIGINFO | SA_ONSTACK | SA_RESTART;  // what a signal in the kick's place interrupts goes on
  sigemptyset(&fault.sa_mask);
  sigaddset(&fault.sa_mask, kKickSignal);
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
  return kKickSignal;
}

bool kick_thread(GuestThread& thread) {
  // Relaxed: see on_kick.
  thread.kicked.store(true, std::memory_order_relaxed);
  return ::syscall(SYS_tgkill, getpid(), thread.tid, kKickSignal) == 0;
}

Reach reach_of(pid_t tid) {
  // "SigPnd:\t0000000000000000", before "SigBlk:": signal n is bit n - 1.
  uint64_t waiting = 0;
  std::optional<uint64_t> blocked;
  std::ifstream status("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; !blocked && std::getline(status, line);) {
    if (line.starts_with("SigPnd:")) waiting = std::strtoull(line.c_str() + 7, nullptr, 16);
    if (line.starts_with("SigBlk:")) blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  const auto is_in = [](uint64_t set, int signal) { return (set >> (signal - 1) & 1) != 0; };
  const auto blocks = [&](int signal) { return blocked && is_in(*blocked, signal); };
  const auto is_ours = [](int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction now {};
    return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
           now.sa_sigaction == handler;
  };
  Reach reach;
  reach.blocked = blocks(kKickSignal);
  reach.replaced = !is_ours(kKickSignal, on_kick);
  // One that is held back stays pending, which an exec hands on to a program that knows nothing of it.
  if (!blocked) return reach;
  for (const int signal : {SIGSEGV, SIGBUS})
    if (reach.other == 0 && !blocks(signal) && is_ours(signal, on_fault)) reach.other = signal;
  reach.other_waits = reach.other != 0 && is_in(waiting, reach.other);
  return reach;
}

bool kick_otherwise(GuestThread& thread, int signal) {
  // Relaxed: see on_kick.
  thread.kicks_otherwise.fetch_add(1, std::memory_order_relaxed);
  if (::syscall(SYS_tgkill, getpid(), thread.tid, signal) == 0) return true;
  (void)take_kick_otherwise(thread);
  return false;
}

bool unblock_signals_here() {
  sigset_t needed, before;
  sigemptyset(&needed);
  for (const int signal : {kKickSignal, SIGSEGV, SIGBUS}) sigaddset(&needed, signal);
  if (pthread_sigmask(SIG_UNBLOCK, &needed, &before) != 0)
    return false;  // fails for no set of signals that there are
  for (const int signal : {kKickSignal, SIGSEGV, SIGBUS})
    if (sigismember(&before, signal) == 1) return true;
  return false;
}

}  // namespace hindsight::rt
