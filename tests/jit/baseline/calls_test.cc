// Calls in every direction, with arguments in registers and on the stack, and what surrounds them.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class CallsTest : public BaselineTest {};

TEST_F(CallsTest, ArgumentsTravelInRegistersAndOnTheStack) {
  // 8 integers and 10 floats: some of each go on the stack. The caller permutes them, so that moves form
  // cycles.
  const char* params = "(param i32 i64 i32 i64 i32 i64 i32 i64 f32 f64 f32 f64 f32 f64 f32 f64 f32 f64)";
  const char* results = "(result i32 i64 i32 i64 i32 i64 i32 i64 f32 f64 f32 f64 f32 f64 f32 f64 f32 f64)";
  std::string gets;
  for (int i = 0; i < 18; ++i) gets += "local.get " + std::to_string(i) + " ";
  std::string permuted;
  for (const int i : {2, 3, 4, 1, 0, 7, 6, 5, 10, 11, 8, 9, 14, 15, 16, 17, 12, 13})
    permuted += "local.get " + std::to_string(i) + " ";
  auto instance =
      instantiate("(module (func $id (export \"id\") " + std::string(params) + results + gets + ")" +
                  "(func (export \"permute\") " + params + results + permuted + " call $id)" +
                  "(func (export \"twice\") " + params + results + permuted + " call $id call $id))");
  std::vector<Value> args;
  for (uint32_t i = 0; i < 18; ++i) {
    args.push_back(i < 8 ? (i % 2 == 0 ? i32(0x80000000 + i) : i64(0x8000000000000000 + i))
                         : (i % 2 == 0 ? f32(static_cast<float>(i)) : f64(i)));
  }
  const auto permute = [](const std::vector<Value>& v) {
    std::vector<Value> out;
    for (const size_t i : {2, 3, 4, 1, 0, 7, 6, 5, 10, 11, 8, 9, 14, 15, 16, 17, 12, 13}) out.push_back(v[i]);
    return out;
  };
  EXPECT_EQ(instance->call("id", args), returns(args));
  EXPECT_EQ(instance->call("permute", args), returns(permute(args)));
  EXPECT_EQ(instance->call("twice", args), returns(permute(args)));
}

TEST_F(CallsTest, ArgumentsRotateThroughRegistersWithoutLoss) {
  auto instance = instantiate(R"((module
    (func $pack (param i32 i32 i32 i32 i32) (result i32)
      local.get 0 i32.const 10000 i32.mul local.get 1 i32.const 1000 i32.mul i32.add
      local.get 2 i32.const 100 i32.mul i32.add local.get 3 i32.const 10 i32.mul i32.add local.get 4 i32.add)
    (func (export "rotate") (param i32 i32 i32 i32 i32) (result i32)
      local.get 1 local.get 2 local.get 3 local.get 4 local.get 0 call $pack)
    (func (export "swap") (param i32 i32 i32 i32 i32) (result i32)
      local.get 1 local.get 0 local.get 2 local.get 4 local.get 3 call $pack)
    (func (export "spread") (param i32 i32 i32 i32 i32) (result i32)
      local.get 4 local.get 4 local.get 4 local.get 0 local.get 4 call $pack)))");
  const std::vector<Value> args = {i32(1), i32(2), i32(3), i32(4), i32(5)};
  EXPECT_EQ(instance->call("rotate", args), returns({i32(23451)}));
  EXPECT_EQ(instance->call("swap", args), returns({i32(21354)}));
  EXPECT_EQ(instance->call("spread", args), returns({i32(55515)}));
}

