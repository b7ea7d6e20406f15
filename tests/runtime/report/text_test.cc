#include "runtime/report/text.h"

#include <gtest/gtest.h>

namespace hindsight::report {
namespace {

TEST(EscapeHtml, LeavesNoWayOutOfTextOrAttribute) {
  EXPECT_EQ(escape_html("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
  EXPECT_EQ(escape_html("\x01"), "\\u{1}");
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
