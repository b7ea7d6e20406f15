// LWP counting: exact in total, right about branches, invisible to the program.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class LwpTest : public BaselineTest {
 protected:
  static constexpr const char* kLoop = R"((module
    (func (export "sum") (param i32) (result i32) (local i32)
      (loop
        local.get 1 local.get 0 i32.add local.set 1
        local.get 0 i32.const 1 i32.sub local.tee 0
        br_if 0)
      local.get 1)
    (func (export "if") (param i32) (result i32)
      local.get 0 if (result i32) i32.const 1 else i32.const 2 i32.const 3 i32.add end)
    (func (export "table") (param i32) (result i32)
      (block (block (block local.get 0 br_table 0 1 2) i32.const 10 return) i32.const 20 return) i32.const 30)
    (func $callee (param i32) (result i32) local.get 0)
    (func (export "call") (param i32) (result i32) local.get 0 call $callee i32.const 1 i32.add)
    (func (export "back") (param i32) (result i32)
      (block (loop local.get 0 i32.eqz br_if 1 local.get 0 i32.const 1 i32.sub local.set 0 br 0))
      local.get 0)
    (func (export "floats") (param f64 i32) (result f64) (local f64)
      (loop
        local.get 2 local.get 0 f64.add local.set 2
        local.get 0 f64.const 0.5 f64.add local.tee 0
        f64.const 8 f64.lt br_if 0)
      local.get 2 local.get 1 f64.convert_i32_s f64.add)))";

  struct Counts {
    int64_t instructions, branches;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  Counts count(TestInstance& instance, std::string_view name, std::vector<Value> args) {
    const int32_t i = instance.thread().lwp_instructions;
    const int32_t b = instance.thread().lwp_branches;
    instance.call(name, std::move(args));
    return {i - instance.thread().lwp_instructions, b - instance.thread().lwp_branches};
  }
};

TEST_F(LwpTest, InstructionsAndBranchesAreCountedExactly) {
  auto instance = instantiate(kLoop);
  EXPECT_EQ(count(*instance, "sum", {i32(10)}), (Counts{10 * 9 + 1, 10}));
  EXPECT_EQ(count(*instance, "if", {i32(1)}), (Counts{3, 1}));
  EXPECT_EQ(count(*instance, "if", {i32(0)}), (Counts{5, 1}));
  EXPECT_EQ(count(*instance, "table", {i32(1)}), (Counts{4, 1}));
  EXPECT_EQ(count(*instance, "table", {i32(5)}), (Counts{3, 1}));
  EXPECT_EQ(count(*instance, "call", {i32(5)}), (Counts{5, 0}));
  // Three rounds and the exit: br_if four times, br three times.
  EXPECT_EQ(count(*instance, "back", {i32(3)}), (Counts{3 * 8 + 3 + 1, 7}));
}

TEST_F(LwpTest, RecordsOfEveryEventLeaveTheProgramAlone) {
  auto quiet = instantiate(kLoop);
  auto loud = instantiate(kLoop, {.instruction_period = 1, .branch_period = 1});
  loud->thread().lwp_instructions = 0;
  loud->thread().lwp_branches = 0;
  for (const char* name : {"sum", "if", "table", "call", "back"}) {
    for (const uint32_t n : {1u, 2u, 17u})
      EXPECT_EQ(loud->call(name, {i32(n)}), quiet->call(name, {i32(n)})) << name;
  }
  EXPECT_EQ(loud->call("floats", {f64(0.25), i32(3)}), quiet->call("floats", {f64(0.25), i32(3)}));
  EXPECT_GT(loud->branch_records.size(), 50u);
  EXPECT_GT(loud->instruction_records, 50u);
}

TEST_F(LwpTest, BranchRecordsSayWhetherAndWhere) {
  auto instance = instantiate(kLoop, {.branch_period = 1});
  instance->thread().lwp_branches = 0;
  instance->call("sum", {i32(3)});
  ASSERT_EQ(instance->branch_records.size(), 3u);
  EXPECT_EQ(instance->branch_records[0].taken, 1u);
  EXPECT_EQ(instance->branch_records[1].taken, 1u);
  EXPECT_EQ(instance->branch_records[2].taken, 0u);
  EXPECT_EQ(instance->branch_records[0].target, instance->branch_records[1].target);
  EXPECT_NE(instance->branch_records[0].target, instance->branch_records[2].target);
  const WasmOffset loop = instance->module().bodies[0].loops[0].offset;
  // The pc is that of the br_if, which ends the loop: 15 bytes of operators behind the loop's two.
  const auto pc = wasm_offset(0, instance->branch_records[0].pc, true);
  ASSERT_TRUE(pc);
  EXPECT_EQ(instance->module().bytes[pc->value], 0x0d);
  const auto target = wasm_offset(0, instance->branch_records[0].target, false);
  EXPECT_EQ(target, loop);

  instance->branch_records.clear();
  instance->call("if", {i32(1)});
  instance->call("if", {i32(0)});
  ASSERT_EQ(instance->branch_records.size(), 2u);
  EXPECT_EQ(instance->branch_records[0].taken, 1u);
  EXPECT_EQ(instance->branch_records[1].taken, 0u);
  EXPECT_NE(instance->branch_records[0].target, instance->branch_records[1].target);

  instance->branch_records.clear();
  instance->call("table", {i32(0)});
  instance->call("table", {i32(1)});
  ASSERT_EQ(instance->branch_records.size(), 2u);
  EXPECT_EQ(instance->branch_records[0].taken, 1u);
  EXPECT_NE(instance->branch_records[0].target, instance->branch_records[1].target);
}

TEST_F(LwpTest, CodeWithoutCountingTouchesNoCounter) {
  compile_options_.lwp_counting = false;
  auto instance = instantiate(kLoop);
  EXPECT_EQ(count(*instance, "sum", {i32(10)}), (Counts{0, 0}));
}

}  // namespace
}  // namespace hindsight::jit::testing
