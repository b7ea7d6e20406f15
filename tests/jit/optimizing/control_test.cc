#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

TEST(OptimizedControl, ReturnsAConstant) {
  Optimized m(R"((module (func (export "f") (result i32) i32.const 42)))");
  EXPECT_EQ(m.call("f"), returns({i32(42)}));
}

TEST(OptimizedControl, LoopsSum) {
  Optimized m(R"((module (func (export "sum") (param i32) (result i64) (local i64)
    (loop $again
      (local.set 1 (i64.add (local.get 1) (i64.extend_i32_u (local.get 0))))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    local.get 1)))");
  EXPECT_EQ(m.call("sum", {i32(100)}), returns({i64(5050)}));
}

TEST(OptimizedControl, BlocksCarryValuesAndParameters) {
  Optimized m(R"((module
    (func (export "f") (param i32) (result i32 i32)
      i32.const 1 i32.const 2
      (block (param i32 i32) (result i32 i32)
        (br_if 0 (local.get 0))
        i32.add i32.const 10)
      (if (param i32 i32) (result i32 i32) (i32.eq (local.get 0) (i32.const 2))
        (then i32.const 100 i32.add)
        (else)))))");
  EXPECT_EQ(m.call("f", {i32(0)}), returns({i32(3), i32(10)}));
  EXPECT_EQ(m.call("f", {i32(1)}), returns({i32(1), i32(2)}));
  EXPECT_EQ(m.call("f", {i32(2)}), returns({i32(1), i32(102)}));
}

TEST(OptimizedControl, BranchTablesChooseOrDefault) {
  Optimized m(R"((module (func (export "f") (param i32) (result i32)
    (block $a (result i32) (block $b (result i32) (block $c (result i32)
      i32.const 7
      (br_table $c $b $b $a $c (local.get 0)))
      i32.const 1 i32.add return)
     i32.const 2 i32.add return)
    i32.const 3 i32.add)))");
  EXPECT_EQ(m.call("f", {i32(0)}), returns({i32(8)}));
  EXPECT_EQ(m.call("f", {i32(1)}), returns({i32(9)}));
  EXPECT_EQ(m.call("f", {i32(2)}), returns({i32(9)}));
  EXPECT_EQ(m.call("f", {i32(3)}), returns({i32(10)}));
  EXPECT_EQ(m.call("f", {i32(4)}), returns({i32(8)}));
  EXPECT_EQ(m.call("f", {i32(0xffffffff)}), returns({i32(8)}));
}

TEST(OptimizedControl, DeadCodeIsSkipped) {
  Optimized m(R"((module (func (export "f") (param i32) (result i32)
    (block (result i32)
      (br 0 (i32.const 5))
      (loop (block (if (i32.const 1) (then (br 1)) (else unreachable))))
      i32.add drop drop i32.const 0)
    (if (result i32) (local.get 0) (then (return (i32.const 9)) (i32.const 1)) (else (i32.const 2)))
    i32.add)))");
  EXPECT_EQ(m.call("f", {i32(0)}), returns({i32(7)}));
  EXPECT_EQ(m.call("f", {i32(1)}), returns({i32(9)}));
}

TEST(OptimizedControl, LoopsHaveParameters) {
  Optimized m(R"((module (func (export "f") (param i32) (result i32)
    i32.const 1
    (loop $l (param i32) (result i32)
      local.get 0 i32.mul
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $l (local.get 0))))))");
  EXPECT_EQ(m.call("f", {i32(5)}), returns({i32(120)}));
}

TEST(OptimizedControl, DeepNestingNeedsNoRecursion) {
  std::string wat = "(module (func (export \"f\") (param i32) (result i32)\n";
  constexpr int kDepth = 3000;
  for (int i = 0; i < kDepth; ++i) wat += "block\n";
  wat += "local.get 0 br_if " + std::to_string(kDepth - 1) + "\n";
  for (int i = 0; i < kDepth; ++i) wat += "end\n";
  wat += "i32.const 3))";
  Optimized m(wat);
  EXPECT_EQ(m.call("f", {i32(1)}), returns({i32(3)}));
}

