#include <thread>

#include "base/monotonic_clock.h"
#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {
namespace {

constexpr auto& sub = layout::kSubscription;
namespace ev = layout::event;

struct Event {
  uint64_t userdata;
  Errno error;
  EventType type;
  uint64_t nbytes;
  uint16_t flags;
};

class Poll {
 public:
  explicit Poll(Guest& guest) : guest_(guest) {}

  Poll& clock(uint64_t userdata, ClockId id, uint64_t timeout, uint16_t flags = 0) {
    const uint32_t at = add(userdata, EventType::kClock);
    EXPECT_TRUE(guest_.memory().store(at + sub.clock_id, id));
    EXPECT_TRUE(guest_.memory().store(at + sub.clock_timeout, timeout));
    EXPECT_TRUE(guest_.memory().store(at + sub.clock_flags, flags));
    return *this;
  }
  Poll& descriptor(uint64_t userdata, EventType type, uint32_t fd) {
    EXPECT_TRUE(guest_.memory().store(add(userdata, type) + sub.fd, fd));
    return *this;
  }
  Errno run() {
    const uint32_t events = guest_.reserve(count_ * ev::kSize);
    const uint32_t happened = guest_.reserve(4);
    const Errno error = guest_.call("poll_oneoff", kSubscriptions, events, count_, happened);
    if (error != Errno::kSuccess) return error;
    for (uint32_t i = 0; i < guest_.get<uint32_t>(happened); i++) {
      const uint32_t at = events + i * ev::kSize;
      this->events.push_back({guest_.get<uint64_t>(at + ev::kUserdata), guest_.get<Errno>(at + ev::kError),
                              guest_.get<EventType>(at + ev::kType), guest_.get<uint64_t>(at + ev::kNbytes),
                              guest_.get<uint16_t>(at + ev::kFlags)});
    }
    return error;
  }

  std::vector<Event> events;

 private:
  static constexpr uint32_t kSubscriptions = 100'000;

  uint32_t add(uint64_t userdata, EventType type) {
    const uint32_t at = kSubscriptions + count_++ * sub.size;
    EXPECT_TRUE(guest_.memory().store(at + sub.userdata, userdata));
    EXPECT_TRUE(guest_.memory().store(at + sub.tag, type));
    return at;
  }

  Guest& guest_;
  uint32_t count_ = 0;
};

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kNever = ~uint64_t{0};

TEST(WasiPoll, ARelativeClockWaitsAtLeastSoLong) {
  Guest guest(quiet_config());
  for (const ClockId id : {ClockId::kRealtime, ClockId::kMonotonic}) {
    const uint64_t start = monotonic_ns();
    Poll poll(guest);
    ASSERT_EQ(poll.clock(7, id, 5 * kMillisecond).run(), Errno::kSuccess);
    EXPECT_GE(monotonic_ns() - start, 5 * kMillisecond);
    ASSERT_EQ(poll.events.size(), 1u);
    EXPECT_EQ(poll.events[0].userdata, 7u);
    EXPECT_EQ(poll.events[0].error, Errno::kSuccess);
    EXPECT_EQ(poll.events[0].type, EventType::kClock);
  }
}

TEST(WasiPoll, AnAbsoluteClockWaitsUntilThatTime) {
  Guest guest(quiet_config());
  const uint32_t now = guest.reserve(8);
  for (const ClockId id : {ClockId::kRealtime, ClockId::kMonotonic}) {
    ASSERT_EQ(guest.call("clock_time_get", static_cast<uint32_t>(id), uint64_t{0}, now), Errno::kSuccess);
    const uint64_t due = guest.get<uint64_t>(now) + 5 * kMillisecond;
    Poll poll(guest);
    ASSERT_EQ(poll.clock(1, id, due, kSubscriptionClockAbstime).run(), Errno::kSuccess);
    ASSERT_EQ(guest.call("clock_time_get", static_cast<uint32_t>(id), uint64_t{0}, now), Errno::kSuccess);
    EXPECT_GE(guest.get<uint64_t>(now), due);
    Poll past(guest);
    ASSERT_EQ(past.clock(1, id, 1, kSubscriptionClockAbstime).run(), Errno::kSuccess);
    EXPECT_EQ(past.events.size(), 1u);
  }
}

TEST(WasiPoll, OnlyWhatHappenedIsTold) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Config config = quiet_config();
  config.stdin_fd = ends[0];
  config.stdout_fd = ends[1];
  Guest guest(std::move(config));
  Poll writable(guest);
  writable.clock(1, ClockId::kMonotonic, kNever)
      .descriptor(2, EventType::kFdRead, 0)
      .descriptor(3, EventType::kFdWrite, 1);
  ASSERT_EQ(writable.run(), Errno::kSuccess);
  ASSERT_EQ(writable.events.size(), 1u);
  EXPECT_EQ(writable.events[0].userdata, 3u);
  EXPECT_EQ(writable.events[0].type, EventType::kFdWrite);

