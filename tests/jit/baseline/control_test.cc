// Blocks, branches, multi-value, and what happens to locals and operands around them.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class ControlTest : public BaselineTest {};

TEST_F(ControlTest, LoopsCountAndCarryLocals) {
  auto instance = instantiate(R"((module
    (func (export "sum") (param i32) (result i64) (local i64)
      (block (loop
        local.get 0 i32.eqz br_if 1
        local.get 1 local.get 0 i64.extend_i32_u i64.add local.set 1
        local.get 0 i32.const 1 i32.sub local.set 0
        br 0))
      local.get 1)))");
  EXPECT_EQ(instance->call("sum", {i32(0)}), returns({i64(0)}));
  EXPECT_EQ(instance->call("sum", {i32(100000)}), returns({i64(5000050000)}));
}

TEST_F(ControlTest, OperandsThatNameALocalKeepItsOldValueWhenItChanges) {
  auto instance = instantiate(R"((module
    (func (export "post") (param i32) (result i32 i32)
      local.get 0
      local.get 0 i32.const 1 i32.add local.set 0
      local.get 0)
    (func (export "many") (param f64) (result f64)
      local.get 0 local.get 0 local.get 0 f64.const 10 local.tee 0
      f64.add f64.add f64.add local.get 0 f64.mul)
    (func (export "swap") (param i32 i32) (result i32 i32)
      local.get 0 local.get 1 local.set 0 local.set 1 local.get 0 local.get 1)))");
  EXPECT_EQ(instance->call("post", {i32(41)}), returns({i32(41), i32(42)}));
  EXPECT_EQ(instance->call("many", {f64(1)}), returns({f64(130)}));
  EXPECT_EQ(instance->call("swap", {i32(1), i32(2)}), returns({i32(2), i32(1)}));
}

TEST_F(ControlTest, CachedLocalsAreForgottenWhereTwoPathsDisagree) {
  auto instance = instantiate(R"((module
    (func (export "f") (param i32 i32) (result i32)
      local.get 1 drop
      local.get 0
      if
        i32.const 5 local.get 1 i32.add local.set 1
      else
        local.get 1 i32.const 100 i32.mul local.set 1
      end
      local.get 1 local.get 0 i32.add)
    (func (export "g") (param i32 i32) (result i32)
      (block
        local.get 1 local.get 0 i32.add local.set 1
        local.get 0 br_if 0
        local.get 1 i32.const 7 i32.mul local.set 1)
      local.get 1)))");
  EXPECT_EQ(instance->call("f", {i32(1), i32(2)}), returns({i32(8)}));
  EXPECT_EQ(instance->call("f", {i32(0), i32(2)}), returns({i32(200)}));
  EXPECT_EQ(instance->call("g", {i32(1), i32(2)}), returns({i32(3)}));
  EXPECT_EQ(instance->call("g", {i32(0), i32(2)}), returns({i32(14)}));
}

TEST_F(ControlTest, BlocksTakeAndGiveSeveralValues) {
  auto instance = instantiate(R"((module
    (func (export "if") (param i32 i64 f64) (result i64 f64)
      local.get 1 local.get 2 local.get 0
      if (param i64 f64) (result i64 f64)
        f64.const 2 f64.mul
      else
        drop i64.const 1 i64.add f64.const 9
      end)
    (func (export "loop") (param i32) (result i32)
      i32.const 0 local.get 0
      loop (param i32 i32) (result i32)
        local.set 0
        local.get 0 i32.add
        local.get 0 i32.const 1 i32.sub local.tee 0
        local.get 0 br_if 0
        drop
      end)
    (func (export "deep") (param i32) (result i32 i32)
      (block (result i32 i32)
        i32.const 11 i32.const 22 i32.const 33 i32.const 44
        local.get 0 br_if 0
        i32.add i32.add i32.add i32.const 5))
    (func (export "br") (param i32) (result i32)
      (block (result i32)
        i32.const 1 i32.const 2 i32.const 3
        (block (result i32) i32.const 7 local.get 0 br_if 1 drop i32.const 8 br 1)
        drop drop drop drop i32.const 9))
    (func (export "ret") (param i32) (result i32 f32 i64)
      local.get 0 if i32.const 1 f32.const 2 i64.const 3 return end
      i32.const 4 f32.const 5 i64.const 6)))");
  EXPECT_EQ(instance->call("if", {i32(1), i64(5), f64(1.5)}), returns({i64(5), f64(3)}));
  EXPECT_EQ(instance->call("if", {i32(0), i64(5), f64(1.5)}), returns({i64(6), f64(9)}));
  EXPECT_EQ(instance->call("loop", {i32(10)}), returns({i32(55)}));
  EXPECT_EQ(instance->call("deep", {i32(1)}), returns({i32(33), i32(44)}));
  EXPECT_EQ(instance->call("deep", {i32(0)}), returns({i32(110), i32(5)}));
  EXPECT_EQ(instance->call("br", {i32(1)}), returns({i32(7)}));
  EXPECT_EQ(instance->call("br", {i32(0)}), returns({i32(8)}));
  EXPECT_EQ(instance->call("ret", {i32(1)}), returns({i32(1), f32(2), i64(3)}));
  EXPECT_EQ(instance->call("ret", {i32(0)}), returns({i32(4), f32(5), i64(6)}));
}

