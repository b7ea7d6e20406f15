#include "runtime/exec/thread_hooks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "runtime/instance/store.h"

namespace hindsight::rt {
namespace {

struct CountingSink final : LwpSink {
  explicit CountingSink(std::atomic<int>& alive) : alive(alive) { alive++; }
  ~CountingSink() override { alive--; }
  void arm(jit::ThreadState&) override {}
  void instructions(jit::ThreadState&, const void*) override {}
  void branch(jit::ThreadState&, const void*, bool, const void*) override {}
  void value(jit::ThreadState&, const void*, uint32_t, uint64_t, uint32_t) override {}
  std::atomic<int>& alive;
};

struct Hooks final : ThreadHooks {
  std::shared_ptr<LwpSink> on_first_entry(Store&) override {
    entries++;
    return std::make_shared<CountingSink>(alive);
  }
  void strip_ended(Store&, jit::VmContext*, jit::LoopCell*) override {}
  std::atomic<int> entries{0};
  std::atomic<int> alive{0};
};

TEST(ThreadAttachments, GiveEachThreadOneUnitThatEndsWithTheThread) {
  Hooks hooks;
  ThreadAttachments attachments;
  auto store = Store::create({});
  std::thread([&] {
    LwpSink* first = attachments.enter(hooks, *store);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(attachments.enter(hooks, *store), first);
    EXPECT_EQ(hooks.alive, 1);
  }).join();
  EXPECT_EQ(hooks.alive, 0);
  EXPECT_EQ(attachments.attached(), 0u);
  std::thread([&] { attachments.enter(hooks, *store); }).join();
  EXPECT_EQ(hooks.entries, 2);
}

TEST(ThreadAttachments, EndTheUnitsOfLivingThreadsWithTheEngine) {
  Hooks hooks;
  auto store = Store::create({});
  auto attachments = std::make_unique<ThreadAttachments>();
  EXPECT_NE(attachments->enter(hooks, *store), nullptr);
  EXPECT_EQ(hooks.alive, 1);
  attachments.reset();
  EXPECT_EQ(hooks.alive, 0);
  // Another engine, perhaps at the same address, gets a unit of its own.
  ThreadAttachments next;
  EXPECT_NE(next.enter(hooks, *store), nullptr);
  EXPECT_EQ(hooks.entries, 2);
}

// A unit whose end takes as long as the test wants.
struct SlowSink final : LwpSink {
  explicit SlowSink(std::promise<void>& ending, std::atomic<bool>& ended) : ending(ending), ended(ended) {}
  ~SlowSink() override {
    ending.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // room for a shut_down() that does not wait
    ended = true;
  }
  void arm(jit::ThreadState&) override {}
  void instructions(jit::ThreadState&, const void*) override {}
  void branch(jit::ThreadState&, const void*, bool, const void*) override {}
  void value(jit::ThreadState&, const void*, uint32_t, uint64_t, uint32_t) override {}
  std::promise<void>& ending;
  std::atomic<bool>& ended;
};

struct SlowHooks final : ThreadHooks {
  std::shared_ptr<LwpSink> on_first_entry(Store&) override {
    return std::make_shared<SlowSink>(ending, ended);
  }
  void strip_ended(Store&, jit::VmContext*, jit::LoopCell*) override {}
  std::promise<void> ending;
  std::atomic<bool> ended{false};
};

TEST(ThreadAttachments, LetTheEngineEndOnlyWhenAnEndingThreadIsDoneWithItsUnit) {
  SlowHooks hooks;
  ThreadAttachments attachments;
  auto store = Store::create({});
  std::thread thread([&] { attachments.enter(hooks, *store); });
  hooks.ending.get_future().wait();
  attachments.shut_down();
  EXPECT_TRUE(hooks.ended);
  thread.join();
}

TEST(ThreadAttachments, AttachNothingAfterTheEngineShutDown) {
  Hooks hooks;
  ThreadAttachments attachments;
  auto store = Store::create({});
  attachments.shut_down();
  EXPECT_EQ(attachments.enter(hooks, *store), nullptr);
  EXPECT_EQ(hooks.alive, 0);
}

}  // namespace
}  // namespace hindsight::rt
