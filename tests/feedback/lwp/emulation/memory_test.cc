#include "feedback/lwp/emulation/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/feedback/lwp/emulation/software_lwp_area.h"

namespace hindsight::lwp {
namespace {

// One page that can be closed.
class Page {
 public:
  Page() : at_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Page() { munmap(at_, kSize); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }
  void allow(int protection) { ASSERT_EQ(mprotect(at_, kSize, protection), 0); }
  template <typename T>
  T* as() {
    return static_cast<T*>(at_);
  }
  static constexpr size_t kSize = 4096;

 private:
  void* at_;
};

constexpr uint64_t kNowhere = 0x10;

template <typename T>
std::span<std::byte> bytes(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

TEST(ProcessMemory, ReadsAndWritesThisProcess) {
  ProcessMemory memory(getpid());
  uint64_t source = 0x1122334455667788, copy = 0;
  const auto at = reinterpret_cast<uint64_t>(&source);
  EXPECT_TRUE(memory.read(at, bytes(copy)));
  EXPECT_EQ(copy, source);
  uint32_t word = 0;
  EXPECT_TRUE(memory.load_acquire(at, word));
  EXPECT_EQ(word, 0x55667788u);
  EXPECT_TRUE(memory.store_release(at, 1));
  EXPECT_EQ(source, 0x1122334400000001u);
}

TEST(ProcessMemory, SaysNoWhereThereIsNoMemoryAndKeepsErrno) {
  ProcessMemory memory(getpid());
  uint64_t word = 0;
  errno = 1234;
  EXPECT_FALSE(memory.read(kNowhere, bytes(word)));
  EXPECT_FALSE(memory.write(kNowhere, bytes(word)));
  EXPECT_EQ(errno, 1234);
  Page page;
  page.allow(PROT_READ);
  EXPECT_TRUE(memory.read(page.address(), bytes(word)));
  EXPECT_FALSE(memory.write(page.address(), bytes(word)));
}

TEST(ProcessMemory, ServesALwpThreadOfAnotherProcess) {
  auto area = std::make_unique<Area>(16);
  area->ask(EventId::kInstructions, 1);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // its copy of the area is at the same addresses
    char c;
    if (read(go[0], &c, 1) != 1) _exit(1);
    const auto records = area->records();
    _exit(records.size() == 3 && records[2] == make_programmed_record(7, 8, 9, 10) ? 0 : 2);
  }
  ProcessMemory memory(child);
  SoftwareLwp lwp(memory);
  const auto loaded = lwp.llwpcb(area->address());
  if (loaded) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(lwp.retire(plain(1)));
    EXPECT_EQ(lwp.lwpins(7, 8, 9, 10), false);
    EXPECT_EQ(lwp.slwpcb(), area->address());
  }
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(go[0]);
  close(go[1]);
  if (!loaded) GTEST_SKIP() << "this system does not let one process write into its child";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(area->records().empty());  // ours was not touched
}

// The faults of the instructions, and that nothing happened when one was raised.
class Faults : public testing::Test {
 protected:
  void SetUp() override {
    block_ = new (block_page_.as<void>()) ControlBlock;
    block_->set_size_and_random(8 * kRecordSize, 0);
    block_->buffer_base = buffer_page_.address();
  }
  void close_block() { block_page_.allow(PROT_NONE); }
  void open_block() { block_page_.allow(PROT_READ | PROT_WRITE); }
  static Fault page_fault(uint64_t at) { return {FaultKind::kPageFault, at}; }

