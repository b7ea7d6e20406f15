// A native program that uses Lightweight Profiling as the compilers' <x86intrin.h> offers it, and knows
// nothing of this project. Its first argument says what to do; it checks what it finds and ends with 0, or
// says what is wrong and ends with 1.
#include <cpuid.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

namespace {

struct Record {
  uint8_t event, core;
  uint16_t flags;
  uint32_t data1;
  uint64_t address, data2, reserved;
};
struct Block {
  uint32_t flags, size;
  uint64_t base;
  uint32_t head, reserved1;
  uint64_t missed;
  uint32_t threshold, filters;
  uint64_t base_ip, limit_ip, reserved2;
  uint32_t tail, reserved3;
  uint64_t reserved4[7];
  struct {
    uint32_t interval, counter;
  } events[6];
};
static_assert(sizeof(Record) == 32 && sizeof(Block) == 176, "the layout is the specification's");

constexpr uint32_t kRecords = 64;

struct Lwp {
  alignas(64) Block block;
  Record ring[kRecords];

  void arm(uint32_t records = kRecords, uint32_t value_interval = 0) {
    memset(this, 0, sizeof *this);
    block.flags = 1u << 1;  // value samples
    block.size = records * sizeof(Record);
    block.base = reinterpret_cast<uint64_t>(ring);
    block.events[0].interval = value_interval;
    __llwpcb(&block);
  }
  uint32_t stored() {
    __slwpcb();
    return block.head / sizeof(Record);
  }
};
Lwp g_lwp;

int g_failures = 0;
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      g_failures = 1;                                                 \
    }                                                                 \
  } while (0)

bool is(const Record& r, uint8_t event, uint64_t data2, uint32_t data1, uint16_t flags) {
  return r.event == event && r.data2 == data2 && r.data1 == data1 && r.flags == flags && r.reserved == 0 &&
         r.address != 0;
}

// ---- the intrinsics

uint32_t g_cells[16];
thread_local uint32_t t_word = 0x55667788;

int intrinsics() {
  Lwp& lwp = g_lwp;
  CHECK(__slwpcb() == nullptr);
  CHECK(__lwpins32(1, 2, 3) == 0);  // off: nothing happens
  __lwpval64(1, 2, 3);
  lwp.arm();
  CHECK(__slwpcb() == &lwp.block);
  volatile uint32_t in_memory = 0xCAFE;
  g_cells[3] = 0xBEEF;
  CHECK(__lwpins32(0xDEADBEEF, 42, 0x01234567) == 0);
  CHECK(__lwpins64(0xDEADBEEFDEADBEEF, 43, 0x8001) == 0);
  __lwpval32(0x0BADF00D, 44, 0xCAD0);
  __lwpval64(0x0BADF00D0BADF00D, 45, 0xCAD1);
  __lwpval32(1, in_memory, 5);
  __lwpval64(2, g_cells[3], 6);
  CHECK(lwp.stored() == 6);
  CHECK(is(lwp.ring[0], 255, 0xDEADBEEF, 42, 0x4567));
  CHECK(is(lwp.ring[1], 255, 0xDEADBEEFDEADBEEF, 43, 0x8001));
  CHECK(is(lwp.ring[2], 1, 0x0BADF00D, 44, 0xCAD0));
  CHECK(is(lwp.ring[3], 1, 0x0BADF00D0BADF00D, 45, 0xCAD1));
  CHECK(is(lwp.ring[4], 1, 1, 0xCAFE, 5));
  CHECK(is(lwp.ring[5], 1, 2, 0xBEEF, 6));
  __llwpcb(nullptr);
  CHECK(__slwpcb() == nullptr);

  // Every tenth value sample, the first one first.
  lwp.arm(kRecords, 9);
  for (uint32_t i = 0; i < 31; ++i) __lwpval32(i, i, 0);
  CHECK(lwp.stored() == 4);
  for (uint32_t i = 0; i < 4; ++i) CHECK(is(lwp.ring[i], 1, i * 10, i * 10, 0));
  CHECK(lwp.block.events[0].counter == 9);

  // A full ring: the carry flag.
  lwp.arm(4);
  for (int i = 0; i < 3; ++i) CHECK(__lwpins64(7, 7, 7) == 0);
  CHECK(__lwpins64(8, 8, 8) != 0);
  CHECK(__lwpins32(9, 9, 9) != 0);
  CHECK(lwp.stored() == 3 && lwp.block.missed == 2);
  lwp.block.tail = 32;
  CHECK(__lwpins32(10, 10, 10) == 0);
  CHECK(lwp.stored() == 0 && is(lwp.ring[3], 255, 10, 10, 10));
  __llwpcb(nullptr);
  return g_failures;
}

