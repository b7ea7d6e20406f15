// LWP counting: exact in total, right about branches, invisible to the program.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/jit/baseline/baseline_support.h"
#include "tests/jit/typed_module.h"

namespace hindsight::jit::testing {
namespace {

struct ValueRecord {
  uint32_t wasm_offset;
  uint64_t value;
  uint32_t site_flags;
  const void* pc;
};
std::vector<ValueRecord> value_records;  // of the running test; builtins have no room for its address

// Leaves no caller-saved register as it was.
inline void clobber() {
  asm volatile(
      "movq $-0x5a5a5a5b, %%rax\n movq %%rax, %%rcx\n movq %%rax, %%rdx\n movq %%rax, %%rsi\n"
      "movq %%rax, %%rdi\n movq %%rax, %%r8\n movq %%rax, %%r9\n movq %%rax, %%r10\n movq %%rax, %%r11\n"
      "movq %%rax, %%xmm0\n movq %%rax, %%xmm1\n movq %%rax, %%xmm2\n movq %%rax, %%xmm3\n"
      "movq %%rax, %%xmm4\n movq %%rax, %%xmm5\n movq %%rax, %%xmm6\n movq %%rax, %%xmm7\n"
      "movq %%rax, %%xmm8\n movq %%rax, %%xmm9\n movq %%rax, %%xmm10\n movq %%rax, %%xmm11\n"
      "movq %%rax, %%xmm12\n movq %%rax, %%xmm13\n movq %%rax, %%xmm14\n movq %%rax, %%xmm15" ::
          : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
            "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
            "xmm15", "memory");
}

// These re-arm their counter, so that the next event fires too.
void record_value_and_clobber(VmContext* context, const void* pc, uint32_t wasm_offset, uint64_t value,
                              uint32_t site_flags) {
  value_records.push_back({wasm_offset, value, site_flags, pc});
  context->thread->lwp_values = 0;
  clobber();
}
void instructions_and_clobber(VmContext* context, const void*) {
  context->thread->lwp_instructions = 0;
  clobber();
}
void branch_and_clobber(VmContext* context, const void*, uint32_t, const void*) {
  context->thread->lwp_branches = 0;
  clobber();
}

class LwpTest : public BaselineTest {
 protected:
  void SetUp() override {
    BaselineTest::SetUp();
    compile_options_.lwp_instructions = true;
  }

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

  static constexpr const char* kValues = R"((module
    (memory 1)
    (data $bytes "0123456789")
    (type $unary (func (param i32) (result i32)))
    (table 3 funcref)
    (elem (i32.const 0) $double $square)
    (func $double (type $unary) local.get 0 i32.const 2 i32.mul)
    (func $square (type $unary) local.get 0 local.get 0 i32.mul)
    (func (export "indirect") (param i32 i32) (result i32)
      local.get 0 local.get 1 call_indirect (type $unary))
    (func (export "div_s") (param i32 i32) (result i32) local.get 0 local.get 1 i32.div_s)
    (func (export "div_u") (param i32 i32) (result i32) local.get 0 local.get 1 i32.div_u)
    (func (export "rem_s") (param i32 i32) (result i32) local.get 0 local.get 1 i32.rem_s)
    (func (export "rem_u") (param i32 i32) (result i32) local.get 0 local.get 1 i32.rem_u)
    (func (export "div_s64") (param i64 i64) (result i64) local.get 0 local.get 1 i64.div_s)
    (func (export "rem_u64") (param i64 i64) (result i64) local.get 0 local.get 1 i64.rem_u)
    (func (export "by_constant") (param i32) (result i32) local.get 0 i32.const 7 i32.div_u)
    (func (export "copy") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 memory.copy)
    (func (export "fill") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 memory.fill)
    (func (export "fill_8") (param i32 i32) local.get 0 local.get 1 i32.const 8 memory.fill)
    (func (export "init") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 memory.init $bytes)
    (func (export "load") (param i32) (result i32) local.get 0 i32.load8_u)
    ;; Operands of every kind below, above and beside the samples, in more registers than there are.
    (func (export "crowded") (param i32 i32 f64) (result f64) (local i32)
      local.get 0 i32.const 3 i32.add            ;; stays an operand to the end
      local.get 2 f64.const 0.5 f64.mul          ;; so does this
      local.get 0 i32.const 5 i32.mul
      local.get 0 i32.const 6 i32.mul
      local.get 0 i32.const 7 i32.mul
      local.get 0 i32.const 8 i32.mul
      local.get 0 i32.const 9 i32.mul
      local.get 0 i32.const 10 i32.mul
      local.get 0 i32.const 11 i32.mul
      local.get 1 i32.const 1 i32.add i32.div_s  ;; divisor in a register
      i32.add
      local.get 1 i32.rem_u                      ;; divisor a local
      i32.add
      local.get 0 i32.const 1 i32.and            ;; index in a register
      call_indirect (type $unary)
      local.get 1 i32.div_u
      i32.add
      local.set 3
      i32.add i32.add
      local.get 3 i32.xor
      i32.const 64 local.get 3 local.get 1 i32.const 2 i32.mul memory.fill
      i32.const 64 i32.load8_u i32.add
      f64.convert_i32_s f64.add
      local.set 2
      f64.convert_i32_s local.get 2 f64.add)))";

