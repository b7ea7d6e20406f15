// Which callees of a function's loops are evidence about it.
#include <gtest/gtest.h>

#include <memory>

#include "feedback/profile/profile.h"
#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {
namespace {

constexpr const char* kCalling = R"((module (memory 1)
  (func $find (param $p i32) (result i32)
    (loop $down (br_if $down (local.tee $p (i32.load (local.get $p))))) (local.get $p))
  (func $first (param $p i32) (result i32) (i32.load (local.get $p)))
  (func $deep (param $p i32) (result i32) (drop (call $deep (local.get $p))) (i32.load (local.get $p)))
  (func $caller (param $n i32)
    (drop (call $first (i32.const 0)))
    (loop $outer
      (drop (call $find (local.get $n)))
      (drop (call $deep (local.get $n)))
      (loop $inner (drop (call $find (i32.const 4))) (drop (call $first (i32.const 8))))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
)";
constexpr FuncIndex kFind(0), kFirstCallee(1), kDeep(2), kCaller(3);

std::shared_ptr<const wasm::Module> module_of(const char* text) {
  auto bytes = wasm::assemble_text(text, "test.wat");
  EXPECT_TRUE(bytes);
  auto module = wasm::decode_module(*bytes, "test.wat");
  EXPECT_TRUE(module);
  return *module;
}

WasmOffset load_of(const wasm::Module& module, FuncIndex function) {
  wasm::InstrReader reader(module, module.body(function));
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode == wasm::Opcode::kI32Load) return instr.offset;
  }
  ADD_FAILURE() << "no load";
  return {};
}

void stall(Profile& profile, FuncIndex function, int times) {
  const WasmOffset load = load_of(profile.module(), function);
  for (int i = 0; i < times; ++i) {
    const uint64_t address = 4096 * static_cast<uint64_t>(i);
    profile.add_sample(function, load, true, 1e-3);
    profile.add_stall(function, load, true, &address);
  }
}

TEST(Callees, ALoadOfAFunctionThatCallsItselfIsInItsRecursion) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  stall(profile, kDeep, 10);
  stall(profile, kFirstCallee, 10);
  const FunctionEvidence deep = profile.evidence(kDeep);
  ASSERT_EQ(deep.loads.size(), 1u);
  EXPECT_TRUE(deep.loads[0].in_recursion);
  EXPECT_FALSE(deep.loads[0].in_loop);
  const FunctionEvidence first = profile.evidence(kFirstCallee);
  ASSERT_EQ(first.loads.size(), 1u);
  EXPECT_FALSE(first.loads[0].in_recursion);
}

TEST(Callees, ALoadInNoLoopOfItsFunctionIsEvidenceAboutTheLoopsThatCallIt) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  profile.add_sample(kCaller, module->body(kCaller).loops[1].offset, true, 1e-3);
  stall(profile, kFirstCallee, 10);
  const FunctionEvidence e = profile.evidence(kCaller);
  ASSERT_EQ(e.callees.size(), 1u);
  EXPECT_EQ(e.callees[0].function, kFirstCallee);
  EXPECT_EQ(e.callees[0].called_in, LoopIndex(1));
  EXPECT_DOUBLE_EQ(e.callees[0].samples, 10);
  EXPECT_DOUBLE_EQ(e.callees[0].seconds, 0.01);
  EXPECT_DOUBLE_EQ(e.callees[0].stall_samples, 10);
  EXPECT_TRUE(profile.calls_what_stalls(kCaller, 10));
  EXPECT_FALSE(profile.calls_what_stalls(kCaller, 11));
  ASSERT_EQ(e.loads.size(), 1u);
  EXPECT_EQ(e.loads[0].load, load_of(*module, kFirstCallee));
  EXPECT_EQ(e.loads[0].callee, kFirstCallee);
  EXPECT_TRUE(e.loads[0].in_loop);
  EXPECT_DOUBLE_EQ(e.loads[0].stall_samples, 10);
  EXPECT_EQ(e.loads[0].distinct_pages, 10u);
  EXPECT_TRUE(profile.evidence(kFirstCallee).callees.empty());
}

// Its own loop comes first. Nobody knows before that there has to be another one around it.
TEST(Callees, ALoadInALoopIsEvidenceAboutCallersOnceItsSearchHasNoLoopAroundIt) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  profile.add_sample(kCaller, module->body(kCaller).loops[0].offset, true, 1e-3);
  stall(profile, kFind, 10);
  const WasmOffset load = load_of(*module, kFind);
  EXPECT_TRUE(profile.evidence(kCaller).callees.empty());
  profile.counts(kFind).changes.settle({jit::ChangeKind::kInterleave, load}, ChangeState::kNotPossible);
  const FunctionEvidence e = profile.evidence(kCaller);
  ASSERT_EQ(e.callees.size(), 1u);
  EXPECT_EQ(e.callees[0].function, kFind);
  profile.counts(kFind).changes.settle({jit::ChangeKind::kPrefetch, load}, ChangeState::kKept);
  EXPECT_TRUE(profile.evidence(kCaller).callees.empty()) << "something is done about it";
  EXPECT_FALSE(profile.calls_what_stalls(kCaller, 1));
  profile.counts(kFind).changes.settle({jit::ChangeKind::kPrefetch, load}, ChangeState::kRolledBack);
  EXPECT_TRUE(profile.evidence(kCaller).callees.empty()) << "its address is known ahead in its own loop";
}

