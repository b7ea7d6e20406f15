#include "feedback/lwp/emulation/sigill_emulation.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "feedback/lwp/emulation/instructions.h"
#include "feedback/lwp/format/control_block.h"
#include "tests/sanitizers.h"

namespace hindsight::lwp {
namespace {

// A control block with its buffer, as a native program makes one.
struct Area {
  explicit Area(uint32_t records = 64) : buffer(records) {
    block.flags = flag_of(EventId::kValue);
    block.set_size_and_random(records * kRecordSize, 0);
    block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  }
  uint32_t stored() const { return block.head / kRecordSize; }
  ControlBlock block;
  std::vector<EventRecord> buffer;
};

class SigillEmulation : public testing::Test {
 protected:
  void install() {
    const Status installed = install_lwp_emulation(IfSigillIsHandled::kChain);
    ASSERT_TRUE(installed) << installed.error().describe();
  }
  void TearDown() override {
    instruction_off();
    EXPECT_TRUE(uninstall_lwp_emulation());
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGILL, &standard, nullptr);
  }
  static void instruction_off() {
    if (lwp_emulation_installed()) instruction::llwpcb(nullptr);
  }
};

// What happens to a child process that runs this: its exit status, or 1000 + its signal.
int fate_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(SigillEmulation, ExecutesTheInstructionsOfThisProcess) {
  install();
  const InstructionCounts before = emulated_instructions();
  Area area(4);
  EXPECT_EQ(instruction::slwpcb(), nullptr);
  EXPECT_FALSE(instruction::lwpins<1>(2, 3)) << "off";
  instruction::llwpcb(&area.block);
  EXPECT_EQ(instruction::slwpcb(), &area.block);
  instruction::lwpval<0x11>(1, 2);
  EXPECT_FALSE(instruction::lwpins<0x22>(3, 4));
  EXPECT_FALSE(instruction::lwpins<0x22>(3, 4));
  EXPECT_TRUE(instruction::lwpins<0x33>(5, 6)) << "full";
  instruction::llwpcb(nullptr);
  EXPECT_EQ(instruction::slwpcb(), nullptr);

  EXPECT_EQ(area.stored(), 3u);
  EXPECT_EQ(area.block.missed_events, 1u);
  EXPECT_EQ(area.buffer[0], make_value_record(area.buffer[0].address, 1, 2, 0x11));
  EXPECT_EQ(area.buffer[1], make_programmed_record(area.buffer[1].address, 3, 4, 0x22));
  EXPECT_EQ(*reinterpret_cast<const uint8_t*>(area.buffer[1].address), 0x8F)
      << "the instruction's own address";
  const InstructionCounts after = emulated_instructions();
  EXPECT_EQ(after.of(Operation::kLlwpcb) - before.of(Operation::kLlwpcb), 2u);
  EXPECT_EQ(after.of(Operation::kSlwpcb) - before.of(Operation::kSlwpcb), 3u);
  EXPECT_EQ(after.of(Operation::kLwpins) - before.of(Operation::kLwpins), 4u);
  EXPECT_EQ(after.of(Operation::kLwpval) - before.of(Operation::kLwpval), 1u);
  EXPECT_EQ(after.faults, before.faults);
}

TEST_F(SigillEmulation, EveryThreadHasLwpOfItsOwn) {
  install();
  constexpr uint32_t kThreads = 16, kEvents = 100;
  std::vector<Area> areas;
  for (uint32_t t = 0; t < kThreads; ++t) areas.emplace_back(256);
  for (Area& area : areas) area.block.buffer_base = reinterpret_cast<uint64_t>(area.buffer.data());
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_EQ(instruction::slwpcb(), nullptr);
      instruction::llwpcb(&areas[t].block);
      for (uint32_t i = 0; i < kEvents; ++i) instruction::lwpins<0>(t, i);
      EXPECT_EQ(instruction::slwpcb(), &areas[t].block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 0; t < kThreads; ++t) {
    ASSERT_EQ(areas[t].stored(), kEvents) << t;
    for (uint32_t i = 0; i < kEvents; ++i) {
      EXPECT_EQ(areas[t].buffer[i].data2, t);
      EXPECT_EQ(areas[t].buffer[i].data1, i);
    }
  }
}

TEST_F(SigillEmulation, AChildProcessGoesOnInItsCopyOfTheMemory) {
  install();
  Area area;
  instruction::llwpcb(&area.block);
  instruction::lwpins<0>(1, 1);
  EXPECT_EQ(fate_of_child([&] {
              instruction::lwpins<0>(2, 2);
              return static_cast<int>(area.stored()) * 10 + (instruction::slwpcb() == &area.block);
            }),
            21);
  EXPECT_EQ(area.stored(), 1u) << "the parent's ring is its own";
}

// ---- faults

std::vector<void*> g_fault_addresses;
uint8_t g_first_byte;
void* g_page;

void on_fault(int, siginfo_t* info, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  g_first_byte = *reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  g_fault_addresses.push_back(info->si_addr);
  mprotect(g_page, 4096, PROT_READ | PROT_WRITE);
}

TEST_F(SigillEmulation, AFaultIsASegmentationFaultAtTheInstructionWhichCanBeRepeated) {
  install();
  g_page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(g_page, MAP_FAILED);
  g_fault_addresses.clear();
  g_fault_addresses.reserve(4);
  struct sigaction handler {
  }, previous{};
  handler.sa_sigaction = on_fault;
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &handler, &previous);