  ProcessMemory memory_{getpid()};
  SoftwareLwp lwp_{memory_};
  Page block_page_, buffer_page_;
  ControlBlock* block_ = nullptr;
};

TEST_F(Faults, OfAControlBlockThatIsNotThere) {
  EXPECT_EQ(lwp_.llwpcb(kNowhere).error(), page_fault(kNowhere));
  EXPECT_EQ(to_error(lwp_.llwpcb(kNowhere).error()).kind, ErrorKind::kResource);
  EXPECT_EQ(lwp_.slwpcb(), 0u);
}

TEST_F(Faults, OfAControlBlockThatCannotBeWritten) {
  block_page_.allow(PROT_READ);
  EXPECT_EQ(lwp_.llwpcb(block_page_.address()).error(), page_fault(block_page_.address()));
  EXPECT_FALSE(lwp_.on());
}

TEST_F(Faults, OfABufferThatCannotBeWritten) {
  ASSERT_TRUE(lwp_.llwpcb(block_page_.address()));
  EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4), false);
  buffer_page_.allow(PROT_READ);
  EXPECT_EQ(lwp_.lwpins(1, 2, 5, 4).error(), page_fault(buffer_page_.address() + kRecordSize));
  EXPECT_EQ(block_->head, kRecordSize);
  buffer_page_.allow(PROT_READ | PROT_WRITE);
  EXPECT_EQ(lwp_.lwpins(1, 2, 5, 4), false);  // the instruction, repeated
  EXPECT_EQ(block_->head, 2 * kRecordSize);
  EXPECT_EQ(lwp_.counters().records, 2u);
}

TEST_F(Faults, OfACountedInstructionLeaveTheCountAlone) {
  block_->flags = flag_of(EventId::kInstructions) | flag_of(EventId::kBranches);
  block_->slot(EventId::kInstructions) = {5, 0};
  block_->slot(EventId::kBranches) = {9, 9};
  ASSERT_TRUE(lwp_.llwpcb(block_page_.address()));
  buffer_page_.allow(PROT_NONE);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lwp_.retire(branch(1)).error(), page_fault(buffer_page_.address()));
  }
  buffer_page_.allow(PROT_READ | PROT_WRITE);
  EXPECT_EQ(lwp_.retire(branch(1)), true);
  lwp_.slwpcb();
  EXPECT_EQ(block_->slot(EventId::kInstructions).counter, 5u);
  EXPECT_EQ(block_->slot(EventId::kBranches).counter, 8u);
}

TEST_F(Faults, OfABlockThatWentAwayWhileInUse) {
  block_->flags = flag_of(EventId::kValue);
  ASSERT_TRUE(lwp_.llwpcb(block_page_.address()));
  close_block();
  EXPECT_EQ(lwp_.slwpcb().error().kind, FaultKind::kPageFault);
  EXPECT_EQ(lwp_.llwpcb(0).error().kind, FaultKind::kPageFault);
  EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4).error().kind, FaultKind::kPageFault);
  EXPECT_TRUE(lwp_.on());
  open_block();
  EXPECT_EQ(block_->head, 0u);
  EXPECT_EQ(block_->missed_events, 0u);
  EXPECT_TRUE(lwp_.llwpcb(0));
}

TEST_F(Faults, OfAPendingRecordLeaveTheThreadThatRan) {
  Area running(16);
  ASSERT_TRUE(lwp_.llwpcb(block_page_.address()));
  XsaveArea saved = lwp_.save();
  saved.pending = make_instructions_record(1);
  ASSERT_TRUE(lwp_.llwpcb(running.address()));
  buffer_page_.allow(PROT_READ);
  EXPECT_EQ(lwp_.restore(saved).error(), page_fault(buffer_page_.address()));
  EXPECT_EQ(lwp_.block_address(), running.address());
  EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4), false);
  EXPECT_EQ(running.records().size(), 1u);
}

TEST_F(Faults, OfAMissedRecordLeaveItUncounted) {
  // The header on one page, everything the unit writes in it made read-only once the ring is full.
  ASSERT_TRUE(lwp_.llwpcb(block_page_.address()));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4), false);
  block_page_.allow(PROT_READ);
  EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4).error().kind, FaultKind::kPageFault);
  EXPECT_EQ(lwp_.counters().missed, 0u);
  open_block();
  EXPECT_EQ(lwp_.lwpins(1, 2, 3, 4), true);
  EXPECT_EQ(block_->missed_events, 1u);
}

}  // namespace
}  // namespace hindsight::lwp
