// Calls of typed function references. Null is looked for only where it may be, and the usual targets that a
// profile told are inlined, whatever the reference then is.
#include <algorithm>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"
#include "tests/jit/typed_module.h"

namespace hindsight::jit::testing {
namespace {

constexpr const char* kGuest = R"((module
  (type $op (func (param i32 i32) (result i32)))
  (import "m" "host" (func $host (type $op)))
  (elem declare func $add $sub $mul)
  (global $sure (mut (ref $op)) (ref.func $add))
  (global $maybe (mut (ref null $op)) (ref.null $op))
  (table $t 3 (ref $op) (ref.func $mul))
  (func $add (type $op) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $op) (i32.sub (local.get 0) (local.get 1)))
  (func $mul (type $op) (i32.mul (local.get 0) (local.get 1)))
  (func (export "param") (param (ref $op)) (result i32) (call_ref $op (i32.const 9) (i32.const 4) (local.get 0)))
  (func (export "global") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (global.get $sure)))
  (func $make (param i32) (result (ref $op)) (local $f (ref $op))
    (local.set $f (ref.func $add))
    (loop $spin (if (local.get 0) (then (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br $spin))))
    (local.get $f))
  (func (export "result") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (call $make (i32.const 3))))
  (func (export "known") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (ref.func $sub)))
  (func (export "tested") (param (ref null $op)) (result i32)
    (block $null
      (return (call_ref $op (i32.const 9) (i32.const 4) (br_on_null $null (local.get 0)))))
    (i32.const -1))
  (func (export "untested") (param (ref null $op)) (result i32)
    (call_ref $op (i32.const 9) (i32.const 4) (local.get 0)))
  (func (export "ref") (param i32) (result (ref null $op))
    (if (i32.eq (local.get 0) (i32.const 1)) (then (return (ref.func $add))))
    (if (i32.eq (local.get 0) (i32.const 2)) (then (return (ref.func $sub))))
    (if (i32.eq (local.get 0) (i32.const 3)) (then (return (ref.func $mul))))
    (ref.null $op))
  (func $pick (param i32) (result (ref null $op))
    (loop $spin (if (i32.gt_s (local.get 0) (i32.const 9))
      (then (local.set 0 (i32.sub (local.get 0) (i32.const 10))) (br $spin))))
    (if (i32.eq (local.get 0) (i32.const 1)) (then (return (ref.func $add))))
    (if (i32.eq (local.get 0) (i32.const 2)) (then (return (ref.func $sub))))
    (if (i32.eq (local.get 0) (i32.const 3)) (then (return (ref.func $mul))))
    (ref.null $op))
  (func (export "call") (param i32) (result i32)
    (call_ref $op (i32.const 9) (i32.const 4) (call $pick (local.get 0))))))";

TEST(TypedReferenceCode, CallsWhatTheReferenceIs) {
  Optimized guest(typed_module(kGuest));
  EXPECT_EQ(guest.call("global"), returns({i32(13)}));
  EXPECT_EQ(guest.call("result"), returns({i32(13)}));
  EXPECT_EQ(guest.call("known"), returns({i32(5)}));
}

class LikelyReferences : public ::testing::TestWithParam<std::vector<uint32_t>> {
 protected:
  static OptimizeRequest hinted(const wasm::Module& module) {
    OptimizeRequest request;
    const wasm::FunctionBody& body = module.body(FuncIndex(module.find_export("call")->index));
    for (wasm::InstrReader reader(module, body); !reader.at_end();) {
      wasm::Instr instr;
      reader.next(instr);
      if (instr.opcode != wasm::Opcode::kCallRef) continue;
      CallTargets targets{.targets = {}, .by_reference = true};
      for (const uint32_t function : GetParam()) targets.targets.push_back({function, 0.3});
      request.changes.push_back(
          {.site = {ChangeKind::kInlineCalls, instr.offset}, .what = std::move(targets)});
    }
    return request;
  }
  std::shared_ptr<const wasm::Module> module_ = typed_module(kGuest);
  Optimized guest_{module_, hinted(*module_)};
};
// 0 is imported, 1 to 3 are the targets, 100 and more are another module's.
INSTANTIATE_TEST_SUITE_P(Hints, LikelyReferences,
                         ::testing::Values(std::vector<uint32_t>{}, std::vector<uint32_t>{1},
                                           std::vector<uint32_t>{3, 2}, std::vector<uint32_t>{0, 2, 1, 3},
                                           std::vector<uint32_t>{100, 0xffffffff, 5, 2}));

TEST_P(LikelyReferences, CallWhatTheReferenceIs) {
  EXPECT_EQ(guest_.call("call", {i32(1)}), returns({i32(13)}));
  EXPECT_EQ(guest_.call("call", {i32(2)}), returns({i32(5)}));
  EXPECT_EQ(guest_.call("call", {i32(3)}), returns({i32(36)}));
  EXPECT_EQ(guest_.call("call", {i32(4)}), traps(TrapCode::kNullFunctionReference));
  const CodeVersion* version = guest_.compile("call");
  ASSERT_NE(version, nullptr);
  for (const uint32_t function : GetParam()) {
    const bool in_place = std::ranges::find(version->inlined, FuncIndex(function)) != version->inlined.end();
    EXPECT_EQ(in_place, function >= 1 && function <= 3) << function;
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