// ---- operands that compilers seldom choose

int operands() {
  Lwp& lwp = g_lwp;
  lwp.arm();
  for (uint32_t i = 0; i < 16; ++i) g_cells[i] = 100 + i;
  const uint64_t data2 = 0xA5A5A5A5A5A5A5A5;
  asm volatile("lwpval $1, %0, %1" : : "m"(g_cells[1]), "r"(data2) : "memory");  // %rip, or absolute
  asm volatile("lwpval $2, -4(%0,%1,4), %2" : : "r"(g_cells), "r"(uint64_t{3}), "r"(data2) : "memory");
  asm volatile(
      "mov %0, %%r13\n mov $2, %%r12d\n mov %1, %%r15\n"
      "lwpins $3, 0x4(%%r13,%%r12,8), %%r15"
      :
      : "r"(g_cells), "r"(data2)
      : "r12", "r13", "r15", "memory", "cc");
  asm volatile("mov %0, %%r12\n lwpins $4, 0x14(%%r12), %k1"
               :
               : "r"(g_cells), "r"(data2)
               : "r12", "memory", "cc");
  asm volatile("lwpins $5, %0, %1" : : "m"(t_word), "r"(data2) : "memory", "cc");
  uint32_t canary;
  asm volatile("movl %%fs:0x28, %0" : "=r"(canary));
  asm volatile("lwpval $6, %%fs:0x28, %0" : : "r"(data2) : "memory");
  void* const low =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  CHECK(low != MAP_FAILED);
  static_cast<uint32_t*>(low)[1] = 77;
  // The upper half of the base does not count in an address of 32 bits.
  const uint64_t base = reinterpret_cast<uint64_t>(low) | 0xFFFF000000000000;
  asm volatile("mov %0, %%rbx\n .byte 0x67\n lwpval $7, 4(%%rbx), %1"
               :
               : "r"(base), "r"(data2)
               : "rbx", "memory");
  CHECK(lwp.stored() == 7);
  CHECK(is(lwp.ring[0], 1, data2, 101, 1));
  CHECK(is(lwp.ring[1], 1, data2, 102, 2));
  CHECK(is(lwp.ring[2], 255, data2, 105, 3));
  CHECK(is(lwp.ring[3], 255, data2 & 0xFFFFFFFF, 105, 4));
  CHECK(is(lwp.ring[4], 255, data2, t_word, 5));
  CHECK(is(lwp.ring[5], 1, data2, canary, 6));
  CHECK(is(lwp.ring[6], 1, data2, 77, 7));
  // Nothing but CF changes.
  uint64_t before, after;
  asm volatile("stc\n pushf\n pop %0\n lwpins $8, %2, %2\n pushf\n pop %1"
               : "=&r"(before), "=&r"(after)
               : "r"(0)
               : "memory", "cc");
  CHECK(after == (before & ~uint64_t{1}));
  __llwpcb(nullptr);
  return g_failures;
}

// ---- threads and processes

void* thread_body(void*) {
  Lwp* const lwp = static_cast<Lwp*>(aligned_alloc(64, sizeof(Lwp)));
  if (__slwpcb() != nullptr) return nullptr;
  lwp->arm();
  for (uint32_t i = 0; i < 50; ++i) {
    __lwpins64(reinterpret_cast<uint64_t>(lwp), i, 0);
    if (i % 16 == 0) sched_yield();
  }
  bool right = lwp->stored() == 50;
  for (uint32_t i = 0; i < 50; ++i)
    right = right && is(lwp->ring[i], 255, reinterpret_cast<uint64_t>(lwp), i, 0);
  free(lwp);
  return right ? lwp : nullptr;
}