  std::unique_ptr<TestInstance> instantiate_sampling(const char* wat) {
    return instantiate_sampling(TestInstance::module_of(wat));
  }
  std::unique_ptr<TestInstance> instantiate_sampling(std::shared_ptr<const wasm::Module> module) {
    auto instance = instantiate(std::move(module));
    value_records.clear();
    instance->builtins().lwp_value_sampled = record_value_and_clobber;
    instance->thread().lwp_values = 0;
    instance->thread().lwp_branches = INT32_MAX;
    return instance;
  }
  // Calls, and expects one record of the only value site of the function: `opcode` lies at its offset.
  void expect_record(TestInstance& instance, std::string_view name, std::vector<Value> args, uint8_t opcode,
                     uint64_t value, uint32_t site_flags) {
    SCOPED_TRACE(name);
    value_records.clear();
    instance.call(name, std::move(args));
    ASSERT_EQ(value_records.size(), 1u);
    const ValueRecord& record = value_records[0];
    EXPECT_EQ(record.value, value);
    EXPECT_EQ(record.site_flags, site_flags);
    EXPECT_EQ(instance.module().bytes[record.wasm_offset], opcode);
    bool mapped = false;  // by the version that made the record, to the same instruction
    for (const auto& [function, version] : versions_)
      if (const auto at = wasm_offset(function, record.pc, true)) mapped = at->value == record.wasm_offset;
    EXPECT_TRUE(mapped);
  }

  struct Counts {
    int64_t instructions, branches;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  Counts count(TestInstance& instance, std::string_view name, std::vector<Value> args) {
    instance.thread().lwp_branches = INT32_MAX;
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

// Rows of $n iterations with two ifs and a way out, and an if for each row.
constexpr const char* kRows = R"((module (func (export "rows") (param $m i32) (param $n i32) (result i32)
  (local $k i32) (local $sum i32)
  (block $out
    (loop $rows
      (local.set $k (local.get $n))
      (if (i32.and (local.get $m) (i32.const 1)) (then (local.set $sum (i32.add (local.get $sum) (i32.const 100)))))
      (loop $row
        (if (i32.and (local.get $k) (i32.const 1)) (then (local.set $sum (i32.add (local.get $sum) (i32.const 1)))))
        (if (i32.and (local.get $k) (i32.const 2)) (then (local.set $sum (i32.add (local.get $sum) (i32.const 10)))))
        (br_if $out (i32.eq (local.get $k) (i32.const 1000)))
        (br_if $row (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1))))))
  (local.get $sum))))";

TEST_F(LwpTest, EntriesAndBackEdgesCountForTheBranchesThatFollowWhereInstructionsAreNotCounted) {
  compile_options_.lwp_instructions = false;
  auto instance = instantiate(kLoop);
  EXPECT_EQ(count(*instance, "sum", {i32(10)}), (Counts{0, 1 + 2 * 10}));
  EXPECT_EQ(count(*instance, "if", {i32(1)}), (Counts{0, 1}));
  EXPECT_EQ(count(*instance, "table", {i32(1)}), (Counts{0, 1}));
  EXPECT_EQ(count(*instance, "call", {i32(5)}), (Counts{0, 0})) << "neither of the two has a branch";
  EXPECT_EQ(count(*instance, "back", {i32(3)}), (Counts{0, 1 + 2 * 3}));
  auto rows = instantiate(kRows);
  // An outer loop's back edge counts for itself and half of the one branch of its own.
  EXPECT_EQ(count(*rows, "rows", {i32(3), i32(8)}), (Counts{0, 1 + 3 * (8 * 2 + 1)}));
  auto ifs = instantiate(R"((module (func (export "ifs") (param i32) (result i32)
    (if (i32.and (local.get 0) (i32.const 1)) (then (return (i32.const 1))))
    (if (i32.and (local.get 0) (i32.const 2)) (then (return (i32.const 2))))
    (if (i32.and (local.get 0) (i32.const 4)) (then (return (i32.const 3))))
    (local.get 0))))");
  EXPECT_EQ(count(*ifs, "ifs", {i32(8)}), (Counts{0, 2})) << "half of three, rounded up";
  EXPECT_EQ(count(*ifs, "ifs", {i32(1)}), (Counts{0, 2})) << "whichever way it goes";
}