  ASSERT_EQ(::write(ends[1], "abc", 3), 3);
  Poll readable(guest);
  readable.clock(1, ClockId::kMonotonic, kNever).descriptor(2, EventType::kFdRead, 0);
  ASSERT_EQ(readable.run(), Errno::kSuccess);
  ASSERT_EQ(readable.events.size(), 1u);
  EXPECT_EQ(readable.events[0].nbytes, 3u);
  EXPECT_EQ(readable.events[0].flags, 0u);

  EXPECT_EQ(guest.read(0, 3), "abc");
  EXPECT_EQ(guest.call("fd_close", 1), Errno::kSuccess);
  ::close(ends[1]);
  Poll hangup(guest);
  ASSERT_EQ(hangup.descriptor(2, EventType::kFdRead, 0).run(), Errno::kSuccess);
  ASSERT_EQ(hangup.events.size(), 1u);
  EXPECT_EQ(hangup.events[0].flags, kEventHangup);
  EXPECT_EQ(hangup.events[0].nbytes, 0u);
  ::close(ends[0]);
}

TEST(WasiPoll, FilesAndCapturedStreamsAreReadyAlways) {
  TempDir dir;
  write_host_file(dir / "file", "12345");
  Config config = directory_config(dir.path());
  config.stdin_text = "123";
  config.stdout_sink = [](std::span<const std::byte>) {};
  Guest guest(std::move(config));
  const auto fd = guest.open(kRoot, "file");
  ASSERT_TRUE(fd);
  ASSERT_EQ(guest.read(*fd, 2), "12");
  Poll poll(guest);
  poll.clock(1, ClockId::kMonotonic, kNever)
      .descriptor(2, EventType::kFdRead, 0)
      .descriptor(3, EventType::kFdWrite, 1)
      .descriptor(4, EventType::kFdRead, *fd);
  ASSERT_EQ(poll.run(), Errno::kSuccess);
  ASSERT_EQ(poll.events.size(), 3u);
  EXPECT_EQ(poll.events[0].nbytes, 3u);
  EXPECT_EQ(poll.events[1].userdata, 3u);
  EXPECT_EQ(poll.events[2].nbytes, 3u);
}

TEST(WasiPoll, WhatCannotHappenIsAnEventWithItsError) {
  Config config = quiet_config();
  config.stdin_text = "";
  Guest guest(std::move(config));
  Poll poll(guest);
  poll.clock(1, ClockId::kMonotonic, kNever)
      .descriptor(2, EventType::kFdRead, 77)
      .clock(3, ClockId::kThreadCpu, 1)
      .clock(4, static_cast<ClockId>(9), 1)
      .descriptor(5, EventType::kFdWrite, 0);
  ASSERT_EQ(poll.run(), Errno::kSuccess);
  ASSERT_EQ(poll.events.size(), 4u);
  EXPECT_EQ(poll.events[0].error, Errno::kBadf);
  EXPECT_EQ(poll.events[1].error, Errno::kNotsup);
  EXPECT_EQ(poll.events[2].error, Errno::kInval);
  EXPECT_EQ(poll.events[3].error, Errno::kBadf);
}

TEST(WasiPoll, RefusesNothingAndTooMuch) {
  Guest guest(quiet_config());
  EXPECT_EQ(guest.call("poll_oneoff", 64, 64, 0, 16), Errno::kInval);
  EXPECT_EQ(guest.call("poll_oneoff", 64, 64, 0xffffffff, 16), Errno::kInval);
  EXPECT_EQ(guest.call("poll_oneoff", 64, 64, 60000, 16), Errno::kFault);
  ASSERT_TRUE(guest.memory().store(64 + sub.tag, uint8_t{3}));
  EXPECT_EQ(guest.call("poll_oneoff", 64, 64, 1, 16), Errno::kInval);
}

TEST(WasiPoll, AnInterruptEndsASleep) {
  Guest guest(quiet_config());
  std::thread interrupter([&] { guest.context->interrupt(); });
  Poll poll(guest);
  EXPECT_EQ(poll.clock(1, ClockId::kMonotonic, kNever).run(), Errno::kIntr);
  interrupter.join();
}

}  // namespace
}  // namespace hindsight::wasi
