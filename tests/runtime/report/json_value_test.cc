#include "runtime/report/json_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace hindsight::report {
namespace {

TEST(JsonText, KeepsTheOrderOfMembersAndTheKindsOfValues) {
  Json list = Json::array();
  list.push_back(1);
  list.push_back(Json{{"a", true}});
  list.back()["b"] = -2.5;
  list.back()["b"] = uint64_t{18'446'744'073'709'551'615u};
  const Json all{{"z", "text"},
                 {"list", list},
                 {"none", Json::array()},
                 {"words", std::vector<std::string>{"x", "y"}},
                 {"nan", std::numeric_limits<double>::quiet_NaN()},
                 {"false", false}};
  EXPECT_EQ(all.text(), R"({
  "z": "text",
  "list": [
    1,
    {
      "a": true,
      "b": 18446744073709551615
    }
  ],
  "none": [],
  "words": [
    "x",
    "y"
  ],
  "nan": null,
  "false": false
})");
}

TEST(JsonText, IsJsonWhateverTheNamesAre) {
  Json all{{"a\n\"", "\x1b[2J\xff\\"}};
  all["\x80"] = "größe";
  const auto read = nlohmann::json::parse(all.text());
  EXPECT_EQ(read["a\n\""], "\x1b[2J\xEF\xBF\xBD\\");
  EXPECT_EQ(read["\xEF\xBF\xBD"], "größe");
}

}  // namespace
}  // namespace hindsight::report