TEST_F(ControlTest, ConditionalReturnsLeaveTheOperandsOfTheOtherPathAlone) {
  auto instance = instantiate(R"((module
    (func (export "f") (param i32 i32) (result i32)
      local.get 1 i32.const 3 i32.mul
      local.get 1 i32.const 5 i32.mul
      local.get 0 br_if 0
      i32.add)))");
  EXPECT_EQ(instance->call("f", {i32(1), i32(2)}), returns({i32(10)}));
  EXPECT_EQ(instance->call("f", {i32(0), i32(2)}), returns({i32(16)}));
}

TEST_F(ControlTest, BranchTablesReachEveryTargetAndTheDefault) {
  auto instance = instantiate(R"((module
    (func (export "f") (param i32) (result i32)
      (block (result i32)
        i32.const 100
        (block (result i32)
          i32.const 200
          (block (result i32)
            i32.const 10
            local.get 0
            br_table 0 1 2 3 0 2)
          i32.const 1 i32.add i32.add br 1)
        i32.const 2 i32.add i32.add br 0)
      i32.const 3 i32.add)
    (func (export "empty") (param i32) (result i32)
      (block (block local.get 0 br_table 1) i32.const 1 return) i32.const 2)
    (func (export "loop") (param i32) (result i32) (local i32)
      (block (loop
        local.get 1 i32.const 1 i32.add local.set 1
        local.get 0 i32.const 1 i32.sub local.tee 0
        br_table 1 0 0 0 0 1)) local.get 1)))");
  EXPECT_EQ(instance->call("f", {i32(0)}), returns({i32(214)}));
  EXPECT_EQ(instance->call("f", {i32(1)}), returns({i32(115)}));
  EXPECT_EQ(instance->call("f", {i32(2)}), returns({i32(13)}));
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({i32(10)}));
  EXPECT_EQ(instance->call("f", {i32(4)}), returns({i32(214)}));
  EXPECT_EQ(instance->call("f", {i32(5)}), returns({i32(13)}));
  EXPECT_EQ(instance->call("f", {i32(~0u)}), returns({i32(13)}));
  EXPECT_EQ(instance->call("empty", {i32(77)}), returns({i32(2)}));
  EXPECT_EQ(instance->call("loop", {i32(5)}), returns({i32(5)}));
  EXPECT_EQ(instance->call("loop", {i32(50)}), returns({i32(1)}));
}

TEST_F(ControlTest, CodeThatCannotBeReachedIsSkipped) {
  auto instance = instantiate(R"((module
    (func (export "f") (result i32)
      (block (result i32)
        i32.const 3 br 0
        (loop (if (i32.const 1) (then unreachable) (else (br 1))))
        i32.add drop)
      (block br 0 (block unreachable) drop)
      return
      (loop br 0))
    (func (export "trap") unreachable)))");
  EXPECT_EQ(instance->call("f"), returns({i32(3)}));
  EXPECT_EQ(instance->call("trap"), traps(TrapCode::kUnreachable));
}

TEST_F(ControlTest, MoreOperandsThanRegistersSpillAndComeBack) {
  std::string body, adds;
  for (int i = 0; i < 40; ++i) {
    body += "local.get 0 i32.const " + std::to_string(i) + " i32.mul local.get 1 f64.const " +
            std::to_string(i) + " f64.mul ";
    adds += i == 0 ? "" : "";
  }
  // The stack is i f i f ...: fold it from the top through two locals.
  for (int i = 0; i < 40; ++i) adds += "local.get 3 f64.add local.set 3 local.get 2 i32.add local.set 2 ";
  auto instance =
      instantiate("(module (func (export \"f\") (param i32 f64) (result i32 f64) (local i32 f64)" + body +
                  adds + "local.get 2 local.get 3))");
  EXPECT_EQ(instance->call("f", {i32(3), f64(0.5)}), returns({i32(2340), f64(390)}));
}

TEST_F(ControlTest, TrapsAreAttributedToTheirInstruction) {
  auto instance = instantiate(R"((module
    (func (export "div") (param i32 i32) (result i32)
      local.get 0 local.get 1 i32.add
      local.get 1 i32.div_u
      unreachable)))");
  EXPECT_EQ(instance->call("div", {i32(1), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  const uint32_t begin = instance->module().bodies[0].begin.value;
  EXPECT_EQ(wasm_offset(0, instance->trap_pc, true), WasmOffset(begin + 7));
  EXPECT_EQ(instance->call("div", {i32(1), i32(1)}), traps(TrapCode::kUnreachable));
  EXPECT_EQ(wasm_offset(0, instance->trap_pc, true), WasmOffset(begin + 8));
}

}  // namespace
}  // namespace hindsight::jit::testing