constexpr const char* kCalls = R"((module
  (import "env" "twice" (func $twice (param i32) (result i32)))
  (type $binary (func (param i32 i32) (result i32)))
  (table funcref (elem $add $sub $swap $big))
  (global $calls (mut i32) (i32.const 0))
  (func $add (type $binary) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $binary) (i32.sub (local.get 0) (local.get 1)))
  (func $swap (param i32 i64 f32) (result f32 i64 i32) local.get 2 local.get 1 local.get 0)
  (func $big (type $binary) (local i32)
    (loop $l (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (local.set 2 (i32.add (local.get 2) (local.get 1)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 2))
  (func (export "host") (param i32) (result i32) (call $twice (i32.add (local.get 0) (i32.const 1))))
  (func (export "multi") (param i32 i64 f32) (result f32 i64 i32) (call $swap (local.get 0) (local.get 1) (local.get 2)))
  (func (export "direct") (param i32 i32) (result i32) (call $big (local.get 0) (call $add (local.get 1) (i32.const 1))))
  (func (export "indirect") (param i32 i32 i32) (result i32)
    (call_indirect (type $binary) (local.get 1) (local.get 2) (local.get 0)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $runaway (export "runaway") (call $runaway))
  (func $a (export "mutual") (call $b))
  (func $b (call $a))
  (func (export "calls") (result i32) (global.get $calls))))";

TestInstance::Options with_twice() {
  TestInstance::Options options;
  options.host["env.twice"] = [](TestInstance&, uint64_t* slots) {
    slots[0] = static_cast<uint32_t>(2 * slots[0]);
    return true;
  };
  return options;
}

TEST(OptimizedCalls, ReachHostsFunctionsTablesAndThemselves) {
  Optimized m(kCalls, {}, with_twice());
  EXPECT_EQ(m.call("host", {i32(20)}), returns({i32(42)}));
  EXPECT_EQ(m.call("multi", {i32(1), i64(2), f32(3)}), returns({f32(3), i64(2), i32(1)}));
  EXPECT_EQ(m.call("direct", {i32(10), i32(4)}), returns({i32(50)}));
  EXPECT_EQ(m.call("calls"), returns({i32(10)}));
  EXPECT_EQ(m.call("indirect", {i32(1), i32(10), i32(4)}), returns({i32(6)}));
  EXPECT_EQ(m.call("fib", {i32(15)}), returns({i32(610)}));
}

TEST(OptimizedCalls, IndirectCallsCheckIndexNullAndType) {
  Optimized m(kCalls, {}, with_twice());
  EXPECT_EQ(m.call("indirect", {i32(4), i32(1), i32(1)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(m.call("indirect", {i32(0xffffffff), i32(1), i32(1)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(m.call("indirect", {i32(2), i32(1), i32(1)}), traps(TrapCode::kIndirectCallTypeMismatch));
  m.instance->table(0).elements[1] = nullptr;
  EXPECT_EQ(m.call("indirect", {i32(1), i32(1), i32(1)}), traps(TrapCode::kUninitializedElement));
}

TEST(OptimizedCalls, RunawayRecursionExhaustsTheStack) {
  Optimized m(kCalls, {}, with_twice());
  EXPECT_EQ(m.call("runaway"), traps(TrapCode::kStackExhausted));
  EXPECT_EQ(m.call("mutual"), traps(TrapCode::kStackExhausted));
}

TEST(OptimizedCalls, SmallCalleesAreInlinedAndListed) {
  Optimized m(kCalls, {}, with_twice());
  const CodeVersion* version = m.compile("direct");
  ASSERT_NE(version, nullptr);
  ASSERT_EQ(version->inlined.size(), 2u);
  EXPECT_EQ(m.module->function_name(version->inlined[0]), "add");
  EXPECT_EQ(m.module->function_name(version->inlined[1]), "big");
  ASSERT_EQ(version->pc_map.inline_sites().size(), 2u);
  EXPECT_EQ(version->pc_map.inline_sites()[0].caller_site, kNoInlineSite);
  OptimizeRequest plain;
  plain.tuning.inline_functions = false;
  Optimized without(kCalls, plain, with_twice());
  EXPECT_TRUE(without.compile("direct")->inlined.empty());
  EXPECT_EQ(without.call("direct", {i32(10), i32(4)}), returns({i32(50)}));
}

TEST(OptimizedCalls, BulkAndTableOperatorsReachTheRuntime) {
  Optimized m(R"((module (memory 1 3) (table $t 4 10 funcref) (data $d "hello")
    (elem $e func $f $f) (func $f)
    (func (export "init") (result i32) (memory.init $d (i32.const 8) (i32.const 1) (i32.const 4)) (data.drop $d)
      (memory.copy (i32.const 100) (i32.const 8) (i32.const 4)) (memory.fill (i32.const 101) (i32.const 0x61) (i32.const 2))
      (i32.load (i32.const 100)))
    (func (export "grow") (param i32) (result i32 i32) (memory.grow (local.get 0)) (memory.size))
    (func (export "tables") (result i32 i32 i32 i32)
      (table.init $t $e (i32.const 1) (i32.const 0) (i32.const 2)) (elem.drop $e)
      (table.copy (i32.const 2) (i32.const 1) (i32.const 2))
      (table.set $t (i32.const 0) (ref.func $f))
      (ref.is_null (table.get $t (i32.const 3)))
      (table.grow $t (ref.null func) (i32.const 2)) (table.size $t)
      (ref.is_null (table.get $t (i32.const 5))))
    (func (export "far") (memory.fill (i32.const 65530) (i32.const 0) (i32.const 10)))))");
  EXPECT_EQ(m.call("init"), returns({i32(0x6f616165)}));
  EXPECT_EQ(m.call("grow", {i32(2)}), returns({i32(1), i32(3)}));
  EXPECT_EQ(m.call("grow", {i32(1)}), returns({i32(0xffffffff), i32(3)}));
  EXPECT_EQ(m.call("tables"), returns({i32(0), i32(4), i32(6), i32(1)}));
}

// The end of a recursion is computed in front of the tests that lead to it, where they are true of nothing yet.
TEST(OptimizedControl, ARecursionThatEndsInADivisionDividesBehindItsTestAlone) {
  Optimized m(R"((module
    (func $f (export "f") (param $x i32) (param $y i32) (result i32)
      (if (local.get $y) (then (return (i32.div_u (local.get $x) (local.get $y)))))
      (if (i32.eqz (local.get $x)) (then (return (i32.const 7))))
      (i32.add (call $f (i32.sub (local.get $x) (i32.const 1)) (local.get $y))
               (call $f (i32.shr_u (local.get $x) (i32.const 1)) (i32.const 1))))))");
  EXPECT_EQ(m.call("f", {i32(10), i32(0)}), returns({i32(32)}));
  EXPECT_EQ(m.call("f", {i32(10), i32(3)}), returns({i32(3)}));
}

}  // namespace
}  // namespace hindsight::jit::testing
