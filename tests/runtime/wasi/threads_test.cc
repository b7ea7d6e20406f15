// Calls of several threads of one guest: one that waits for something lets the others go on.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

// A thread of the guest: memory of its own, the context of another one.
class Caller {
 public:
  explicit Caller(Guest& owner) : owner_(owner) {}
  template <typename... Args>
  Errno call(std::string_view name, Args... args) {
    uint64_t result = ~uint64_t{0};
    const std::array<uint64_t, sizeof...(Args) + 1> slots{static_cast<uint64_t>(args)...};
    find_function(name)->call(*owner_.context, memory.memory(), slots.data(), &result);
    return static_cast<Errno>(result);
  }
  std::expected<std::string, Errno> read(uint32_t fd, uint32_t length) {
    const uint32_t done = memory.reserve(4);
    const uint32_t buffer = memory.reserve(length);
    const Errno error = call("fd_read", fd, memory.put_iovec(buffer, length), 1, done);
    if (error != Errno::kSuccess) return std::unexpected(error);
    return memory.get_string(buffer, memory.get<uint32_t>(done));
  }
  // poll_oneoff on a clock, one hour from now.
  Errno sleep() {
    const uint32_t at = memory.reserve(layout::kSubscription.size),
                   events = memory.reserve(layout::event::kSize);
    EXPECT_TRUE(memory.memory().store(at + layout::kSubscription.tag, EventType::kClock));
    EXPECT_TRUE(memory.memory().store(at + layout::kSubscription.clock_id, ClockId::kMonotonic));
    EXPECT_TRUE(memory.memory().store(at + layout::kSubscription.clock_timeout, uint64_t{3'600'000'000'000}));
    return call("poll_oneoff", at, events, 1, memory.reserve(4));
  }
  Guest memory{quiet_config()};

 private:
  Guest& owner_;
};

// A native thread, and when it sleeps.
class Sleeper {
 public:
  template <typename F>
  explicit Sleeper(F body)
      : thread_([this, body] {
          tid_ = ::gettid();
          body();
          done_ = true;
        }) {}
  ~Sleeper() { thread_.join(); }
  bool done() const { return done_; }
  void await_sleep() const {
    for (;;) {
      std::ifstream file("/proc/self/task/" + std::to_string(tid_) + "/stat");
      std::string pid, name, state;
      file >> pid >> name >> state;
      if (tid_ != 0 && state == "S") return;
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

struct ThreadPipe {
  ThreadPipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~ThreadPipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  int ends[2];
};

TEST(CallsOfThreads, GoOnWhileOneWaits) {
  Guest guest(quiet_config());
  Caller waiting(guest), other(guest);
  Errno ended = Errno::kSuccess;
  {
    Sleeper sleeper([&] { ended = waiting.sleep(); });
    sleeper.await_sleep();
    for (int i = 0; i < 100; i++) EXPECT_EQ(other.call("clock_time_get", 1, 0, 32), Errno::kSuccess);
    EXPECT_EQ(other.call("sched_yield"), Errno::kSuccess);
    guest.context->interrupt();
  }
  EXPECT_EQ(ended, Errno::kIntr);
  guest.context->clear_interrupt();
}

TEST(CallsOfThreads, KeepWhatTheyWaitForWhenItIsClosed) {
  ThreadPipe pipe;
  Config config = quiet_config();
  config.stdin_fd = pipe.ends[0];
  Guest guest(std::move(config));
  Caller reading(guest), other(guest);
  std::expected<std::string, Errno> got;
  {
    Sleeper sleeper([&] { got = reading.read(0, 16); });
    sleeper.await_sleep();
    EXPECT_EQ(other.call("fd_close", 0), Errno::kSuccess);
    EXPECT_EQ(other.call("fd_close", 0), Errno::kBadf);
    EXPECT_EQ(::write(pipe.ends[1], "late", 4), 4);
  }
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, "late");
  EXPECT_EQ(reading.read(0, 16).error(), Errno::kBadf);
}

// Both are woken; one reads, and the other must wait on without holding anything up: whether others make calls at that time,
// or nobody makes one until then.
class TwoReaders : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Beside, TwoReaders, testing::Bool(),
                         [](const auto& info) { return info.param ? "nobody" : "others"; });

TEST_P(TwoReaders, DoNotBlockTheOthersWhereOneWasFaster) {
  ThreadPipe pipe;
  Config config = quiet_config();
  config.stdin_fd = pipe.ends[0];
  Guest guest(std::move(config));
  Caller one(guest), two(guest), other(guest);
  std::expected<std::string, Errno> first, second;
  {
    Sleeper a([&] { first = one.read(0, 1); });
    Sleeper b([&] { second = two.read(0, 1); });
    a.await_sleep();
    b.await_sleep();
    EXPECT_EQ(::write(pipe.ends[1], "x", 1), 1);
    while (GetParam() && !a.done() && !b.done()) std::this_thread::yield();
    if (GetParam()) (a.done() ? b : a).await_sleep();
    for (int i = 0; i < 100; i++) EXPECT_EQ(other.call("clock_time_get", 1, 0, 32), Errno::kSuccess);
    EXPECT_EQ(::write(pipe.ends[1], "y", 1), 1);
  }
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->size() + second->size(), 2u);
}

}  // namespace
}  // namespace hindsight::wasi
