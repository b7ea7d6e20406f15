#include "runtime/cli/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hindsight::cli {
namespace {

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

TEST(Values, VectorsAreWrittenLaneByLaneAndPrintedAsWords) {
  const auto words = [](const char* text) { return round_trip(ValueKind::kV128, text); };
  EXPECT_EQ(words("i32x4:1,-1,0x10,4294967295"), "i32x4:0x00000001,0xffffffff,0x00000010,0xffffffff");
  EXPECT_EQ(words("i8x16:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,-1"),
            "i32x4:0x03020100,0x07060504,0x0b0a0908,0xff0e0d0c");
  EXPECT_EQ(words("i16x8:1,2,3,4,5,6,7,65535"), "i32x4:0x00020001,0x00040003,0x00060005,0xffff0007");
  EXPECT_EQ(words("i64x2:-2,1"), "i32x4:0xfffffffe,0xffffffff,0x00000001,0x00000000");
  EXPECT_EQ(words("f32x4:1,-0.0,inf,2.5"), "i32x4:0x3f800000,0x80000000,0x7f800000,0x40200000");
  EXPECT_EQ(words("f64x2:1,-2"), "i32x4:0x00000000,0x3ff00000,0x00000000,0xc0000000");
  EXPECT_EQ(words("0x000000040000000300000002fffffff1"), "i32x4:0xfffffff1,0x00000002,0x00000003,0x00000004");
  for (const char* text : {"", "1", "i32x4:1,2,3", "i32x4:1,2,3,4,5", "i32x4:1,2,3,x", "i8x16:256",
                           "f32x4:1,2,3,", "0x12", "i32x2:1,2"}) {
    EXPECT_EQ(words(text), "refused") << text;
  }
}

TEST(Arguments, AreCheckedAgainstTheType) {
  const FunctionType type{{ValueKind::kI32, ValueKind::kF64}, {ValueKind::kI64}};
  EXPECT_EQ(type_text(type), "(i32, f64) -> i64");
  const std::vector<std::string> good{"1", "2.5"}, few{"1"}, wrong{"1", "two"};
  EXPECT_TRUE(parse_arguments("f", type, good));
  EXPECT_EQ(parse_arguments("f", type, few).error().message,
            "f takes 2 arguments (i32, f64) -> i64, 1 given");
  EXPECT_EQ(parse_arguments("f", type, wrong).error().message,
            "argument 2 of f: 'two' is no f64; write a number such as 1.5, 2e-3, inf or nan");
}

}  // namespace
}  // namespace hindsight::cli
