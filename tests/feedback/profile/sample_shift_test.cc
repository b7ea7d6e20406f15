#include "feedback/profile/sample_shift.h"

#include <gtest/gtest.h>

#include <random>

namespace hindsight::feedback {
namespace {

// Places 0 to `places` - 1 alike, `elsewhere` of a hundred samples at other places.
void add(SampleShift& shift, std::mt19937& random, size_t samples, uint32_t places, uint32_t elsewhere = 0) {
  for (size_t i = 0; i < samples; ++i)
    shift.add(random() % 100 < elsewhere ? 1000 + static_cast<uint32_t>(random() % 4)
                                         : static_cast<uint32_t>(random() % places));
}

constexpr size_t kFirst = SampleShift::kSettling + SampleShift::kReference;

TEST(SampleShift, IsNoneBeforeThereAreEnoughSamples) {
  SampleShift shift;
  std::mt19937 random(1);
  add(shift, random, kFirst, 10);
  add(shift, random, SampleShift::kRecent - 1, 10, 100);
  EXPECT_EQ(shift.share(), 0);
  add(shift, random, 1, 10, 100);
  EXPECT_GT(shift.share(), 0.7);
}

TEST(SampleShift, IsAboutNoneWhileSamplesStandWhereTheyStoodHoweverManyPlacesThereAre) {
  for (const uint32_t places : {1u, 3u, 20u, 100u, 1000u}) {
    SampleShift shift;
    std::mt19937 random(places);
    add(shift, random, kFirst, places);
    double most = 0;
    for (int i = 0; i < 50; ++i) {
      add(shift, random, SampleShift::kRecent, places);
      most = std::max(most, shift.share());
    }
    EXPECT_LT(most, 0.12) << places;
  }
}

TEST(SampleShift, IsTheShareThatStandsElsewhereByNow) {
  for (const uint32_t elsewhere : {30u, 60u, 100u}) {
    SampleShift shift;
    std::mt19937 random(elsewhere);
    add(shift, random, kFirst, 5);
    add(shift, random, SampleShift::kRecent, 5);
    add(shift, random, SampleShift::kRecent, 5, elsewhere);
    // Less what may be chance: of samples that moved, too.
    EXPECT_LT(shift.share(), elsewhere / 100.0 + 0.1);
    EXPECT_GT(shift.share(), elsewhere / 100.0 - 0.25);
  }
}

TEST(SampleShift, EndsWhenThingsAreAsTheyWere) {
  SampleShift shift;
  std::mt19937 random(7);
  add(shift, random, kFirst, 5);
  add(shift, random, SampleShift::kRecent, 5, 100);
  EXPECT_GT(shift.share(), 0.7);
  add(shift, random, SampleShift::kRecent, 5);
  EXPECT_LT(shift.share(), 0.12);
}

}  // namespace
}  // namespace hindsight::feedback