// Operands of every kind are alive at every kind of branch: in registers, in slots, as locals that a register caches.
constexpr const char* kBranches = R"((module
  (memory 1)
  (func $even (param i32) (result i32)
    (if (result i32) (i32.and (local.get 0) (i32.const 1)) (then (i32.const 3)) (else (i32.const 5))))
  (func (export "f") (param $a i32) (param $b i64) (param $c f64) (result f64)
    (local $i i32) (local $v v128) (local $sum i64)
    (local.set $i (local.get $a))
    (local.set $v (i64x2.splat (local.get $b)))
    (block $out
      (loop $outer
        ;; A value below a block's, and another in a register, while branches come and go.
        (local.set $sum (i64.add (i64.mul (local.get $b) (i64.const 3))
          (if (result i64) (i32.and (local.get $i) (i32.const 1))
            (then (i64.add (local.get $sum) (i64.extend_i32_u (call $even (local.get $i)))))
            (else (i64.xor (local.get $sum) (local.get $b))))))
        (block $three (block $two (block $one
          (br_table $one $two $three $three (i32.rem_u (local.get $i) (i32.const 4))))
          (local.set $c (f64.add (local.get $c) (f64.const 1.25))))
          (local.set $v (i64x2.add (local.get $v) (i64x2.splat (local.get $sum)))))
        (local.set $a (i32.const 5))
        (loop $inner
          (local.set $sum (i64.add (local.get $sum)
            (select (i64.const 7) (local.get $b) (i32.gt_u (local.get $a) (i32.const 2)))))
          (i32.store8 (local.get $a) (i32.wrap_i64 (local.get $sum)))
          (br_if $out (i64.eq (local.get $sum) (i64.const -1)))
          (br_if $inner (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))
        (local.set $i (i32.sub (local.get $i) (i32.const 1)))
        (br_if $out (i32.eqz (local.get $i)))
        (br $outer)))
    (f64.add (local.get $c) (f64.add (f64.convert_i64_s (local.get $sum))
      (f64.add (f64.convert_i64_s (i64x2.extract_lane 1 (local.get $v)))
        (f64.convert_i32_u (i32.load8_u (i32.const 3)))))))))";

TEST_F(LwpTest, CodeGoesOverToTheBodyThatRecordsAndBackAtEveryBranch) {
  compile_options_.lwp_counting = false;
  const std::vector<Value> arguments = {i32(9), i64(0x123456789), f64(0.5)};
  const auto expected = instantiate(kBranches)->call("f", arguments);
  ASSERT_EQ(expected.trap, TrapCode::kNone);
  compile_options_.lwp_counting = true;
  compile_options_.lwp_instructions = false;
  size_t most = 0;
  for (const int32_t period : {1, 2, 3, 4, 7, 11, 30}) {
    for (int32_t start = -1; start < 150; ++start) {
      auto instance = instantiate(kBranches, {.branch_period = period});
      instance->thread().lwp_branches = start;
      EXPECT_EQ(instance->call("f", arguments), expected) << "from " << start << " by " << period;
      most = std::max(most, instance->branch_records.size());
    }
  }
  EXPECT_GT(most, 50u);
}

TEST_F(LwpTest, ParametersAreWhereTheyWereInTheBodyThatRecords) {
  compile_options_.lwp_instructions = false;
  auto instance = instantiate(R"((module
    (func $other (param f64 i64 i32 f32) (result i32) (i32.add (local.get 2) (i32.const 100)))
    (func (export "f") (param $a i32) (param $b f64) (param $c i64) (result f64)
      (if (local.get $a) (then (local.set $c (i64.add (local.get $c) (i64.const 1)))))
      (f64.add (f64.add (local.get $b) (f64.convert_i64_s (local.get $c)))
        (f64.convert_i32_s (call $other (f64.const 1) (i64.const 2) (local.get $a) (f32.const 4)))))))");
  for (const int32_t counter : {-1, 1000}) {
    instance->thread().lwp_branches = counter;
    EXPECT_EQ(instance->call("f", {i32(7), f64(0.5), i64(30)}), returns({f64(0.5 + 31 + 107)})) << counter;
  }
}

