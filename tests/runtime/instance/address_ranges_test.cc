#include "runtime/instance/address_ranges.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace hindsight::rt {
namespace {

TEST(AddressRanges, ContainItsAddressesAndNoOthers) {
  AddressRanges<4> ranges;
  ASSERT_TRUE(ranges.add(0x1000, 0x2000));
  EXPECT_FALSE(ranges.contains(0xfff));
  EXPECT_TRUE(ranges.contains(0x1000));
  EXPECT_TRUE(ranges.contains(0x1fff));
  EXPECT_FALSE(ranges.contains(0x2000));
  ranges.remove(0x1000);
  EXPECT_FALSE(ranges.contains(0x1000));
  EXPECT_EQ(ranges.count(), 0u);
}

TEST(AddressRanges, SayWhenTheyAreFullAndTakeFreedSlotsAgain) {
  AddressRanges<2> ranges;
  EXPECT_TRUE(ranges.add(0x1000, 0x2000));
  EXPECT_TRUE(ranges.add(0x3000, 0x4000));
  EXPECT_FALSE(ranges.add(0x5000, 0x6000));
  ranges.remove(0x1000);
  EXPECT_TRUE(ranges.add(0x5000, 0x6000));
  EXPECT_TRUE(ranges.contains(0x5800));
}

TEST(AddressRanges, KeepAStandingRangeVisibleWhileOthersComeAndGo) {
  auto ranges = std::make_unique<AddressRanges<64>>();
  ASSERT_TRUE(ranges->add(0x1000, 0x2000));
  std::thread writer([&] {
    for (uintptr_t i = 0; i < 20000; i++) {
      ranges->add(0x100000 + i * 0x1000, 0x101000 + i * 0x1000);
      ranges->remove(0x100000 + i * 0x1000);
    }
  });
  bool always = true;
  for (int i = 0; i < 20000; i++) always = always && ranges->contains(0x1800) && !ranges->contains(0x2800);
  writer.join();
  EXPECT_TRUE(always);
}

}  // namespace
}  // namespace hindsight::rt