TEST_F(CallsTest, OperandsAndLocalsSurviveCalls) {
  auto instance = instantiate(R"((module
    (func $clobber (param i32) (result i32) (local f64)
      f64.const 1 local.set 1 local.get 0 i32.const 1 i32.add)
    (func $fib (export "fib") (param i32) (result i32)
      local.get 0 i32.const 2 i32.lt_u if (result i32) local.get 0 else
      local.get 0 i32.const 1 i32.sub call $fib local.get 0 i32.const 2 i32.sub call $fib i32.add end)
    (func (export "mix") (param i32 f64) (result f64)
      local.get 0 i32.const 3 i32.mul
      local.get 1 f64.const 2 f64.mul
      local.get 0 call $clobber f64.convert_i32_s
      f64.add
      local.set 1
      f64.convert_i32_s local.get 1 f64.mul)))");
  EXPECT_EQ(instance->call("fib", {i32(20)}), returns({i32(6765)}));
  EXPECT_EQ(instance->call("mix", {i32(4), f64(1.5)}), returns({f64(96)}));
}

TEST_F(CallsTest, IndirectCallsCheckBoundsNullAndType) {
  auto instance = instantiate(R"((module
    (type $ii (func (param i32) (result i32)))
    (import "host" "negate" (func $negate (param i32) (result i32)))
    (table 5 funcref) (table $second 1 funcref)
    (elem (i32.const 0) $double $negate $other)
    (elem (table $second) (i32.const 0) func $double)
    (func $double (param i32) (result i32) local.get 0 i32.const 2 i32.mul)
    (func $other (param i64) (result i32) i32.const 0)
    (func (export "call") (param i32 i32) (result i32) local.get 1 local.get 0 call_indirect (type $ii))
    (func (export "second") (param i32) (result i32) local.get 0 i32.const 0 call_indirect $second (type $ii))))",
                              {.host = {{"host.negate", [](TestInstance&, uint64_t* slots) {
                                           EXPECT_EQ(slots[0] >> 32, 0u);
                                           slots[0] = static_cast<uint32_t>(-static_cast<int32_t>(slots[0]));
                                           return true;
                                         }}}});
  EXPECT_EQ(instance->call("call", {i32(0), i32(21)}), returns({i32(42)}));
  EXPECT_EQ(instance->call("call", {i32(1), i32(21)}), returns({i32(static_cast<uint32_t>(-21))}));
  EXPECT_EQ(instance->call("call", {i32(2), i32(21)}), traps(TrapCode::kIndirectCallTypeMismatch));
  EXPECT_EQ(instance->call("call", {i32(3), i32(21)}), traps(TrapCode::kUninitializedElement));
  EXPECT_EQ(instance->call("call", {i32(5), i32(21)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(instance->call("call", {i32(~0u), i32(21)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(instance->call("second", {i32(21)}), returns({i32(42)}));
}

TEST_F(CallsTest, HostFunctionsGetAndGiveEveryTypeAndMayFailOrReenter) {
  uint64_t seen[4] = {};
  TestInstance::Options options;
  options.host["h.all"] = [&](TestInstance&, uint64_t* slots) {
    std::copy_n(slots, 4, seen);
    slots[0] = 0x1111111122222222;  // the i32 result's upper half must not matter
    slots[1] = ~0ull;
    slots[2] = 0x7fa00001;
    slots[3] = 0xfff4000000000001;
    return true;
  };
  options.host["h.fail"] = [](TestInstance&, uint64_t*) { return false; };
  options.host["h.reenter"] = [](TestInstance& instance, uint64_t* slots) {
    const Outcome inner = instance.call("trap");
    EXPECT_EQ(inner, traps(TrapCode::kUnreachable));
    instance.thread().pending_trap = TrapCode::kNone;
    slots[0] = instance.call("seven").results[0].bits;
    return true;
  };
  auto instance = instantiate(R"((module
    (import "h" "all" (func $all (param i32 i64 f32 f64) (result i32 i64 f32 f64)))
    (import "h" "fail" (func $fail))
    (import "h" "reenter" (func $reenter (result i32)))
    (func (export "all") (param i32 i64 f32 f64) (result i32 i64 f32 f64)
      local.get 0 local.get 1 local.get 2 local.get 3 call $all)
    (func (export "fail") call $fail)
    (func (export "trap") unreachable)
    (func (export "seven") (result i32) i32.const 7)
    (func (export "reenter") (result i32) i32.const 1 call $reenter i32.add)))",
                              options);
  EXPECT_EQ(instance->call("all", {i32(0xffffffff), i64(5), f32_bits(0xffa00001), f64(2.5)}),
            returns({i32(0x22222222), i64(~0ull), f32_bits(0x7fa00001), f64_bits(0xfff4000000000001)}));
  EXPECT_EQ(seen[0], 0xffffffffu);
  EXPECT_EQ(seen[1], 5u);
  EXPECT_EQ(seen[2], 0xffa00001u);
  EXPECT_EQ(seen[3], std::bit_cast<uint64_t>(2.5));
  EXPECT_EQ(instance->call("fail"), traps(TrapCode::kHostError));
  EXPECT_EQ(instance->call("reenter"), returns({i32(8)}));
}

TEST_F(CallsTest, GlobalsOwnAndImported) {
  auto instance =
      instantiate(R"((module
    (import "g" "const" (global $c f64)) (import "g" "var" (global $v (mut i32)))
    (global $own (mut i64) (i64.const 5)) (global $copy f64 (global.get $c)) (global $f (mut f32) (f32.const 1.5))
    (func (export "f") (param i32 i64) (result i32 i64 f64 f64 f32)
      global.get $v local.get 0 i32.add global.set $v
      global.get $own local.get 1 i64.add global.set $own
      global.get $f f32.const 2 f32.mul global.set $f
      global.get $v global.get $own global.get $c global.get $copy global.get $f)))",
                  {.imported_globals = {{"g.const", std::bit_cast<uint64_t>(3.25)}, {"g.var", 10}}});
  EXPECT_EQ(instance->call("f", {i32(1), i64(2)}), returns({i32(11), i64(7), f64(3.25), f64(3.25), f32(3)}));
  EXPECT_EQ(instance->call("f", {i32(1), i64(2)}), returns({i32(12), i64(9), f64(3.25), f64(3.25), f32(6)}));
}

TEST_F(CallsTest, ReferencesAndTables) {
  auto instance = instantiate(R"((module
    (table $t 2 10 externref) (table $f 2 funcref) (elem $e func $a $b) (elem declare func $a)
    (func $a) (func $b)
    (func (export "set") (param i32 externref) local.get 0 local.get 1 table.set $t)
    (func (export "get") (param i32) (result externref) local.get 0 table.get $t)
    (func (export "size") (result i32) table.size $t)
    (func (export "grow") (param externref i32) (result i32) local.get 0 local.get 1 table.grow $t)
    (func (export "fill") (param i32 externref i32) local.get 0 local.get 1 local.get 2 table.fill $t)
    (func (export "copy") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 table.copy $t $t)
    (func (export "init") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 table.init $f $e)
    (func (export "drop") elem.drop $e)
    (func (export "is_null") (param i32) (result i32) local.get 0 table.get $f ref.is_null)
    (func (export "func_null") (result i32) ref.func $a ref.is_null)
    (func (export "null") (result i32) ref.null extern ref.is_null)))");
  EXPECT_EQ(instance->call("size"), returns({i32(2)}));
  EXPECT_EQ(instance->call("set", {i32(1), externref(77)}), returns({}));
  EXPECT_EQ(instance->call("get", {i32(1)}), returns({externref(77)}));
  EXPECT_EQ(instance->call("get", {i32(2)}), traps(TrapCode::kTableOutOfBounds));
  EXPECT_EQ(instance->call("grow", {externref(5), i32(3)}), returns({i32(2)}));
  EXPECT_EQ(instance->call("grow", {externref(5), i32(30)}), returns({i32(~0u)}));
  EXPECT_EQ(instance->call("get", {i32(4)}), returns({externref(5)}));
  EXPECT_EQ(instance->call("fill", {i32(0), externref(9), i32(2)}), returns({}));
  EXPECT_EQ(instance->call("copy", {i32(3), i32(0), i32(2)}), returns({}));
  EXPECT_EQ(instance->call("get", {i32(4)}), returns({externref(9)}));
  EXPECT_EQ(instance->call("copy", {i32(4), i32(0), i32(2)}), traps(TrapCode::kTableOutOfBounds));
  EXPECT_EQ(instance->call("is_null", {i32(0)}), returns({i32(1)}));
  EXPECT_EQ(instance->call("init", {i32(0), i32(1), i32(1)}), returns({}));
  EXPECT_EQ(instance->call("is_null", {i32(0)}), returns({i32(0)}));
  EXPECT_EQ(instance->table(1).elements[0], &func_refs(instance->context())[1]);
  EXPECT_EQ(instance->call("drop"), returns({}));
  EXPECT_EQ(instance->call("init", {i32(0), i32(1), i32(1)}), traps(TrapCode::kTableOutOfBounds));
  EXPECT_EQ(instance->call("func_null"), returns({i32(0)}));
  EXPECT_EQ(instance->call("null"), returns({i32(1)}));
}