TEST_F(LwpTest, EveryBranchComesByWhileTheCounterIsNegative) {
  compile_options_.lwp_instructions = false;
  auto instance = instantiate(kRows, {.branch_period = 0});
  instance->thread().lwp_branches = 1000;
  EXPECT_EQ(instance->call("rows", {i32(3), i32(8)}), returns({i32(2 * 100 + 3 * (4 + 4 * 10))}));
  EXPECT_TRUE(instance->branch_records.empty());
  instance->thread().lwp_branches = -1;
  EXPECT_EQ(instance->call("rows", {i32(3), i32(8)}), returns({i32(2 * 100 + 3 * (4 + 4 * 10))}));
  EXPECT_EQ(instance->branch_records.size(), 3u * (8 * 4 + 2));
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
  // The pc is that of the br_if, which ends the loop: 15 bytes of operators after the loop's two.
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

// The record is made before the comparison, from its machine code: it says what the comparison does then.
TEST_F(LwpTest, BranchRecordsForeseeEveryKindOfComparison) {
  struct Kind {
    std::string type, test;  // of the two operands
    std::vector<Value> values;
  };
  std::vector<Kind> kinds;
  const std::vector<Value> words = {i32(0),         i32(1),         i32(5),  i32(-1),
                                    i32(INT32_MIN), i32(INT32_MAX), i32(300)};
  const std::vector<Value> longs = {i64(0),         i64(1),         i64(-1),
                                    i64(INT64_MIN), i64(INT64_MAX), i64(int64_t{1} << 32)};
  const std::vector<Value> floats = {f32(0), f32(-0.0f), f32(1.5f), f32(-2), f32(NAN), f32(INFINITY)};
  const std::vector<Value> doubles = {f64(0), f64(-0.0), f64(1.5), f64(-2), f64(NAN), f64(-INFINITY)};
  for (const char* test : {"eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"}) {
    kinds.push_back({"i32", std::string("i32.") + test, words});
    kinds.push_back({"i64", std::string("i64.") + test, longs});
  }
  for (const char* test : {"eq", "ne", "lt", "gt", "le", "ge"}) {
    kinds.push_back({"f32", std::string("f32.") + test, floats});
    kinds.push_back({"f64", std::string("f64.") + test, doubles});
  }
  int variants = 0;
  for (const Kind& kind : kinds) {
    const std::string& t = kind.type;
    const bool wide_constants = t == "i32" || t == "i64";
    // Operands in registers, in frame slots, constants of one and of four bytes, and zero.
    std::vector<std::pair<std::string, std::string>> operands = {
        {"(local.get 0)", "(local.get 1)"},
        {"(block (result " + t + ") (br 0 (local.get 0)))",
         "(block (result " + t + ") (br 0 (local.get 1)))"},
        {"(local.get 0)", "(" + t + ".const 5)"},
        {"(" + t + ".const 0)", "(local.get 1)"}};
    if (wide_constants) operands.push_back({"(local.get 0)", "(" + t + ".const 300)"});
    for (const auto& [a, b] : operands) {
      const std::string compare = "(" + kind.test + " " + a + " " + b + ")";
      const std::string head = "(param " + t + " " + t + ") (result i32) ";
      const std::string wat = "(module (func (export \"if\") " + head + "(if (result i32) " + compare +
                              " (then (i32.const 1)) (else (i32.const 0))))" + "(func (export \"br\") " +
                              head + "(block (br_if 0 " + compare +
                              ") (return (i32.const 0))) (i32.const 1))" + "(func (export \"not\") " + head +
                              "(block (br_if 0 (i32.eqz " + compare +
                              ")) (return (i32.const 0))) (i32.const 1)))";
      auto instance = instantiate(wat.c_str(), {.branch_period = 1});
      instance->thread().lwp_branches = 0;
      for (const char* name : {"if", "br", "not"})
        for (const Value& x : kind.values)
          for (const Value& y : kind.values) {
            instance->branch_records.clear();
            const Outcome outcome = instance->call(name, {x, y});
            ASSERT_EQ(instance->branch_records.size(), 1u);
            EXPECT_EQ(outcome, returns({i32(instance->branch_records[0].taken)})) << name << " " << compare;
          }
      ++variants;
    }
  }
  EXPECT_EQ(variants, 20 * 5 + 12 * 4);
  // Vectors are tested as a whole.
  auto vectors = instantiate(R"((module
    (func (export "any") (param v128) (result i32) (if (result i32) (v128.any_true (local.get 0)) (then (i32.const 1)) (else (i32.const 0))))
    (func (export "all") (param v128) (result i32) (if (result i32) (i32x4.all_true (local.get 0)) (then (i32.const 1)) (else (i32.const 0))))))",
                             {.branch_period = 1});
  vectors->thread().lwp_branches = 0;
  for (const char* name : {"any", "all"})
    for (const Value& x :
         {v128(0, 0), v128(1, 0), v128(0, uint64_t{1} << 63), v128(0x100000001, 0x100000001)}) {
      vectors->branch_records.clear();
      const Outcome outcome = vectors->call(name, {x});
      ASSERT_EQ(vectors->branch_records.size(), 1u);
      EXPECT_EQ(outcome, returns({i32(vectors->branch_records[0].taken)})) << name;
    }
}

TEST_F(LwpTest, CodeWithoutCountingTouchesNoCounter) {
  compile_options_.lwp_counting = false;
  auto instance = instantiate(kLoop);
  EXPECT_EQ(count(*instance, "sum", {i32(10)}), (Counts{0, 0}));
}

TEST_F(LwpTest, AValueRecordSaysWhichTableIndexWasCalled) {
  auto instance = instantiate_sampling(kValues);
  expect_record(*instance, "indirect", {i32(5), i32(0)}, 0x11, 0, kValueSiteCallIndirect);
  expect_record(*instance, "indirect", {i32(5), i32(1)}, 0x11, 1, kValueSiteCallIndirect);
}