TEST(Callees, TheLoopWithTheMostSamplesIsTheOneThatCalls) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  const wasm::FunctionBody& body = module->body(kCaller);
  profile.counts(kFind).changes.settle({jit::ChangeKind::kInterleave, load_of(*module, kFind)},
                                       ChangeState::kNotPossible);
  stall(profile, kFind, 10);
  profile.add_sample(kCaller, body.loops[0].offset, true, 1e-3);
  EXPECT_EQ(profile.evidence(kCaller).callees.at(0).called_in, LoopIndex(0));
}

TEST(Callees, OfWhatOthersCallALoopThatHardlyRunsKnowsNothing) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  profile.add_sample(kCaller, module->body(kCaller).loops[1].offset, true, 1e-3);
  stall(profile, kFirstCallee, 450);
  EXPECT_EQ(profile.evidence(kCaller).callees.size(), 1u);
  stall(profile, kFirstCallee, 100);
  EXPECT_TRUE(profile.evidence(kCaller).callees.empty());
}

TEST(Callees, WhatTheirOwnLoopsAreToShowFirstIsToldApart) {
  const std::shared_ptr<const wasm::Module> module = module_of(R"((module (memory 1)
    (func $both (param $p i32) (result i32)
      (drop (i32.load (local.get $p)))
      (loop $down (br_if $down (local.tee $p (i32.wrap_i64 (i64.load (local.get $p)))))) (local.get $p))
    (func $caller (param $n i32)
      (loop $outer
        (drop (call $both (local.get $n)))
        (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))))");
  ASSERT_TRUE(module);
  Profile profile(module);
  constexpr FuncIndex kBoth(0), kItsCaller(1);
  profile.add_sample(kItsCaller, module->body(kItsCaller).loops[0].offset, true, 1e-3);
  stall(profile, kBoth, 10);
  wasm::InstrReader reader(*module, module->body(kBoth));
  wasm::Instr instr;
  while (instr.opcode != wasm::Opcode::kI64Load) reader.next(instr);
  const WasmOffset down = instr.offset;
  for (int i = 0; i < 30; ++i) profile.add_stall(kBoth, down, true, nullptr);
  const auto callee = [&] { return profile.evidence(kItsCaller).callees.at(0); };
  EXPECT_DOUBLE_EQ(callee().stall_samples, 10);
  EXPECT_DOUBLE_EQ(callee().stall_samples_undecided, 30) << "nothing was asked for";
  profile.counts(kBoth).begin({jit::ChangeKind::kInterleave, down});
  EXPECT_DOUBLE_EQ(callee().stall_samples_undecided, 30) << "in trial";
  profile.counts(kBoth).changes.settle({jit::ChangeKind::kInterleave, down}, ChangeState::kNotPossible);
  profile.counts(kBoth).begin({jit::ChangeKind::kJumpPointers, down});
  EXPECT_DOUBLE_EQ(callee().stall_samples_undecided, 0);
  EXPECT_DOUBLE_EQ(callee().stall_samples, 40) << "jump pointers take long to show anything";
}

TEST(Callees, ComeWithTheBranchesOfTheirCode) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  profile.add_sample(kCaller, module->body(kCaller).loops[1].offset, true, 1e-3);
  stall(profile, kFirstCallee, 10);
  const WasmOffset branch = load_of(*module, kFirstCallee);  // any place of its body
  profile.add_branch(kFirstCallee, branch, true);
  profile.add_branch(kFirstCallee, branch, false);
  const FunctionEvidence evidence = profile.evidence(kCaller);
  ASSERT_EQ(evidence.callees.size(), 1);
  ASSERT_EQ(evidence.callees[0].branches.size(), 1);
  EXPECT_EQ(evidence.callees[0].branches[0].branch, branch);
  EXPECT_EQ(evidence.callees[0].branches[0].sampled, 2);
  EXPECT_EQ(evidence.callees[0].branches[0].sampled_taken, 1);
  EXPECT_TRUE(evidence.branches.empty()) << "they are not the caller's own";
}

TEST(Callees, WhatCallsItselfIsNone) {
  const std::shared_ptr<const wasm::Module> module = module_of(kCalling);
  Profile profile(module);
  profile.add_sample(kCaller, module->body(kCaller).loops[0].offset, true, 1e-3);
  stall(profile, kDeep, 10);
  EXPECT_TRUE(profile.evidence(kCaller).callees.empty());
}

}  // namespace
}  // namespace hindsight::feedback
