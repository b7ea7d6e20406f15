// Loops made for vectors: what is made of loops as compilers unroll them, and that whatever is made of loops
// of all shapes computes what baseline code computes.
#include <algorithm>
#include <random>

#include "tests/fuzz/loop_text.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

bool has_vectors(const std::string& dump) {
  return dump.find("%ymm") != std::string::npos || dump.find("%zmm") != std::string::npos;
}

// y[i] += a * x[i], unrolled by two, with addresses that wrap and a count that only the compiler knew to be
// even.
constexpr const char* kUnrolled = R"((module (memory 1)
  (func (export "axpy") (param $a f32) (param $x i32) (param $y i32) (param $n i32)
    (loop $l
      (f32.store (local.get $y)
        (f32.add (f32.load (local.get $y)) (f32.mul (local.get $a) (f32.load (local.get $x)))))
      (f32.store (i32.add (local.get $y) (i32.const 4))
        (f32.add (f32.load (i32.add (local.get $y) (i32.const 4)))
                 (f32.mul (local.get $a) (f32.load (i32.add (local.get $x) (i32.const 4))))))
      (local.set $x (i32.add (local.get $x) (i32.const 8)))
      (local.set $y (i32.add (local.get $y) (i32.const 8)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2))))))
  (func (export "sum") (param $p i32) (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (i32.add (i32.load8_u (local.get $p)) (local.get $s))
                             (i32.load8_u (i32.add (local.get $p) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 2)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2)))))
    (local.get $s))))";

TEST(Widening, UndoesTheUnrollingOfLoopsForVectors) {
  if (optimizer().description().find("avx") == std::string::npos)
    GTEST_SKIP() << "the host has no 256-bit vectors";
  OptimizeRequest request;
  request.dump_ir = true;
  for (const char* name : {"axpy", "sum"}) {
    Optimized m(kUnrolled, request);
    m.compile(name);
    EXPECT_TRUE(has_vectors(m.dump)) << name;
  }
}

TEST(Widening, LoopsWhoseArraysOverlapComputeOneElementAfterTheOther) {
  Optimized m(kUnrolled);
  auto* floats = reinterpret_cast<float*>(m.instance->memory());
  for (const uint32_t distance : {1u, 2u, 3u, 7u, 8u, 31u, 64u}) {
    std::vector<float> expected(300);
    for (uint32_t i = 0; i < 300; ++i) floats[i] = expected[i] = static_cast<float>(i % 7);
    for (uint32_t i = 0; i < 200; ++i) expected[i + distance] += 0.5f * expected[i];
    m.call("axpy", {f32(0.5f), i32(0), i32(4 * distance), i32(200)});
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), floats)) << distance;
  }
}

TEST(Widening, IndicesThatWrapTrapAsTheyDidInOneLoop) {
  Optimized m(kUnrolled);
  EXPECT_EQ(m.call("sum", {i32(0xffffff00), i32(512)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("sum", {i32(65000), i32(65536)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("sum", {i32(0), i32(3)}), traps(TrapCode::kMemoryOutOfBounds))
      << "an odd count never ends";
}

class LoopShapes : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LoopShapes, ::testing::Range(0u, 8u));

// How many of these loops have become vectors of 256 bits.
template <typename Text>
size_t compare_with_baseline(uint32_t first_seed, uint32_t loops) {
  size_t vectorized = 0;
  for (uint32_t seed = first_seed; seed < first_seed + loops; ++seed) {
    const std::string text = Text(seed).make();
    OptimizeRequest request;
    request.dump_ir = true;
    Optimized optimized(text, request);
    const auto arena = std::move(*CodeArena::create());
    std::vector<std::unique_ptr<CodeVersion>> versions;
    TestInstance baseline(optimized.module, *arena,
                          [&](const wasm::Module& module, FuncIndex function) -> const void* {
                            auto version = compile_baseline(module, function, {}, *arena);
                            if (!version) return nullptr;
                            versions.push_back(std::move(*version));
                            return versions.back()->entry;
                          },
                          {});
    std::mt19937 random(seed);
    for (const uint32_t n : {0u, 1u, 2u, 5u, 15u, 16u, 17u, 40u, 100u, 257u}) {
      for (uint32_t byte = 0; byte < 65536; ++byte)
        optimized.instance->memory()[byte] = baseline.memory()[byte] = static_cast<uint8_t>(random());
      // Apart, a little apart, and the same.
      const uint32_t spread = n % 3 == 0 ? 12000 : n % 3 == 1 ? 4 * (random() % 64) : 0;
      std::vector<Value> arguments;
      for (uint32_t array = 0; array < 4; ++array) arguments.push_back(i32(8400 + array * spread));
      arguments.push_back(i32(n));
      EXPECT_EQ(optimized.call("f", arguments), baseline.call("f", arguments))
          << "seed " << seed << " n " << n << text;
      EXPECT_EQ(std::memcmp(optimized.instance->memory(), baseline.memory(), 65536), 0)
          << "seed " << seed << " n " << n << text;
      if (::testing::Test::HasFailure()) return vectorized;
    }
    vectorized += has_vectors(optimized.dump) ? 1 : 0;
  }
  return vectorized;
}

TEST_P(LoopShapes, ComputeWhatBaselineCodeComputes) {
  EXPECT_GT(compare_with_baseline<fuzz::LoopText>(1000 * GetParam(), 20), 0u) << "nothing was tested";
}

TEST_P(LoopShapes, OfVectorsComputeWhatBaselineCodeComputes) {
  EXPECT_GT(compare_with_baseline<fuzz::VectorLoopText>(1000 * GetParam(), 20), 0u) << "nothing was tested";
}

}  // namespace
}  // namespace hindsight::jit::testing
