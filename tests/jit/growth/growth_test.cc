// Decoding and compiling take time and memory in proportion to the module, whichever way it grows.
//
// Time is this thread's CPU time, at a size and at four times the size. Linear work takes four times as long,
// quadratic work sixteen times. Anything up to twelve counts as linear (caches, logarithms, a machine that is
// busy). A shape has three tries, so that noise does not fail it and quadratic work does.
#include <gtest/gtest.h>

#include "tests/jit/growth/measure.h"
#include "tests/sanitizers.h"

namespace hindsight::jit::testing {
namespace {

constexpr double kMostGrowth = 12;

// Heap in use at once, a byte of the module, at the largest size.
constexpr double kDecodeBytes = 130;
constexpr double kBaselineBytes = 200;
constexpr double kFixedBytes = 1 << 20;

std::string name_of(const ::testing::TestParamInfo<Shape>& info) {
  return info.param.name;
}

std::vector<Shape> shapes_for(Stage stage) {
  std::vector<Shape> some;
  for (const Shape& shape : shapes())
    if (size_of(shape, stage) != 0) some.push_back(shape);
  return some;
}

class Growth : public ::testing::TestWithParam<Shape> {
 protected:
  void expect_linear(Stage stage, double heap_bytes) {
    if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "time and memory are those of the sanitizer";
    const uint32_t n = size_of(GetParam(), stage);
    const auto small = GetParam().make(n), large = GetParam().make(4 * n);
    double least = 1e9;
    for (int attempt = 0; attempt < 3 && least > kMostGrowth; ++attempt) {
      const Measured one = measure(small, stage), four = measure(large, stage);
      ASSERT_EQ(one.error, "");
      ASSERT_EQ(four.error, "");
      // The first milliseconds are the same for every module.
      least = std::min(least, four.seconds / std::max(one.seconds, 1e-3));
      EXPECT_LT(static_cast<double>(four.peak_bytes),
                kFixedBytes + heap_bytes * static_cast<double>(four.wasm_bytes));
    }
    EXPECT_LT(least, kMostGrowth);
  }
};

class Decoding : public Growth {};
TEST_P(Decoding, TakesTimeAndMemoryInProportionToTheModule) {
  expect_linear(Stage::kDecode, kDecodeBytes);
}
INSTANTIATE_TEST_SUITE_P(Growth, Decoding, ::testing::ValuesIn(shapes_for(Stage::kDecode)), name_of);

class Baseline : public Growth {};
TEST_P(Baseline, TakesTimeAndMemoryInProportionToTheModule) {
  expect_linear(Stage::kBaseline, kBaselineBytes);
}
INSTANTIATE_TEST_SUITE_P(Growth, Baseline, ::testing::ValuesIn(shapes_for(Stage::kBaseline)), name_of);

// The passes that grow faster than the function are left out of large ones, and the largest functions are
// refused.
class Optimizing : public Growth {};
TEST_P(Optimizing, TakesSecondsAtMostHoweverLargeTheFunction) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "time and memory are those of the sanitizer";
  constexpr double kMostSeconds = 8;
  for (const uint32_t times : {1u, 4u}) {
    const Measured measured = measure(GetParam().make(times * GetParam().optimized), Stage::kOptimize, 1);
    EXPECT_LT(measured.seconds, kMostSeconds) << times;
    if (!measured.error.empty()) {
      EXPECT_NE(measured.error.find("limit"), std::string::npos) << measured.error;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Growth, Optimizing, ::testing::ValuesIn(shapes_for(Stage::kOptimize)), name_of);

}  // namespace
}  // namespace hindsight::jit::testing
