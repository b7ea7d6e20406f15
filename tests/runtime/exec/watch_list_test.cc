#include "runtime/exec/watch_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;
constexpr WatchList::Clock::time_point kStart{1000h};

TEST(WatchList, KeepsTheNearerOfTwoTimesWhoeverCameLast) {
  WatchList list;
  const auto entry = std::make_shared<EntryState>();
  list.add(entry, kStart + 20ms);
  list.add(entry, kStart + 1h);
  EXPECT_EQ(list.next(), kStart + 20ms);
  list.add(entry, kStart + 10ms);
  EXPECT_EQ(list.next(), kStart + 10ms);
  EXPECT_EQ(list.take_due(kStart + 9ms), nullptr);
  EXPECT_EQ(list.take_due(kStart + 10ms), entry);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.next(), WatchList::Clock::time_point::max());
}

TEST(WatchList, GivesThoseThatAreDueByTheirTimes) {
  WatchList list;
  std::vector<std::shared_ptr<EntryState>> entries;
  for (const auto at : {30ms, 10ms, 40ms, 20ms}) {
    entries.push_back(std::make_shared<EntryState>());
    list.add(entries.back(), kStart + at);
  }
  list.add(entries[2], kStart + 5ms);
  list.add(entries[1], kStart + 1h);
  list.remove(*entries[3]);
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list.next(), kStart + 5ms);
  EXPECT_EQ(list.take_due(kStart + 30ms), entries[2]);
  EXPECT_EQ(list.next(), kStart + 10ms);
  EXPECT_EQ(list.take_due(kStart + 30ms), entries[1]);
  EXPECT_EQ(list.take_due(kStart + 30ms), entries[0]);
  EXPECT_EQ(list.take_due(WatchList::Clock::time_point::max()), nullptr);
  list.remove(*entries[0]);
  EXPECT_TRUE(list.empty());
}

TEST(WatchList, GivesEachThatIsDueOnceAndForgetsWhatIsGone) {
  WatchList list;
  const auto first = std::make_shared<EntryState>(), second = std::make_shared<EntryState>();
  auto gone = std::make_shared<EntryState>();
  list.add(first, kStart);
  list.add(second, kStart + 1ms);
  list.add(gone, kStart);
  gone.reset();
  EXPECT_EQ(list.take_due(kStart), first);
  EXPECT_EQ(list.take_due(kStart), nullptr);
  EXPECT_EQ(list.next(), kStart + 1ms);
  list.remove(*second);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace hindsight::rt
