#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace hindsight {
namespace {

TEST(Printable, KeepsOrdinaryTextOfAnyScript) {
  EXPECT_EQ(printable("std::vector<int>::push_back"), "std::vector<int>::push_back");
  EXPECT_EQ(printable("größe 数 😀"), "größe 数 😀");
}

TEST(Printable, ShowsTerminalEscapesInsteadOfSendingThem) {
  EXPECT_EQ(printable("\x1b[2Jgone\r"), "\\u{1b}[2Jgone\\r");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\u{0}b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m")
      << "the one-character form of ESC [";
}

TEST(Printable, ShowsCharactersThatReorderOrHideTheirNeighbours) {
  EXPECT_EQ(printable("a\u202e"
                      "b"),
            "a\\u{202e}b");
  EXPECT_EQ(printable("a\u200b"
                      "b"),
            "a\\u{200b}b");
  EXPECT_EQ(printable("\ufeff"), "\\u{feff}");
  EXPECT_EQ(printable("\u2028\u2029"), "\\u{2028}\\u{2029}") << "which end lines, too";
}

TEST(Printable, ShowsEveryByteThatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

TEST(Printable, KeepsNewlinesOnlyWhereLinesAreMeant) {
  EXPECT_EQ(printable("a\nb"), "a\\nb");
  EXPECT_EQ(printable("a\tb"), "a\\tb");
  EXPECT_EQ(printable("a\nb\tc\r", true), "a\nb\tc\\r");
}

TEST(Printable, ChangesNothingThatItHasMadeBefore) {
  const std::string once = printable("a\n\x1b\xff\u202e");
  EXPECT_EQ(once, "a\\n\\u{1b}\\xff\\u{202e}");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, ShowsBothEndsOfWhatIsTooLongAndSaysHowMuchIsMissing) {
  const std::string longest(kMostNameBytes, 'a');
  EXPECT_EQ(printable_name(longest), longest);
  const std::string half = longest.substr(kMostNameBytes / 2);
  EXPECT_EQ(printable_name(half + "b" + half), half + "...(1 bytes left out)..." + half);
  EXPECT_EQ(printable_line(longest + longest), longest + longest);
  EXPECT_LT(printable_line(std::string(1'000'000, '\n')).size(), 3 * kMostLineBytes);
}

TEST(Printable, CutsBetweenCharacters) {
  std::string name;
  while (name.size() < 2 * kMostNameBytes) name += "€";
  for (size_t k = 0; k < 3; ++k) {
    const std::string cut = printable_name(std::string(k, 'x') + name);
    EXPECT_EQ(cut.find("\\x"), std::string::npos) << cut;
    EXPECT_NE(cut.find("bytes left out"), std::string::npos);
  }
}

TEST(AnError, HasPrintableWordsOnOneLineAndItsPlaceAsItIs) {
  const Error error = make_error(ErrorKind::kLink, "unknown import \"a\n#0 fake\x1b[2J\"", "file\n1").error();
  EXPECT_EQ(error.message, "unknown import \"a\\n#0 fake\\u{1b}[2J\"");
  EXPECT_EQ(error.place, "file\n1");
  EXPECT_EQ(error.describe(), "file\\n1: link error: unknown import \"a\\n#0 fake\\u{1b}[2J\"");
  EXPECT_EQ((Error{ErrorKind::kTrap, "a\nb", {}, {}}).describe(), "trap: a\\nb");
}

}  // namespace
}  // namespace hindsight
