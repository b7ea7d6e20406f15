// The signal handler of the in-process emulation, alone with what it shares.
//
// Why it is async-signal-safe. SIGILL of an LWP instruction is synchronous. The interrupted code stands at
// that instruction, which may be anywhere, in malloc with its lock held for instance. So the handler
// allocates nothing, takes no lock and calls only system calls. For all memory that the program named they
// are process_vm_readv and process_vm_writev. The others are getpid, arch_prctl, rt_tgsigqueueinfo,
// sigprocmask and sigaction.
//
// Why per-thread state needs no lock. Only the thread itself uses it, in the handler, and the handler runs
// with all signals blocked. Another handler of the same thread, which may execute LWP instructions as well,
// comes before or after. Its memory is a part of the thread's static TLS block (initial-exec), so the first
// access does not allocate it.
//
// Why memory is accessed through system calls. A pointer of the program may be wrong, and a fault inside the
// handler would be reported at our pc, or end the process. The kernel answers EFAULT instead, and the SIGSEGV
// that the program then gets stands at its own instruction.
#include "feedback/lwp/emulation/sigill_emulation.h"

#include <asm/prctl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>

#include "feedback/lwp/emulation/emulator.h"
#include "feedback/lwp/emulation/machine_state.h"

namespace hindsight::lwp {
namespace {

// Encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
constexpr std::array<int, 16> kContextOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                               REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                               REG_R12, REG_R13, REG_R14, REG_R15};

// This process's memory, asked politely. The pid is asked at each access: a child of fork() has another.
class CheckedMemory final : public Memory {
 public:
  bool read(uint64_t address, std::span<std::byte> out) override {
    return ProcessMemory(getpid()).read(address, out);
  }
  bool write(uint64_t address, std::span<const std::byte> bytes) override {
    return ProcessMemory(getpid()).write(address, bytes);
  }
};
constinit CheckedMemory g_checked_memory;

// Written before the handler is installed, read by it.
constinit Memory* g_memory = nullptr;
constinit Capabilities g_capabilities;
constinit struct sigaction g_previous {};

// Statistics; relaxed, they order nothing.
constinit std::atomic<uint64_t> g_executed[kOperations];
constinit std::atomic<uint64_t> g_faults;

// Constructed by the thread's first LWP instruction; never destroyed, which SoftwareLwp does not need.
struct ThreadState {
  alignas(SoftwareLwp) std::byte storage[sizeof(SoftwareLwp)];
  bool made;
};
static_assert(std::is_trivially_destructible_v<SoftwareLwp>);
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadState t_state{};

SoftwareLwp& this_threads_lwp() {
  if (!t_state.made) {
    SoftwareLwp::Options options;
    options.capabilities = g_capabilities;
    new (t_state.storage) SoftwareLwp(*g_memory, options);
    t_state.made = true;
  }
  return *std::launder(reinterpret_cast<SoftwareLwp*>(t_state.storage));
}

uint64_t segment_base(int which) {
  unsigned long base = 0;
  syscall(SYS_arch_prctl, which, &base);  // of a register that there is: cannot fail
  return base;
}

// False for a code segment that is neither of the two that Linux has.
bool read_registers(const ucontext_t& context, Registers& out) {
  const auto& saved = context.uc_mcontext.gregs;
  const auto selector = static_cast<uint16_t>(saved[REG_CSGSFS]);
  if (selector != kSelector32 && selector != kSelector64) return false;
  out.width = selector == kSelector64 ? CodeWidth::k64 : CodeWidth::k32;
  for (unsigned i = 0; i < kContextOrder.size(); ++i) {
    out.general[i] = static_cast<uint64_t>(saved[kContextOrder[i]]);
  }
  out.ip = static_cast<uint64_t>(saved[REG_RIP]);
  out.flags = static_cast<uint64_t>(saved[REG_EFL]);
  return true;
}

void write_registers(const Registers& registers, ucontext_t& context) {
  auto& saved = context.uc_mcontext.gregs;
  for (unsigned i = 0; i < kContextOrder.size(); ++i) {
    saved[kContextOrder[i]] = static_cast<greg_t>(registers.general[i]);
  }
  saved[REG_RIP] = static_cast<greg_t>(registers.ip);
  saved[REG_EFL] = static_cast<greg_t>(registers.flags);
}

void set_default_action(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

// Sends the thread the SIGSEGV that the kernel would have sent. It is delivered when the handler returns,
// with the registers that the handler returns to: at the instruction.
void raise_fault(const Fault& fault, ucontext_t& context) {
  struct sigaction current {};
  sigaction(SIGSEGV, nullptr, &current);
  const bool ignored = !(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_IGN;
  if (ignored || sigismember(&context.uc_sigmask, SIGSEGV)) {
    set_default_action(SIGSEGV);
    sigdelset(&context.uc_sigmask, SIGSEGV);
  }
  siginfo_t info = segmentation_fault(fault);
  // A thread may send itself any si_code. No limit on queued signals applies to those below SIGRTMIN.
  syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &info);
}

// Whatever would have happened without us.
void pass_on(int signal, siginfo_t* info, void* raw_context) {
  const auto& context = *static_cast<const ucontext_t*>(raw_context);
  const struct sigaction previous = g_previous;
  const bool sent = info->si_code <= 0;  // by kill and the like: the instruction is not the cause
  const bool takes_info = previous.sa_flags & SA_SIGINFO;
  if (!takes_info && previous.sa_handler == SIG_IGN && sent) return;
  if (!takes_info && (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
    // The kernel knows no ignoring of an undefined instruction. Let it happen again without a handler.
    set_default_action(signal);
    if (sent) syscall(SYS_tgkill, getpid(), gettid(), signal);
    return;
  }
  if (previous.sa_flags & SA_RESETHAND) g_previous.sa_handler = SIG_DFL, g_previous.sa_flags = 0;
  // The handler runs with the signals blocked that it asked for, not with all of them, as ours does.
  sigset_t during = context.uc_sigmask, ours;
  sigorset(&during, &during, &previous.sa_mask);
  if (!(previous.sa_flags & SA_NODEFER)) sigaddset(&during, signal);
  sigprocmask(SIG_SETMASK, &during, &ours);
  if (takes_info) {
    previous.sa_sigaction(signal, info, raw_context);
  } else {
    previous.sa_handler(signal);
  }
  sigprocmask(SIG_SETMASK, &ours, nullptr);
}

// False: the signal is not about an LWP instruction.
bool emulate(const siginfo_t& info, ucontext_t& context) {
  if (info.si_code <= 0) return false;
  Registers registers;
  if (!read_registers(context, registers)) return false;
  // Directly: the processor has just read these bytes.
  const std::optional<Instruction> instruction = fetch_lwp(own_memory(), registers.ip, registers.width);
  if (!instruction) return false;
  if (instruction->memory && instruction->memory->segment == Segment::kFs) {
    registers.fs_base = segment_base(ARCH_GET_FS);
  } else if (instruction->memory && instruction->memory->segment == Segment::kGs) {
    registers.gs_base = segment_base(ARCH_GET_GS);
  }
  const Outcome<void> done = execute(*instruction, registers, *g_memory, this_threads_lwp());
  if (!done) {
    g_faults.fetch_add(1, std::memory_order_relaxed);
    raise_fault(done.error(), context);
    return true;
  }
  g_executed[static_cast<unsigned>(instruction->operation)].fetch_add(1, std::memory_order_relaxed);
  write_registers(registers, context);
  return true;
}

void on_undefined_instruction(int signal, siginfo_t* info, void* raw_context) {
  const int saved_errno = errno;
  if (!emulate(*info, *static_cast<ucontext_t*>(raw_context))) pass_on(signal, info, raw_context);
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_undefined_instruction;
}

bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// Some sandboxes forbid the calls; then addresses are trusted, and a wrong one faults in the handler.
Memory* choose_memory() {
  uint64_t word = 1, copy = 0;
  const bool works =
      g_checked_memory.read(reinterpret_cast<uint64_t>(&word), std::as_writable_bytes(std::span(&copy, 1))) &&
      g_checked_memory.write(reinterpret_cast<uint64_t>(&word), std::as_bytes(std::span(&copy, 1)));
  return works ? static_cast<Memory*>(&g_checked_memory) : &own_memory();
}

// Protects installing and uninstalling against each other, and what follows.
constinit std::mutex g_install_mutex;
bool g_installed = false;  // and not uninstalled; somebody may have put another handler on top, though

}  // namespace

Status install_lwp_emulation(IfSigillIsHandled if_handled) {
  if (detect_capabilities().usable.available) return {};
  const std::lock_guard lock(g_install_mutex);
  struct sigaction current {};
  sigaction(SIGILL, nullptr, &current);
  // Where another handler was put on top of ours, ours stays below it. In front of that one they might call
  // each other.
  if (is_ours(current) || (g_installed && is_handled(current))) return {};
  if (is_handled(current) && if_handled == IfSigillIsHandled::kRefuse) {
    return make_error(ErrorKind::kUsage,
                      "another component of this process handles SIGILL already, so LWP instructions are not "
                      "emulated in it");
  }
  g_previous = current;
  g_memory = choose_memory();
  g_capabilities = emulated_capabilities();
  struct sigaction ours {};
  ours.sa_sigaction = on_undefined_instruction;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  // Where addresses are trusted a wrong one must at least reach its handler.
  if (g_memory == &own_memory()) {
    sigdelset(&ours.sa_mask, SIGSEGV);
    sigdelset(&ours.sa_mask, SIGBUS);
  }
  if (sigaction(SIGILL, &ours, nullptr) != 0) {
    return make_error(ErrorKind::kResource,
                      fmt::format("the SIGILL handler cannot be installed (errno {})", errno));
  }
  g_installed = true;
  return {};
}

Status uninstall_lwp_emulation() {
  const std::lock_guard lock(g_install_mutex);
  if (!g_installed) return {};
  struct sigaction current {};
  sigaction(SIGILL, nullptr, &current);
  if (!is_ours(current) && is_handled(current)) {
    return make_error(ErrorKind::kUsage,
                      "SIGILL is handled by somebody else now, who may hand it on to the emulation");
  }
  if (is_ours(current)) sigaction(SIGILL, &g_previous, nullptr);
  g_installed = false;
  return {};
}

bool lwp_emulation_installed() {
  struct sigaction current {};
  sigaction(SIGILL, nullptr, &current);
  return is_ours(current);
}

InstructionCounts emulated_instructions() {
  InstructionCounts counts;
  for (unsigned i = 0; i < kOperations; ++i)
    counts.executed[i] = g_executed[i].load(std::memory_order_relaxed);
  counts.faults = g_faults.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace hindsight::lwp
