#include <gtest/gtest.h>

#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {
namespace {

const std::string kText = "{\"some\": \"profile\"}\n";

TEST(SealedProfile, GivesBackWhatWasSealed) {
  const std::string sealed = seal(kText);
  EXPECT_TRUE(is_sealed(sealed));
  EXPECT_FALSE(is_sealed(kText));
  ASSERT_TRUE(unseal(sealed));
  EXPECT_EQ(*unseal(sealed), kText);
}

TEST(SealedProfile, IsRefusedWithAnyBitFlipped) {
  const std::string sealed = seal(kText);
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = sealed;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(unseal(damaged)) << i << "." << bit;
    }
  }
}

TEST(SealedProfile, IsRefusedAtAnyOtherLength) {
  const std::string sealed = seal(kText);
  for (size_t n = 0; n < sealed.size(); ++n) EXPECT_FALSE(unseal(sealed.substr(0, n))) << n;
  EXPECT_FALSE(unseal(sealed + "x"));
  EXPECT_NE(unseal(sealed.substr(0, sealed.size() - 1)).error().message.find("cut off"), std::string::npos);
}

TEST(SealedProfile, OfAnotherVersionIsNamedAsOne) {
  std::string sealed = seal(kText);
  sealed.replace(sealed.find(" 1 "), 3, " 2 ");
  ASSERT_FALSE(unseal(sealed));
  EXPECT_EQ(unseal(sealed).error().message,
            "was written by another version of the program: its format is 2, not 1");
}

TEST(SealedProfile, CannotBeMadeToReadBehindItsEnd) {
  for (const std::string& line :
       {std::string("hindsight-kept-profile 1"), std::string("hindsight-kept-profile 1 \n"),
        std::string("hindsight-kept-profile 1  \n"), std::string("hindsight-kept-profile 1 x -1\n"),
        std::string("hindsight-kept-profile 1 x 18446744073709551617\n"),
        "hindsight-kept-profile 1 " + std::string(1000, 'a') + "\n"})
    EXPECT_FALSE(unseal(line)) << line;
}

}  // namespace
}  // namespace hindsight::feedback