  Area area;
  instruction::llwpcb(&area.block);
  auto* const operand = static_cast<uint32_t*>(g_page) + 3;
  asm volatile("lwpins $0x77, %0, %1" : : "m"(*operand), "r"(uint64_t{9}) : "memory", "cc");
  sigaction(SIGSEGV, &previous, nullptr);
  EXPECT_EQ(g_fault_addresses, std::vector<void*>{operand});
  EXPECT_EQ(g_first_byte, 0x8F);
  ASSERT_EQ(area.stored(), 1u);
  EXPECT_EQ(area.buffer[0], make_programmed_record(area.buffer[0].address, 9, 0, 0x77));
  EXPECT_EQ(munmap(g_page, 4096), 0);
}

TEST_F(SigillEmulation, ABadControlBlockIsASegmentationFault) {
  install();
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "the sanitizer reports the signal and exits";
  Area bad;
  bad.block.buffer_base = 0;
  EXPECT_EQ(fate_of_child([&] {
              instruction::llwpcb(&bad.block);
              return 0;
            }),
            1000 + SIGSEGV);
}

TEST_F(SigillEmulation, AFaultEndsAProcessThatBlocksOrIgnoresIt) {
  install();
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "the sanitizer reports the signal and exits";
  EXPECT_EQ(fate_of_child([] {
              signal(SIGSEGV, SIG_IGN);
              instruction::llwpcb(reinterpret_cast<void*>(64));
              return 0;
            }),
            1000 + SIGSEGV);
  EXPECT_EQ(fate_of_child([] {
              sigset_t blocked;
              sigemptyset(&blocked);
              sigaddset(&blocked, SIGSEGV);
              sigprocmask(SIG_BLOCK, &blocked, nullptr);
              instruction::llwpcb(reinterpret_cast<void*>(64));
              return 0;
            }),
            1000 + SIGSEGV);
}

// ---- together with other handlers

int g_seen_signal;
bool g_other_signals_blocked, g_asked_signal_blocked;

void on_other_undefined_instruction(int signal, siginfo_t*, void* context) {
  g_seen_signal = signal;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  g_other_signals_blocked = sigismember(&mask, SIGWINCH);
  g_asked_signal_blocked = sigismember(&mask, SIGURG);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // over ud2
}

struct sigaction hosts_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_other_undefined_instruction;
  action.sa_flags = SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGURG);
  return action;
}

TEST_F(SigillEmulation, HandsOtherUndefinedInstructionsToTheHostsHandler) {
  const struct sigaction host = hosts_handler();
  sigaction(SIGILL, &host, nullptr);
  install();
  g_seen_signal = 0;
  asm volatile("ud2" : : : "memory");
  EXPECT_EQ(g_seen_signal, SIGILL);
  EXPECT_FALSE(g_other_signals_blocked) << "the host's handler did not ask for that";
  EXPECT_TRUE(g_asked_signal_blocked);
  EXPECT_EQ(instruction::slwpcb(), nullptr);
}

TEST_F(SigillEmulation, HandsOverASignalThatSomebodySent) {
  struct sigaction host = hosts_handler();
  host.sa_sigaction = [](int signal, siginfo_t*, void*) { g_seen_signal = signal; };
  sigaction(SIGILL, &host, nullptr);
  install();
  g_seen_signal = 0;
  raise(SIGILL);
  EXPECT_EQ(g_seen_signal, SIGILL);
}

TEST_F(SigillEmulation, RefusesWhereTheHostHandlesTheSignalAndWantsTo) {
  const struct sigaction host = hosts_handler();
  sigaction(SIGILL, &host, nullptr);
  const Status installed = install_lwp_emulation(IfSigillIsHandled::kRefuse);
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().kind, ErrorKind::kUsage);
  EXPECT_NE(installed.error().message.find("SIGILL"), std::string::npos);
  EXPECT_FALSE(lwp_emulation_installed());
  g_seen_signal = 0;
  asm volatile("ud2" : : : "memory");
  EXPECT_EQ(g_seen_signal, SIGILL) << "the host's handler is as it was";
}

TEST_F(SigillEmulation, InstallsOnceAndPutsBackWhatWasThere) {
  const struct sigaction host = hosts_handler();
  sigaction(SIGILL, &host, nullptr);
  install();
  install();
  EXPECT_TRUE(install_lwp_emulation(IfSigillIsHandled::kRefuse)) << "the handler is ours";
  EXPECT_TRUE(lwp_emulation_installed());
  ASSERT_TRUE(uninstall_lwp_emulation());
  struct sigaction now {};
  sigaction(SIGILL, nullptr, &now);
  EXPECT_EQ(now.sa_sigaction, on_other_undefined_instruction);
}

TEST_F(SigillEmulation, DoesNotTakeAwayAHandlerThatCameLater) {
  install();
  const struct sigaction host = hosts_handler();
  sigaction(SIGILL, &host, nullptr);
  EXPECT_FALSE(uninstall_lwp_emulation());
  struct sigaction now {};
  sigaction(SIGILL, nullptr, &now);
  EXPECT_EQ(now.sa_sigaction, on_other_undefined_instruction);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGILL, &standard, nullptr);
}

TEST_F(SigillEmulation, OtherUndefinedInstructionsEndTheProcessAsBefore) {
  install();
  EXPECT_EQ(fate_of_child([] {
              asm volatile("ud2" : : : "memory");
              return 0;
            }),
            1000 + SIGILL);
  EXPECT_EQ(fate_of_child([] {
              raise(SIGILL);
              return 0;
            }),
            1000 + SIGILL);
}

TEST_F(SigillEmulation, KeepsErrno) {
  install();
  errno = 1234;
  instruction::slwpcb();
  EXPECT_EQ(errno, 1234);
}

}  // namespace
}  // namespace hindsight::lwp
