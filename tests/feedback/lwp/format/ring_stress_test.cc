// Rings under load: several profiled threads, each with its own, and one reader for all, as a monitor is.
// Every record is drained whole and in order, or counted as missed; nothing else can become of it.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "feedback/lwp/emulation/software_lwp.h"
#include "tests/feedback/lwp/emulation/software_lwp_area.h"

namespace hindsight::lwp {
namespace {

#ifdef HINDSIGHT_SANITIZED
constexpr uint32_t kRecords = 40'000;
#else
constexpr uint32_t kRecords = 150'000;
#endif
constexpr unsigned kThreads = 6;
constexpr uint32_t kPace = 1024;  // a thread says this often how far it is, and lets others run

// The n-th LWPINS of a thread, so that a mixture of two records, or of two threads, shows in every word.
EventRecord nth_record(unsigned thread, uint32_t n) {
  return make_programmed_record(uint64_t{thread} << 32 | n, ~uint64_t{n} * 0x9E3779B97F4A7C15,
                                n * 2654435761u, static_cast<uint16_t>(n));
}

struct Source {
  Area area;
  uint64_t full = 0;  // how often CF said so
  explicit Source(uint32_t slots) : area(slots) {}
};

struct Sums {
  uint64_t drained = 0;
  uint64_t broken = 0;
  uint64_t disordered = 0;
};

// The reader of all sources, which takes at most `portion` records from each at a pass.
class Monitor {
 public:
  Monitor(std::vector<std::unique_ptr<Source>>& sources, size_t portion) : portion_(portion) {
    for (auto& s : sources) {
      auto reader = RingReader::create(s->area.block);
      EXPECT_TRUE(reader);
      readers_.push_back(*reader);
      next_.push_back(0);
    }
  }
  // One pass; whether anything was there.
  bool pass() {
    bool any = false;
    for (unsigned t = 0; t < readers_.size(); ++t) {
      const size_t n = readers_[t].read(std::span(batch_).first(portion_));
      for (size_t i = 0; i < n; ++i) {
        const auto number = static_cast<uint32_t>(batch_[i].address);
        sums.broken += batch_[i] != nth_record(t, number);
        sums.disordered += number < next_[t];
        next_[t] = number + 1;
      }
      sums.drained += n;
      any |= n != 0;
    }
    return any;
  }
  Sums sums;

 private:
  size_t portion_;
  std::vector<RingReader> readers_;
  std::vector<uint32_t> next_;
  std::array<EventRecord, 256> batch_;
};

// Runs `kThreads` threads that insert kRecords each, and the monitor, which between its passes waits until
// `emitted` has grown by `lag` records. A slow monitor is one with a large lag, whatever the machine.
void run(uint32_t slots, size_t portion, uint64_t lag, bool expect_missed) {
  std::vector<std::unique_ptr<Source>> sources;
  for (unsigned t = 0; t < kThreads; ++t) sources.push_back(std::make_unique<Source>(slots));
  Monitor monitor(sources, portion);
  std::atomic<uint64_t> emitted{0};
  std::atomic<unsigned> running{kThreads};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Source& source = *sources[t];
      SoftwareLwp lwp(own_memory());
      EXPECT_TRUE(lwp.llwpcb(source.area.address()));
      for (uint32_t n = 0; n < kRecords; ++n) {
        const EventRecord r = nth_record(t, n);
        source.full += *lwp.lwpins(r.address, r.data2, r.data1, r.flags);
        if (n % kPace == kPace - 1) {
          emitted.fetch_add(kPace, std::memory_order_relaxed);  // paces the monitor, orders nothing
          std::this_thread::yield();
        }
      }
      EXPECT_TRUE(lwp.llwpcb(0));
      running.fetch_sub(1, std::memory_order_release);  // the last records are in the ring
    });
  }
  uint64_t seen = 0;
  for (;;) {
    const bool last = running.load(std::memory_order_acquire) == 0;
    const uint64_t now = emitted.load(std::memory_order_relaxed);
    if (!last && now < seen + lag) {
      std::this_thread::yield();
      continue;
    }
    seen = now;
    const bool any = monitor.pass();
    if (last && !any) break;
  }
  for (std::thread& t : threads) t.join();
  uint64_t missed = 0, full = 0;
  for (const auto& s : sources) {
    missed += s->area.block.missed_events;
    full += s->full;
    EXPECT_EQ(s->area.block.head, s->area.block.tail);
  }
  EXPECT_EQ(monitor.sums.broken, 0u);
  EXPECT_EQ(monitor.sums.disordered, 0u);
  EXPECT_EQ(monitor.sums.drained + missed, uint64_t{kThreads} * kRecords);
  EXPECT_EQ(full, missed);
  EXPECT_GT(monitor.sums.drained, 0u);
  if (expect_missed) {
    EXPECT_GT(missed, 0u);
  }
}

TEST(RingLoad, AccountsForEveryRecordOfManyThreads) {
  run(4096, 256, 0, false);
}
TEST(RingLoad, AccountsForEveryRecordWhenRingsAreFullMostOfTheTime) {
  run(4, 256, 0, true);
}
TEST(RingLoad, AccountsForEveryRecordWithASlowMonitor) {
  // Less than a thirtieth of what is emitted between two passes has room.
  run(128, 256, uint64_t{kThreads} * 4096, true);
}
TEST(RingLoad, AccountsForEveryRecordWithAMonitorThatTakesOneAtATime) {
  run(64, 1, 0, true);
}

// Threads that come and go. Each attaches its block, inserts a few records and ends, while the monitor takes
// what they left and what they are leaving.
TEST(RingLoad, AccountsForThreadsThatStartAndEndQuickly) {
  constexpr unsigned kGenerations = 200;
  constexpr uint32_t kEach = 100;
  std::vector<std::unique_ptr<Source>> sources;
  for (unsigned t = 0; t < kThreads; ++t) sources.push_back(std::make_unique<Source>(64));
  Monitor monitor(sources, 256);
  std::atomic<unsigned> running{kThreads};
  std::vector<std::thread> keepers;
  for (unsigned t = 0; t < kThreads; ++t) {
    keepers.emplace_back([&, t] {
      for (unsigned g = 0; g < kGenerations; ++g) {
        std::thread([&, t, g] {
          SoftwareLwp lwp(own_memory());  // goes on at the head that its predecessor left
          EXPECT_TRUE(lwp.llwpcb(sources[t]->area.address()));
          for (uint32_t n = g * kEach; n < (g + 1) * kEach; ++n) {
            const EventRecord r = nth_record(t, n);
            EXPECT_TRUE(lwp.lwpins(r.address, r.data2, r.data1, r.flags));
          }
        }).join();
      }
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  for (;;) {
    const bool last = running.load(std::memory_order_acquire) == 0;
    if (!monitor.pass() && last) break;
  }
  for (std::thread& k : keepers) k.join();
  uint64_t missed = 0;
  for (const auto& s : sources) missed += s->area.block.missed_events;
  EXPECT_EQ(monitor.sums.broken + monitor.sums.disordered, 0u);
  EXPECT_EQ(monitor.sums.drained + missed, uint64_t{kThreads} * kGenerations * kEach);
}

}  // namespace
}  // namespace hindsight::lwp