TEST_F(LwpTest, AValueRecordSaysWhichFunctionAReferenceCalled) {
  auto instance = instantiate_sampling(typed_module(R"((module
    (type $op (func (param i32 i64) (result i64)))
    (elem declare func $first $second)
    (func $first (type $op) (i64.const 1))
    (func $second (type $op) (i64.add (i64.extend_i32_u (local.get 0)) (local.get 1)))
    (func (export "ref") (param i32 i64) (result i64)
      (call_ref $op (local.get 0) (local.get 1) (if (result (ref $op)) (local.get 0)
        (then (ref.func $second)) (else (ref.func $first)))))))"));
  expect_record(*instance, "ref", {i32(7), i64(8)}, 0x14, 1, kValueSiteCallRef);
  expect_record(*instance, "ref", {i32(0), i64(8)}, 0x14, 0, kValueSiteCallRef);
  // The arguments outlive the record.
  EXPECT_EQ(instance->call("ref", {i32(7), i64(8)}), returns({i64(15)}));
}

TEST_F(LwpTest, BranchRecordsSayWhetherAReferenceWasNull) {
  auto instance = instantiate(typed_module(R"((module
    (type $op (func (result i32)))
    (elem declare func $f)
    (func $f (type $op) (i32.const 6))
    (func $pick (param i32) (result (ref null $op))
      (select (result (ref null $op)) (ref.func $f) (ref.null $op) (local.get 0)))
    (func (export "on_null") (param i32) (result i32)
      (block $null (return (call_ref $op (br_on_null $null (call $pick (local.get 0)))))) (i32.const 5))
    (func (export "on_non_null") (param i32) (result i32)
      (call_ref $op (block $some (result (ref $op))
        (br_on_non_null $some (call $pick (local.get 0))) (return (i32.const 5)))))))"),
                              {.branch_period = 1});
  instance->thread().lwp_branches = 0;
  for (const char* name : {"on_null", "on_non_null"}) {
    for (const uint32_t which : {0u, 1u}) {
      instance->branch_records.clear();
      EXPECT_EQ(instance->call(name, {i32(which)}), returns({i32(which == 0 ? 5 : 6)}));
      ASSERT_EQ(instance->branch_records.size(), 1u) << name;
      EXPECT_EQ(instance->branch_records[0].taken, (which == 0) == (std::string_view(name) == "on_null"))
          << name;
    }
  }
}

TEST_F(LwpTest, AValueRecordSaysByWhatWasDivided) {
  auto instance = instantiate_sampling(kValues);
  expect_record(*instance, "div_s", {i32(100), i32(7)}, 0x6d, 7, kValueSiteDivisor);
  expect_record(*instance, "div_u", {i32(100), i32(9)}, 0x6e, 9, kValueSiteDivisor);
  expect_record(*instance, "rem_s", {i32(100), i32(11)}, 0x6f, 11, kValueSiteDivisor);
  expect_record(*instance, "rem_u", {i32(100), i32(13)}, 0x70, 13, kValueSiteDivisor);
  // An i32 is zero-extended, an i64 is whole.
  expect_record(*instance, "rem_s", {i32(100), i32(0xffffffff)}, 0x6f, 0xffffffff, kValueSiteDivisor);
  expect_record(*instance, "div_s64", {i64(100), i64(0x123456789a)}, 0x7f, 0x123456789a, kValueSiteDivisor);
  expect_record(*instance, "rem_u64", {i64(100), i64(~uint64_t{0})}, 0x82, ~uint64_t{0}, kValueSiteDivisor);
}

TEST_F(LwpTest, AValueRecordSaysHowManyBytesWereMoved) {
  auto instance = instantiate_sampling(kValues);
  expect_record(*instance, "fill", {i32(16), i32(0x61), i32(40)}, 0xfc, 40, kValueSiteByteCount);
  expect_record(*instance, "copy", {i32(100), i32(16), i32(24)}, 0xfc, 24, kValueSiteByteCount);
  expect_record(*instance, "init", {i32(200), i32(2), i32(6)}, 0xfc, 6, kValueSiteByteCount);
  expect_record(*instance, "fill_8", {i32(300), i32(0x62)}, 0xfc, 8, kValueSiteByteCount);
  // The bytes were moved, to the last and no further.
  for (const auto& [address, byte] : {std::pair{16u, 0x61u},
                                      {55u, 0x61u},
                                      {56u, 0u},
                                      {123u, 0x61u},
                                      {124u, 0u},
                                      {200u, 0x32u},
                                      {205u, 0x37u},
                                      {206u, 0u},
                                      {307u, 0x62u},
                                      {308u, 0u}})
    EXPECT_EQ(instance->call("load", {i32(address)}), returns({i32(byte)})) << address;
}

