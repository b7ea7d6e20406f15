#include "runtime/report/text.h"

#include <gtest/gtest.h>

namespace hindsight::report {
namespace {

TEST(Printable, KeepsOrdinaryTextOfAnyScript) {
  EXPECT_EQ(printable("std::vector<int>::push_back"), "std::vector<int>::push_back");
  EXPECT_EQ(printable("größe 数 😀"), "größe 数 😀");
}

TEST(Printable, ShowsTerminalEscapesInsteadOfSendingThem) {
  EXPECT_EQ(printable("\x1b[2Jgone\r"), "\\x1b[2Jgone\\x0d");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
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
}

TEST(Printable, ShowsEveryByteThatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

TEST(Printable, KeepsNewlinesOnlyWhereLinesAreMeant) {
  EXPECT_EQ(printable("a\nb"), "a\\x0ab");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
}

TEST(EscapeHtml, LeavesNoWayOutOfTextOrAttribute) {
  EXPECT_EQ(escape_html("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
  EXPECT_EQ(escape_html("\x01"), "\\x01");
}

TEST(SecondsText, ChoosesTheUnit) {
  EXPECT_EQ(seconds_text(0), "0.00 s");
  EXPECT_EQ(seconds_text(0.0000456), "45.6 us");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(1.234), "1.23 s");
  EXPECT_EQ(seconds_text(123.4), "123 s");
}

TEST(TextTable, AlignsByCharactersNotBytes) {
  TextTable table("lr");
  table.add({"name", "n"});
  table.add({"größe", "10"});
  table.rule();
  table.add({"b", "7"});
  EXPECT_EQ(table.text(),
            "name    n\n"
            "---------\n"
            "größe  10\n"
            "---------\n"
            "b       7\n");
}

}  // namespace
}  // namespace hindsight::report