int threads(int count) {
  g_lwp.arm();
  pthread_t ids[64];
  for (int i = 0; i < count; ++i) CHECK(pthread_create(&ids[i], nullptr, thread_body, nullptr) == 0);
  for (int i = 0; i < count; ++i) {
    void* result;
    pthread_join(ids[i], &result);
    CHECK(result != nullptr);
  }
  CHECK(__slwpcb() == &g_lwp.block && g_lwp.stored() == 0);
  return g_failures;
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int forks() {
  g_lwp.arm();
  __lwpins32(1, 1, 1);
  const pid_t child = fork();
  if (child == 0) {
    __lwpins32(2, 2, 2);
    _exit(__slwpcb() == &g_lwp.block && g_lwp.stored() == 2 && is(g_lwp.ring[1], 255, 2, 2, 2) ? 21 : 22);
  }
  CHECK(status_of(child) == 21);
  CHECK(g_lwp.stored() == 1);
  for (int i = 0; i < 20; ++i) {  // short-lived ones
    const pid_t one = fork();
    if (one == 0) _exit(__slwpcb() == &g_lwp.block ? i : 99);
    CHECK(status_of(one) == i);
  }
  return g_failures;
}

int execs(char** argv, bool by_vfork) {
  g_lwp.arm();
  char* const arguments[] = {argv[0], const_cast<char*>("off"), nullptr};
  const pid_t child = by_vfork ? vfork() : fork();
  if (child == 0) {
    execv("/proc/self/exe", arguments);
    _exit(127);
  }
  CHECK(status_of(child) == 5);
  CHECK(__slwpcb() == &g_lwp.block);
  execv("/proc/self/exe", arguments);
  return 1;
}

void* exec_body(void* argv) {
  char* const arguments[] = {static_cast<char**>(argv)[0], const_cast<char*>("off"), nullptr};
  execv("/proc/self/exe", arguments);
  return nullptr;
}

// A thread other than the first one executes another program, which gets the number of the process.
int thread_execs(char** argv) {
  g_lwp.arm();
  pthread_t id;
  pthread_create(&id, nullptr, exec_body, argv);
  for (;;) pause();
}

// ---- faults and signals

uint8_t* g_page;
void* g_fault_address;
uint8_t g_fault_byte;

void on_fault(int, siginfo_t* info, void* context) {
  g_fault_address = info->si_addr;
  const greg_t ip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  g_fault_byte = *reinterpret_cast<uint8_t*>(ip);
  mprotect(g_page, 4096, PROT_READ | PROT_WRITE);
}

int faults() {
  g_page = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  g_lwp.arm();
  asm volatile("lwpval $1, 12(%0), %1" : : "r"(g_page), "r"(uint64_t{3}) : "memory");
  CHECK(g_fault_address == g_page + 12);
  CHECK(g_fault_byte == 0x8F);
  CHECK(g_lwp.stored() == 1 && is(g_lwp.ring[0], 1, 3, 0, 1));
  return g_failures;
}

int bad_block() {
  g_lwp.block.size = 0;
  __llwpcb(&g_lwp.block);
  return 0;
}

volatile sig_atomic_t g_handled = 0;
void skip_undefined(int, siginfo_t*, void* context) {
  ++g_handled;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
}
void count_signal(int) {
  ++g_handled;
  __lwpins32(77, 77, 77);  // in a handler, too
}

int own_handler() {
  struct sigaction action = {};
  action.sa_sigaction = skip_undefined;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
  asm volatile("ud2" : : : "memory");
  CHECK(g_handled == 1);
  g_lwp.arm();
  __lwpins32(1, 1, 1);
  CHECK(g_handled == 1 && g_lwp.stored() == 1);
  signal(SIGUSR1, count_signal);
  raise(SIGUSR1);
  CHECK(g_handled == 2 && g_lwp.stored() == 2);
  return g_failures;
}

// Another process sees this one stop, and lets it go on.
int stops() {
  g_lwp.arm();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    char path[64], text[512] = {};
    snprintf(path, sizeof path, "/proc/%d/stat", parent);
    for (;;) {
      FILE* const file = fopen(path, "r");
      if (!file) _exit(1);
      const bool read = fgets(text, sizeof text, file) != nullptr;
      fclose(file);
      const char* const state = read ? strrchr(text, ')') : nullptr;
      if (state && (state[2] == 'T' || state[2] == 't')) break;
    }
    kill(parent, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  CHECK(status_of(child) == 0);
  CHECK(__lwpins32(1, 1, 1) == 0 && g_lwp.stored() == 1);
  return g_failures;
}

// What CPUID says where the kernel traps it: a SIGSEGV of the kernel's at the instruction. Where no kernel
// does, the program sends that signal to itself, so that it is delivered there. The signal is blocked,
// until a handler returns to the instruction with it unblocked.
uint64_t g_cpuid_instruction;
uint32_t g_cpuid_leaf;

void go_to_cpuid(int, siginfo_t*, void* raw) {
  auto* const context = static_cast<ucontext_t*>(raw);
  context->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(g_cpuid_instruction);
  context->uc_mcontext.gregs[REG_RAX] = g_cpuid_leaf;
  context->uc_mcontext.gregs[REG_RCX] = 0;
  sigdelset(&context->uc_sigmask, SIGSEGV);
}

struct Cpuid {
  uint32_t a, b, c, d;
};
Cpuid trapped_cpuid(uint32_t leaf) {
  struct sigaction action = {};
  action.sa_sigaction = go_to_cpuid;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  sigprocmask(SIG_BLOCK, &segv, nullptr);
  siginfo_t info = {};
  info.si_signo = SIGSEGV;
  info.si_code = SI_KERNEL;
  const long self = getpid();
  syscall(SYS_rt_tgsigqueueinfo, self, self, SIGSEGV, &info);
  g_cpuid_leaf = leaf;
  uint64_t a = SYS_tgkill, b, c, d = SIGUSR1;
  asm volatile(
      "lea 1f(%%rip), %%rcx\n mov %%rcx, %4\n"
      "syscall\n jmp 2f\n"
      "1: cpuid\n"
      "2:\n"
      : "+a"(a), "=b"(b), "=&c"(c), "+d"(d), "=m"(g_cpuid_instruction)
      : "D"(self), "S"(self)
      : "r11", "memory");
  return {static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c),
          static_cast<uint32_t>(d)};
}

int sees_lwp_in_cpuid() {
  CHECK(trapped_cpuid(0x80000001).c & (1u << 15));
  const Cpuid lwp = trapped_cpuid(0x8000001C);
  CHECK((lwp.a & 3) == 3 && lwp.a == lwp.d);
  CHECK((lwp.b >> 8 & 0xFF) == 32 && lwp.b >> 24 == 128);
  // The rest is the processor's own.
  const Cpuid vendor = trapped_cpuid(0);
  uint32_t a, b, c, d;
  __cpuid(0, a, b, c, d);
  CHECK(vendor.a == a && vendor.b == b && vendor.c == c && vendor.d == d);
  return g_failures;
}

int cost(int count) {
  g_lwp.arm(kRecords);
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) {
    __lwpins32(1, 1, 1);
    g_lwp.block.tail = g_lwp.block.head;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns =
      1e9 * static_cast<double>(end.tv_sec - begin.tv_sec) + static_cast<double>(end.tv_nsec - begin.tv_nsec);
  printf("%.2f us an instruction\n", ns / count / 1e3);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  const auto asked = [&](const char* word) { return strcmp(what, word) == 0; };
  if (asked("intrinsics")) return intrinsics();
  if (asked("operands")) return operands();
  if (asked("threads")) return threads(number);
  if (asked("fork")) return forks();
  if (asked("exec")) return execs(argv, false);
  if (asked("vfork")) return execs(argv, true);
  if (asked("thread-exec")) return thread_execs(argv);
  if (asked("off")) return __slwpcb() == nullptr ? 5 : 6;
  if (asked("fault")) return faults();
  if (asked("bad-block")) return bad_block();
  if (asked("own-handler")) return own_handler();
  if (asked("stop")) return stops();
  if (asked("undefined")) asm volatile("ud2");
  if (asked("exit")) return number;
  if (asked("kill")) return raise(number);
  if (asked("cost")) return cost(number);
  if (asked("cpuid")) return sees_lwp_in_cpuid();
  if (asked("wait")) {
    __slwpcb();
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  fprintf(stderr, "what?\n");
  return 2;
}