TEST_F(CallsTest, EndlessRecursionEndsInTheStackTrapAndTheInstanceGoesOn) {
  auto instance = instantiate(R"((module
    (func $deep (export "deep") (param i32 f64) (result i32)
      local.get 0 i32.const 1 i32.add local.get 1 call $deep i32.const 1 i32.add)
    (func (export "fine") (result i32) i32.const 1)))");
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(instance->call("deep", {i32(0), f64(0)}), traps(TrapCode::kStackExhausted));
    ASSERT_EQ(instance->call("fine"), returns({i32(1)}));
  }
  EXPECT_EQ(instance->thread().entry_sp.load(), 0u);
}

TEST_F(CallsTest, HugeFramesAreCheckedAndZeroed) {
  std::string locals;
  for (int i = 0; i < 20000; ++i) locals += " i64";
  auto instance = instantiate(
      "(module (func $big (export \"big\") (param i32) (result i64) (local" + locals +
          ") i64.const 9 local.set 7 local.get 0 if local.get 0 i32.const 1 i32.sub call $big drop end "
          "local.get 1 local.get 20000 i64.add local.get 10000 i64.add i64.const 5 local.set 20000 i64.const "
          "6 "
          "local.set 10000 i64.const 7 local.set 1))",
      {.stack_bytes = 400 << 10});
  EXPECT_EQ(instance->call("big", {i32(0)}), returns({i64(0)}));
  EXPECT_EQ(instance->call("big", {i32(1)}), returns({i64(0)}));
  EXPECT_EQ(instance->call("big", {i32(2)}), traps(TrapCode::kStackExhausted));
}

TEST_F(CallsTest, ASpuriousStackCheckKeepsTheArguments) {
  auto instance = instantiate(R"((module
    (import "h" "interrupt" (func $interrupt))
    (func $f (param i32 i64 f32 f64 i32) (result f64)
      local.get 0 f64.convert_i32_s local.get 1 f64.convert_i64_s f64.add local.get 2 f64.promote_f32 f64.add
      local.get 3 f64.add local.get 4 f64.convert_i32_s f64.add)
    (func (export "f") (param i32) (result f64)
      call $interrupt
      i32.const 1 i64.const 20 f32.const 300 f64.const 4000 local.get 0 call $f)))",
                              {.host = {{"h.interrupt", [](TestInstance& i, uint64_t*) {
                                           i.thread().stack_limit = ~uint64_t{0};
                                           return true;
                                         }}}});
  ASSERT_TRUE(instance);
  instance->on_stack_check = [&] { instance->thread().stack_limit = 0; };
  EXPECT_EQ(instance->call("f", {i32(50000)}), returns({f64(54321)}));
  EXPECT_EQ(instance->stack_checks, 1u);
}

}  // namespace
}  // namespace hindsight::jit::testing