TEST_F(LwpTest, AValueRecordSaysWhatASelectInAnInnermostLoopChoseBy) {
  auto instance = instantiate_sampling(R"((module
    (func (export "flag") (param i32 i64) (result i64)
      (loop (result i64) local.get 1 i64.const 5 local.get 0 select))
    (func (export "less") (param i32 i32) (result i32)
      (loop (result i32) i32.const 10 i32.const 20 local.get 0 local.get 1 i32.lt_s select))
    (func (export "not_less") (param i32 i32) (result f64)
      (loop (result f64) (block (result f64)
        f64.const 10 f64.const 20 local.get 0 local.get 1 i32.lt_s i32.eqz select)))
    (func (export "equal") (param f64 f64) (result i32)
      (loop (result i32) i32.const 10 i32.const 20 local.get 0 local.get 1 f64.eq select))
    (func (export "differ") (param f64 f64) (result i32)
      (loop (result i32) i32.const 10 i32.const 20 local.get 0 local.get 1 f64.ne select))
    (func (export "typed") (param i32) (result f32)
      (loop (result f32) f32.const 1 f32.const 2 local.get 0 select (result f32)))
    (func (export "behind_a_loop") (param i32) (result i32)
      (loop nop) i32.const 10 i32.const 20 local.get 0 select)
    (func (export "around_a_loop") (param i32) (result i32)
      (loop (result i32) (block (loop nop)) i32.const 10 i32.const 20 local.get 0 select))))");
  expect_record(*instance, "flag", {i32(6), i64(9)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "flag", {i32(0), i64(9)}, 0x1b, 0, kValueSiteSelect);
  expect_record(*instance, "less", {i32(~0u), i32(0)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "less", {i32(0), i32(0)}, 0x1b, 0, kValueSiteSelect);
  expect_record(*instance, "not_less", {i32(0), i32(0)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "equal", {f64(1), f64(1)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "equal", {f64(NAN), f64(1)}, 0x1b, 0, kValueSiteSelect);
  expect_record(*instance, "differ", {f64(NAN), f64(1)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "differ", {f64(1), f64(1)}, 0x1b, 0, kValueSiteSelect);
  expect_record(*instance, "typed", {i32(1)}, 0x1c, 1, kValueSiteSelect);
  value_records.clear();
  EXPECT_EQ(instance->call("behind_a_loop", {i32(1)}), returns({i32(10)}));
  EXPECT_EQ(instance->call("around_a_loop", {i32(1)}), returns({i32(10)}));
  EXPECT_TRUE(value_records.empty());
  // It chose as it said.
  EXPECT_EQ(instance->call("flag", {i32(6), i64(9)}), returns({i64(9)}));
  EXPECT_EQ(instance->call("less", {i32(0), i32(0)}), returns({i32(20)}));
  EXPECT_EQ(instance->call("not_less", {i32(0), i32(0)}), returns({f64(10)}));
  EXPECT_EQ(instance->call("differ", {f64(NAN), f64(1)}), returns({i32(10)}));
}

TEST_F(LwpTest, SelectsOfAnInnermostLoopThatHasManyAreNotRecorded) {
  auto instance = instantiate_sampling(R"((module
    (func (export "four") (param i32) (result i32)
      (loop (result i32)
        i32.const 1 i32.const 2 local.get 0 select i32.const 3 local.get 0 select
        i32.const 4 local.get 0 select i32.const 5 local.get 0 select))
    (func (export "five") (param i32) (result i32)
      (loop (result i32)
        i32.const 1 i32.const 2 local.get 0 select i32.const 3 local.get 0 select
        i32.const 4 local.get 0 select (block (param i32) (result i32) i32.const 5 local.get 0 select)
        i32.const 6 local.get 0 select))))");
  EXPECT_EQ(instance->call("four", {i32(0)}), returns({i32(5)}));
  EXPECT_EQ(value_records.size(), 4u);
  value_records.clear();
  EXPECT_EQ(instance->call("five", {i32(0)}), returns({i32(6)}));
  EXPECT_TRUE(value_records.empty());
}

TEST_F(LwpTest, SelectsAreRecordedWhileTheCounterOfBranchesIsNegativeWhereInstructionsAreNotCounted) {
  compile_options_.lwp_instructions = false;
  auto instance = instantiate_sampling(R"((module
    (func (export "flag") (param i32 i64) (result i64)
      (loop (result i64) local.get 1 i64.const 5 local.get 0 select))))");
  EXPECT_EQ(instance->call("flag", {i32(6), i64(9)}), returns({i64(9)}));
  EXPECT_TRUE(value_records.empty());
  EXPECT_EQ(instance->thread().lwp_values, 0) << "its counter is for other values";
  instance->thread().lwp_branches = -1;
  expect_record(*instance, "flag", {i32(6), i64(9)}, 0x1b, 1, kValueSiteSelect);
  expect_record(*instance, "flag", {i32(0), i64(9)}, 0x1b, 0, kValueSiteSelect);
}

TEST_F(LwpTest, TripCountsThatBackEdgesDoNotTellAreNotRecorded) {
  compile_options_.lwp_instructions = false;
  auto instance = instantiate_sampling(R"((module
    (func $callee (param i32) (result i32) (if (local.get 0) (then (return (i32.const 1)))) (i32.const 2))
    (func (export "plain") (param $n i32) (result i32)
      (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n))
    (func (export "jumps") (param $n i32) (result i32)
      (loop $l
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (if (i32.eq (local.get $n) (i32.const 3)) (then (br $l)))
        (br_if $l (local.get $n)))
      (local.get $n))
    (func (export "calls") (param $n i32) (result i32)
      (loop $l (drop (call $callee (local.get $n))) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $n))
    (func (export "continues") (param $n i32) (result i32)
      (loop $l
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $l (i32.eq (local.get $n) (i32.const 3)))
        (br_if $l (local.get $n)))
      (local.get $n))
    (func (export "continues_the_loop_around") (param $n i32) (result i32) (local $m i32)
      (loop $rows
        (local.set $m (i32.add (local.get $m) (i32.const 1)))
        (loop $l
          (br_if $rows (i32.eq (local.get $m) (i32.const 0)))
          (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
      (local.get $n))
    (func (export "chooses") (param $n i32) (result i32)
      (loop $l
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (block (br_table 0 $l 0 (i32.eq (local.get $n) (i32.const 3))))
        (br_if $l (local.get $n)))
      (local.get $n))))");
  for (const char* name : {"plain", "jumps"}) {
    value_records.clear();
    EXPECT_EQ(instance->call(name, {i32(7)}), returns({i32(0)}));
    ASSERT_EQ(value_records.size(), 1u) << name;
    EXPECT_EQ(value_records[0].value, 7u) << name;
    EXPECT_EQ(value_records[0].site_flags, kValueSiteLoop);
  }
  for (const char* name : {"calls", "continues", "continues_the_loop_around", "chooses"}) {
    value_records.clear();
    EXPECT_EQ(instance->call(name, {i32(7)}), returns({i32(0)}));
    EXPECT_TRUE(value_records.empty()) << name;
  }
}

class LwpTripsTest : public LwpTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Instructions, LwpTripsTest, ::testing::Bool(),
                         [](const auto& counted) { return counted.param ? "AreCounted" : "AreNotCounted"; });

TEST_P(LwpTripsTest, AValueRecordSaysHowOftenAnInnermostLoopWentRound) {
  compile_options_.lwp_instructions = GetParam();
  // Rows of $n iterations, of a constant number, and of as many as it takes to leave by the middle.
  auto instance =
      instantiate_sampling(R"((module (func (export "rows") (param $m i32) (param $n i32) (result i32)
    (local $k i32) (local $sum i32)
    (loop $rows
      (local.set $k (i32.const 0))
      (loop $row (local.set $sum (i32.add (local.get $sum) (local.get $k)))
        (br_if $row (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $n))))
      (loop $fixed (br_if $fixed (i32.ne (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 100))))
      (block $found (loop $search (br_if $found (i32.eqz (local.tee $k (i32.shr_u (local.get $k) (i32.const 1))))) (br $search)))
      (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
    (local.get $sum))))");
  EXPECT_EQ(instance->call("rows", {i32(3), i32(7)}), returns({i32(63)}));
  ASSERT_EQ(value_records.size(), 3u);
  for (const ValueRecord& record : value_records) {
    EXPECT_EQ(record.value, 7u);
    EXPECT_EQ(record.site_flags, kValueSiteLoop);
    EXPECT_EQ(record.wasm_offset, value_records[0].wasm_offset);
  }
  value_records.clear();
  EXPECT_EQ(instance->call("rows", {i32(1), i32(0)}), returns({i32(0)}));
  ASSERT_EQ(value_records.size(), 1u);
  EXPECT_EQ(value_records[0].value, 1u) << "the loop asks at its end";
}

TEST_F(LwpTest, OnlyIndicesAndDivisorsThatPassedTheirChecksAreRecorded) {
  auto instance = instantiate_sampling(kValues);
  EXPECT_EQ(instance->call("div_s", {i32(1), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  EXPECT_EQ(instance->call("indirect", {i32(1), i32(3)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(instance->call("indirect", {i32(1), i32(2)}), traps(TrapCode::kUninitializedElement));
  EXPECT_EQ(instance->call("by_constant", {i32(21)}), returns({i32(3)}));  // no site at all
  EXPECT_TRUE(value_records.empty());
  EXPECT_EQ(instance->thread().lwp_values, 0);
}

TEST_F(LwpTest, ValuesAreRecordedWhenTheCounterBecomesNegative) {
  auto instance = instantiate_sampling(kValues);
  instance->thread().lwp_values = 2;
  instance->call("div_u", {i32(100), i32(3)});
  instance->call("fill", {i32(0), i32(0), i32(4)});
  EXPECT_TRUE(value_records.empty());
  EXPECT_EQ(instance->thread().lwp_values, 0);
  instance->call("div_u", {i32(100), i32(5)});
  ASSERT_EQ(value_records.size(), 1u);
  EXPECT_EQ(value_records[0].value, 5u);
}

TEST_F(LwpTest, RecordingEveryValueLeavesTheProgramAlone) {
  const auto outcomes = [this](TestInstance& instance) {
    std::vector<Outcome> all;
    for (const uint32_t a : {0u, 1u, 17u, 0x80000000u, 0xffffffffu})
      for (const uint32_t b : {0u, 1u, 2u, 3u, 1000u, 0xffffffffu}) {
        for (const char* name : {"indirect", "div_s", "div_u", "rem_s", "rem_u"})
          all.push_back(instance.call(name, {i32(a), i32(b)}));
        all.push_back(instance.call("crowded", {i32(a), i32(b), f64(1.25)}));
        all.push_back(instance.call("div_s64", {i64(a), i64(b)}));
        all.push_back(instance.call("copy", {i32(a), i32(64), i32(b)}));
        all.push_back(instance.call("load", {i32(17)}));
      }
    return all;
  };
  // Functions are compiled at their first call, so each instance is through before the next begins.
  compile_options_.lwp_counting = false;
  auto quiet = instantiate_sampling(kValues);
  const std::vector<Outcome> expected = outcomes(*quiet);
  EXPECT_TRUE(value_records.empty());
  compile_options_.lwp_counting = true;
  auto loud = instantiate_sampling(kValues);
  EXPECT_EQ(outcomes(*loud), expected);
  EXPECT_GT(value_records.size(), 200u);

  value_records.clear();
  EXPECT_EQ(loud->call("crowded", {i32(9), i32(4), f64(1)}).trap, TrapCode::kNone);
  std::vector<std::pair<uint32_t, uint64_t>> sites;
  for (const ValueRecord& r : value_records) sites.emplace_back(r.site_flags, r.value);
  EXPECT_EQ(sites, (std::vector<std::pair<uint32_t, uint64_t>>{{kValueSiteDivisor, 5},
                                                               {kValueSiteDivisor, 4},
                                                               {kValueSiteCallIndirect, 1},
                                                               {kValueSiteDivisor, 4},
                                                               {kValueSiteByteCount, 8}}));
}

// All 128 bits of every vector register that is alive: operands, and locals that a register caches.
TEST_F(LwpTest, RecordsLeaveVectorsAlone) {
  std::string many;  // more operands than registers
  for (int i = 0; i < 17; ++i)
    many += " (i32x4.add (local.get 0) (v128.const i32x4 " + std::to_string(i) + " 1 2 3))";
  std::string sum;
  for (int i = 0; i < 17; ++i) sum += " i16x8.add";
  const std::string wat = R"((module (func (export "f") (param v128 v128 i32) (result v128) (local v128 i32)
    (loop
      (local.set 3 (i64x2.mul (local.get 3) (local.get 1)))
      (local.set 1 (i8x16.add (local.get 1) (local.get 0)))
      )" + many + R"(
      (i32x4.splat (i32.div_u (i32.const 1000) (local.get 2)))
      )" + sum + R"(
      local.get 1 i32x4.add local.get 3 v128.xor local.set 3
      (if (i32.and (local.get 2) (i32.const 1)) (then (local.set 3 (v128.not (local.get 3)))))
      (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
    (local.get 3))))";
  const auto outcomes = [](TestInstance& instance) {
    std::vector<Outcome> all;
    for (const uint32_t n : {1u, 2u, 9u})
      all.push_back(instance.call("f", {v128(0x0123456789abcdef, 0xfedcba9876543210), v128(3, 5), i32(n)}));
    return all;
  };
  compile_options_.lwp_counting = false;
  auto quiet = instantiate_sampling(wat.c_str());
  const std::vector<Outcome> expected = outcomes(*quiet);
  compile_options_.lwp_counting = true;
  auto loud = instantiate_sampling(wat.c_str());
  EXPECT_EQ(outcomes(*loud), expected);
  EXPECT_EQ(value_records.size(), 15u);
  // The same with the two other events, whose records leave nothing in the upper halves either.
  auto counting = instantiate(wat.c_str(), {.instruction_period = 1, .branch_period = 1});
  counting->builtins().lwp_instructions_retired = instructions_and_clobber;
  counting->builtins().lwp_branch_retired = branch_and_clobber;
  counting->thread().lwp_instructions = 0;
  counting->thread().lwp_branches = 0;
  EXPECT_EQ(outcomes(*counting), expected);
}

TEST_F(LwpTest, CodeWithoutCountingHasNoValueSites) {
  // sub dword [r14 + kThreadLwpValues], 1
  constexpr std::array kSite = {std::byte{0x41}, std::byte{0x83}, std::byte{0x6e},
                                std::byte{kThreadLwpValues}, std::byte{1}};
  const auto sites = [this, &kSite](bool counting) {
    compile_options_.lwp_counting = counting;
    all_versions_.clear();
    versions_.clear();
    auto instance = instantiate_sampling(kValues);
    instance->call("crowded", {i32(9), i32(4), f64(1)});
    instance->call("copy", {i32(0), i32(0), i32(1)});
    instance->call("init", {i32(0), i32(0), i32(1)});
    size_t count = 0;
    for (const auto& version : all_versions_)
      for (const auto* p = version->begin(); p != version->end(); ++p) {
        p = std::search(p, version->end(), kSite.begin(), kSite.end());
        if (p == version->end()) break;
        ++count;
      }
    return count;
  };
  EXPECT_EQ(sites(true), 5u + 1 + 1);
  EXPECT_EQ(sites(false), 0u);
}

}  // namespace
}  // namespace hindsight::jit::testing
