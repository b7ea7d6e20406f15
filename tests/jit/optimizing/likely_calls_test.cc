// Indirect calls whose usual targets a profile told: whatever the table holds when the call happens, the same
// is called as without hints.
#include <algorithm>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

constexpr const char* kDispatch = R"((module
  (type $op (func (param i32 i32) (result i32)))
  (type $pair (func (param i32) (result i32 i64)))
  (table $t 8 8 funcref)
  (elem (i32.const 0) $add $sub $mul $deep)
  (elem (i32.const 5) $pair $thrice)
  (func $add (type $op) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $op) (i32.sub (local.get 0) (local.get 1)))
  (func $mul (type $op) (local $x i32)
    (local.set $x (i32.mul (local.get 0) (local.get 1)))
    (if (i32.eq (local.get $x) (i32.const 77)) (then (unreachable)))
    (local.get $x))
  (func $deep (type $op)
    (if (result i32) (local.get 0)
      (then (call_indirect (type $op) (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 2)) (i32.const 3)))
      (else (local.get 1))))
  (func $pair (type $pair) (i32.add (local.get 0) (i32.const 1)) (i64.extend_i32_s (local.get 0)))
  (func $thrice (type $pair) (i32.mul (local.get 0) (i32.const 3)) (i64.const 5))
  (func (export "op") (param $which i32) (param i32 i32) (result i32)
    (call_indirect (type $op) (local.get 1) (local.get 2) (local.get $which)))
  (func (export "pair") (param $which i32) (param i32) (result i32 i64)
    (call_indirect (type $pair) (local.get 1) (local.get $which)))
  (func (export "sum") (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (call_indirect (type $op) (local.get $s) (local.get $n)
        (select (i32.const 1) (i32.const 0) (i32.eqz (i32.and (local.get $n) (i32.const 7))))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func (export "swap")
    (table.set $t (i32.const 0) (ref.func $sub))
    (table.set $t (i32.const 1) (ref.func $add)))))";

// The offsets of the call_indirects in a function's body.
std::vector<WasmOffset> indirect_calls(const wasm::Module& module, std::string_view name) {
  const wasm::FunctionBody& body = module.body(FuncIndex(module.find_export(name)->index));
  std::vector<WasmOffset> found;
  wasm::InstrReader reader(module, body);
  while (!reader.at_end()) {
    wasm::Instr instr;
    reader.next(instr);
    if (instr.opcode == wasm::Opcode::kCallIndirect) found.push_back(instr.offset);
  }
  return found;
}

// Every call hinted to go through these elements.
OptimizeRequest hinted(const wasm::Module& module, std::vector<uint32_t> elements) {
  OptimizeRequest request;
  for (const char* name : {"op", "pair", "sum"}) {
    for (const WasmOffset call : indirect_calls(module, name)) {
      CallTargets targets;
      for (const uint32_t element : elements) targets.targets.push_back({element, 0.3});
      request.changes.push_back({.site = {ChangeKind::kInlineCalls, call}, .what = std::move(targets)});
    }
  }
  return request;
}

class LikelyCalls : public ::testing::TestWithParam<std::vector<uint32_t>> {
 protected:
  Optimized guest_{kDispatch, hinted(*TestInstance::module_of(kDispatch), GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Hints, LikelyCalls,
                         ::testing::Values(std::vector<uint32_t>{}, std::vector<uint32_t>{0},
                                           std::vector<uint32_t>{2, 1, 0, 5, 6},
                                           std::vector<uint32_t>{3, 3, 0},
                                           std::vector<uint32_t>{4, 7, 100, 0xffffffff, 5}));

TEST_P(LikelyCalls, CallWhatTheTableHolds) {
  EXPECT_EQ(guest_.call("op", {i32(0), i32(7), i32(5)}), returns({i32(12)}));
  EXPECT_EQ(guest_.call("op", {i32(1), i32(7), i32(5)}), returns({i32(2)}));
  EXPECT_EQ(guest_.call("op", {i32(2), i32(7), i32(5)}), returns({i32(35)}));
  EXPECT_EQ(guest_.call("op", {i32(3), i32(100), i32(5)}), returns({i32(205)}));
  EXPECT_EQ(guest_.call("pair", {i32(5), i32(0xfffffffe)}), returns({i32(0xffffffff), i64(~uint64_t{1})}));
  EXPECT_EQ(guest_.call("pair", {i32(6), i32(7)}), returns({i32(21), i64(5)}));
  uint32_t sum = 0;
  for (uint32_t n = 1000; n > 0; --n) sum = n % 8 == 0 ? sum - n : sum + n;
  EXPECT_EQ(guest_.call("sum", {i32(1000)}), returns({i32(sum)}));
}

TEST_P(LikelyCalls, TrapAsCallsThroughTablesDo) {
  EXPECT_EQ(guest_.call("op", {i32(8), i32(1), i32(1)}), traps(TrapCode::kUndefinedElement));
  EXPECT_EQ(guest_.call("op", {i32(4), i32(1), i32(1)}), traps(TrapCode::kUninitializedElement));
  EXPECT_EQ(guest_.call("op", {i32(5), i32(1), i32(1)}), traps(TrapCode::kIndirectCallTypeMismatch));
  EXPECT_EQ(guest_.call("op", {i32(2), i32(7), i32(11)}), traps(TrapCode::kUnreachable));
}

TEST_P(LikelyCalls, FollowATableThatChanges) {
  guest_.call("swap");
  EXPECT_EQ(guest_.call("op", {i32(0), i32(7), i32(5)}), returns({i32(2)}));
  EXPECT_EQ(guest_.call("op", {i32(1), i32(7), i32(5)}), returns({i32(12)}));
}

TEST(LikelyCallsCode, HasTheUsualTargetsInPlace) {
  Optimized guest(kDispatch, hinted(*TestInstance::module_of(kDispatch), {0, 1}));
  const CodeVersion* version = guest.compile("sum");
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version->inlined.size(), 2u);
}

}  // namespace
}  // namespace hindsight::jit::testing
