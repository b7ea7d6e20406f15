// Tail calls within and between the tiers, and accesses with 64-bit indices. The same guests run with
// every function compiled by one tier, by the other, and by the two in turn.
#include "jit/baseline/baseline_compiler.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

enum class Tiers { kBaseline, kOptimized, kOddOptimized, kEvenOptimized };

class BetweenTiers : public ::testing::TestWithParam<Tiers> {
 protected:
  std::unique_ptr<TestInstance> instantiate(std::string_view wat, TestInstance::Options options = {},
                                            BoundsChecks bounds = BoundsChecks::kGuardPages) {
    versions_.clear();  // before the arena that they are in
    arena_ = std::move(*CodeArena::create());
    auto module = TestInstance::module_of(wat);
    if (!module) return nullptr;
    return std::make_unique<TestInstance>(
        module, *arena_,
        [this, module, bounds](const wasm::Module&, FuncIndex function) {
          return compile(module, function, bounds);
        },
        std::move(options));
  }

  const void* compile(const std::shared_ptr<const wasm::Module>& module, FuncIndex function,
                      BoundsChecks bounds) {
    const bool odd = function.value % 2 != 0;
    const bool optimized = GetParam() == Tiers::kOptimized || (GetParam() == Tiers::kOddOptimized && odd) ||
                           (GetParam() == Tiers::kEvenOptimized && !odd);
    if (optimized) {
      OptimizeRequest request;
      request.module = module;
      request.function = function;
      request.options.bounds = bounds;
      request.tuning.inline_functions = inline_;
      auto result = optimizer().compile(request, *arena_);
      EXPECT_TRUE(result) << result.error().describe();
      if (!result) return nullptr;
      versions_.push_back(std::move(result->version));
    } else {
      CompileOptions options;
      options.bounds = bounds;
      auto version = compile_baseline(*module, function, options, *arena_);
      EXPECT_TRUE(version) << version.error().describe();
      if (!version) return nullptr;
      versions_.push_back(std::move(*version));
    }
    return versions_.back()->entry;
  }

  bool inline_ = true;
  std::unique_ptr<CodeArena> arena_;
  std::vector<std::unique_ptr<CodeVersion>> versions_;
};
INSTANTIATE_TEST_SUITE_P(All, BetweenTiers,
                         ::testing::Values(Tiers::kBaseline, Tiers::kOptimized, Tiers::kOddOptimized,
                                           Tiers::kEvenOptimized));

constexpr const char* kTailCalls = R"((module
  (type $step (func (param i64) (result i64)))
  (import "h" "sum" (func $sum (param i32 i64 i32 i64 i32 i64 f32 i32) (result i64)))
  (table funcref (elem $even $odd))
  (func $even (export "even") (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 1))))
    (return_call_indirect (type $step) (i64.sub (local.get 0) (i64.const 1)) (i32.const 1)))
  (func $odd (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 0))))
    (return_call $even (i64.sub (local.get 0) (i64.const 1))))
  (func $few (export "few") (param i32) (result f64)
    (if (i32.eqz (local.get 0)) (then (return (f64.const 0.5))))
    (return_call $many (i32.const 1) (i64.const 2) (i32.const 3) (i64.const 4) (i32.const 5) (i64.const 6)
      (local.get 0) (f32.const 1) (f64.const 2) (f32.const 3) (f64.const 4) (f32.const 5) (f64.const 6)
      (f32.const 7) (f64.const 8) (f32.const 9) (f64.const 10)))
  (func $many (param i32 i64 i32 i64 i32 i64 i32 f32 f64 f32 f64 f32 f64 f32 f64 f32 f64) (result f64)
    (local $sum f64)
    (local.set $sum (f64.add (f64.promote_f32 (local.get 15)) (local.get 16)))
    (local.set $sum (f64.add (local.get $sum) (f64.convert_i64_s (local.get 5))))
    (local.set $sum (f64.add (local.get $sum) (f64.promote_f32 (local.get 7))))
    (local.set $sum (f64.add (local.get $sum) (f64.convert_i32_u (local.get 4))))
    (if (f64.ne (local.get $sum) (f64.const 31)) (then unreachable))
    (return_call $few (i32.sub (local.get 6) (i32.const 1))))
  (func $swap (export "swap") (param i32 i32 i32) (result i32) (local $fresh i32)
    (if (local.get $fresh) (then unreachable))
    (local.set $fresh (i32.const 1))
    (if (i32.eqz (local.get 2)) (then (return (i32.add (i32.mul (local.get 0) (i32.const 10)) (local.get 1)))))
    (return_call $swap (local.get 1) (local.get 0) (i32.sub (local.get 2) (i32.const 1))))
  (func $two (export "two") (param i64) (result i64 f32)
    (if (result i64 f32) (i64.eqz (local.get 0))
      (then (i64.const 7) (f32.const 1.5))
      (else (return_call $two (i64.sub (local.get 0) (i64.const 1))))))
  (func (export "host") (param i32) (result i64)
    (return_call $sum (i32.const 1) (i64.const 2) (i32.const 3) (i64.const 4) (i32.const 5) (i64.const 6)
      (f32.const 7.5) (local.get 0)))
  (func (export "wrong") (param i32) (result i64)
    (return_call_indirect (type $step) (i64.const 1) (local.get 0)))
  (func $inner (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 3))))
    (return_call $inner (i64.sub (local.get 0) (i64.const 1))))
  (func (export "between") (param i64) (result i64)
    (i64.add (call $inner (local.get 0)) (call $inner (i64.const 2)))))
)";

