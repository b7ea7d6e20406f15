#include "runtime/cli/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hindsight::cli {
namespace {

using testing::HasSubstr;

std::string round_trip(ValueKind kind, const char* text) {
  const auto value = parse_value(kind, text);
  return value ? value_text(*value) : "refused";
}

TEST(Values, IntegersMayBeWrittenSignedUnsignedOrHexadecimal) {
  EXPECT_EQ(round_trip(ValueKind::kI32, "-1"), "-1");
  EXPECT_EQ(round_trip(ValueKind::kI32, "4294967295"), "-1");
  EXPECT_EQ(round_trip(ValueKind::kI32, "0xffffffff"), "-1");
  EXPECT_EQ(round_trip(ValueKind::kI32, "-2147483648"), "-2147483648");
  EXPECT_EQ(round_trip(ValueKind::kI64, "18446744073709551615"), "-1");
  EXPECT_EQ(round_trip(ValueKind::kI64, "-9223372036854775808"), "-9223372036854775808");
}

TEST(Values, NumbersThatDoNotFitAreRefused) {
  for (const char* text : {"4294967296", "-2147483649", "1.5", "", "x", "0x", "1 ", "--1", "+-1"}) {
    EXPECT_EQ(round_trip(ValueKind::kI32, text), "refused") << text;
  }
  EXPECT_EQ(round_trip(ValueKind::kI64, "18446744073709551616"), "refused");
  EXPECT_EQ(round_trip(ValueKind::kF64, "1e999"), "refused");
  EXPECT_EQ(round_trip(ValueKind::kF64, " 1"), "refused");
  EXPECT_EQ(round_trip(ValueKind::kF32, "1f"), "refused");
}

TEST(Values, FloatsPrintWithEnoughDigitsToTellThemApart) {
  EXPECT_EQ(round_trip(ValueKind::kF64, "0.1"), "0.1");
  EXPECT_EQ(round_trip(ValueKind::kF32, "0.1"), "0.1");
  EXPECT_EQ(round_trip(ValueKind::kF64, "-inf"), "-inf");
  EXPECT_EQ(round_trip(ValueKind::kF64, "nan"), "nan");
  EXPECT_EQ(round_trip(ValueKind::kF64, "-0.0"), "-0");
  EXPECT_EQ(round_trip(ValueKind::kF64, "0x1p-1074"), "5e-324");
}

TEST(Values, ReferencesAreNullOrTheHostsHandle) {
  EXPECT_EQ(round_trip(ValueKind::kFuncRef, "null"), "null");
  EXPECT_EQ(round_trip(ValueKind::kFuncRef, "1"), "refused");
  EXPECT_EQ(round_trip(ValueKind::kExternRef, "0"), "0");
  EXPECT_EQ(round_trip(ValueKind::kExternRef, "null"), "null");
}

TEST(Arguments, AreCheckedAgainstTheType) {
  const FunctionType type{{ValueKind::kI32, ValueKind::kF64}, {ValueKind::kI64}};
  EXPECT_EQ(type_text(type), "(i32, f64) -> i64");
  const std::vector<std::string> good{"1", "2.5"}, few{"1"}, wrong{"1", "two"};
  EXPECT_TRUE(parse_arguments("f", type, good));
  EXPECT_THAT(parse_arguments("f", type, few).error().message,
              HasSubstr("f takes 2 arguments (i32, f64) -> i64, 1 given"));
  EXPECT_THAT(parse_arguments("f", type, wrong).error().message,
              HasSubstr("argument 2 of f: 'two' is no f64"));
}

}  // namespace
}  // namespace hindsight::cli