TEST_P(BetweenTiers, TailCallsTakeNoStackAndDeliverTheirArguments) {
  const TestInstance::Options options{
      .host = {{"h.sum",
                [](TestInstance&, uint64_t* slots) {
                  float f;
                  std::memcpy(&f, slots + 6, 4);
                  slots[0] = slots[0] + slots[1] + slots[2] + slots[3] + slots[4] + slots[5] +
                             static_cast<uint64_t>(2 * f) + 1000 * static_cast<uint32_t>(slots[7]);
                  return true;
                }}},
      .stack_bytes = 64 << 10};
  for (const bool inlining : {true, false}) {
    inline_ = inlining;
    auto instance = instantiate(kTailCalls, options);
    ASSERT_TRUE(instance);
    EXPECT_EQ(instance->call("even", {i64(200000)}), returns({i64(1)}));
    EXPECT_EQ(instance->call("even", {i64(200001)}), returns({i64(0)}));
    EXPECT_EQ(instance->call("few", {i32(100000)}), returns({f64(0.5)}));
    EXPECT_EQ(instance->call("swap", {i32(1), i32(2), i32(100000)}), returns({i32(12)}));
    EXPECT_EQ(instance->call("swap", {i32(1), i32(2), i32(100001)}), returns({i32(21)}));
    EXPECT_EQ(instance->call("two", {i64(100000)}), returns({i64(7), f32(1.5)}));
    EXPECT_EQ(instance->call("host", {i32(9)}), returns({i64(9036)}));
    EXPECT_EQ(instance->call("wrong", {i32(2)}), traps(TrapCode::kUndefinedElement));
    EXPECT_EQ(instance->call("between", {i64(100000)}), returns({i64(6)}));
  }
}

TEST_P(BetweenTiers, IndicesOfSixtyFourBitsDoNotWrap) {
  constexpr const char* kMemory = R"((module (memory i64 1)
    (data (i64.const 65528) "\01\02\03\04\05\06\07\08")
    (func (export "load") (param i64) (result i64) (i64.load (local.get 0)))
    (func (export "load_8") (param i64) (result i64) (i64.load offset=8 (local.get 0)))
    (func (export "load_far") (param i64) (result i64) (i64.load offset=0xfffffff0 (local.get 0)))
    (func (export "store") (param i64 i32) (i64.store8 offset=1 (local.get 0) (i64.extend_i32_u (local.get 1))))
    (func (export "constant") (result i64) (i64.load offset=8 (i64.const 65520)))
    (func (export "size") (result i64) (memory.size))))";
  constexpr uint64_t kValue = 0x0807060504030201;
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    auto instance = instantiate(kMemory, {}, bounds);
    ASSERT_TRUE(instance);
    const Outcome out = traps(TrapCode::kMemoryOutOfBounds);
    EXPECT_EQ(instance->call("load", {i64(65528)}), returns({i64(kValue)}));
    EXPECT_EQ(instance->call("load_8", {i64(65520)}), returns({i64(kValue)}));
    EXPECT_EQ(instance->call("constant"), returns({i64(kValue)}));
    EXPECT_EQ(instance->call("size"), returns({i64(1)}));
    for (const uint64_t at : {uint64_t{65529}, uint64_t{1} << 32, (uint64_t{1} << 32) + 8, uint64_t{1} << 40,
                              uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{7}, ~uint64_t{8}})
      EXPECT_EQ(instance->call("load", {i64(at)}), out) << std::hex << at;
    EXPECT_EQ(instance->call("load_8", {i64(~uint64_t{7})}), out);
    EXPECT_EQ(instance->call("load_far", {i64(0)}), out);
    EXPECT_EQ(instance->call("load_far", {i64(0 - uint64_t{0xfffffff0})}), out);
    EXPECT_EQ(instance->call("store", {i64(~uint64_t{0}), i32(1)}), out);
    EXPECT_EQ(instance->call("store", {i64(99), i32(77)}), returns({}));
    EXPECT_EQ(instance->memory()[100], 77);
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
