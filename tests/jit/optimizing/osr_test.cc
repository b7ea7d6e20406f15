// On-stack replacement: entering every loop of a nest with a handmade frame gives what the whole function
// would have given from there.
#include "tests/jit/optimizing/optimized.h"
#include "tests/jit/optimizing/three_loops.h"

namespace hindsight::jit::testing {
namespace {

using OsrFunction = uint64_t (*)(VmContext*, const uint64_t* frame);

OsrFunction entry(const CodeVersion& version, uint32_t loop) {
  for (const OsrEntry& entry : version.osr_entries)
    if (entry.loop == LoopIndex(loop)) return reinterpret_cast<OsrFunction>(entry.code);
  return nullptr;
}

Optimized with_osr(std::string_view wat, uint32_t loops) {
  OptimizeRequest request;
  for (uint32_t i = 0; i < loops; ++i) request.osr_loops.push_back(LoopIndex(i));
  return Optimized(wat, request);
}

uint32_t nest(uint32_t n, uint32_t i, uint32_t j, uint32_t k, uint32_t r, int level) {
  bool in_b = level >= 1;
  bool in_c = level >= 2;
  for (;;) {
    if (!in_b) j = 0;
    for (;;) {
      if (!in_c) k = 0;
      do {
        r = r * 3 + i * 16 + j * 4 + k;
        if (r == 123456) return 1000 + r;
        ++k;
      } while (k < n);
      in_c = false;
      ++j;
      if (j == 2 && i == 1) break;
      if (j < n) continue;
      break;
    }
    in_b = false;
    ++i;
    if (i >= n) break;
  }
  return 1000 + r;
}

TEST(Osr, EveryLevelOfANestCanBeEntered) {
  Optimized m = with_osr(kThreeLoops, 3);
  const CodeVersion* version = m.compile("f");
  ASSERT_NE(version, nullptr);
  ASSERT_EQ(version->osr_entries.size(), 3u);
  EXPECT_EQ(m.call("f", {i32(4)}), returns({i32(nest(4, 0, 0, 0, 0, 0))}));
  constexpr uint64_t kDirty = 0xfeedbeef00000000;
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t j = 0; j < 4; ++j) {
      for (uint32_t k = 0; k < 4; ++k) {
        for (uint32_t level = 0; level < 3; ++level) {
          // locals n i j k r, then the operand stack: 1000, and at $b its parameter
          const uint64_t frame[] = {kDirty | 4,  kDirty | i,    kDirty | j, kDirty | k,
                                    kDirty | 99, kDirty | 1000, kDirty | 5};
          const auto result = static_cast<uint32_t>(entry(*version, level)(m.instance->context(), frame));
          EXPECT_EQ(result, nest(4, i, j, k, 99, static_cast<int>(level)))
              << i << j << k << " level " << level;
        }
      }
    }
  }
}

TEST(Osr, EntriesCanBeCompiledWithoutTheWholeFunction) {
  OptimizeRequest request;
  request.osr_loops = {LoopIndex(2)};
  Optimized both(kThreeLoops, request);
  request.loop_entries_only = true;
  Optimized alone(kThreeLoops, request);
  const CodeVersion* version = alone.compile("f");
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version->entry, nullptr);
  EXPECT_LT(version->code_size, both.compile("f")->code_size);
  const uint64_t frame[] = {4, 1, 2, 3, 99, 1000, 5};
  EXPECT_EQ(static_cast<uint32_t>(entry(*version, 2)(alone.instance->context(), frame)),
            nest(4, 1, 2, 3, 99, 2));
}

TEST(Osr, AFunctionThatCallsItselfIsCompiledWhole) {
  OptimizeRequest request;
  request.osr_loops = {LoopIndex(0)};
  request.loop_entries_only = true;
  Optimized m(R"((module (func $f (export "f") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (i32.const 1))) (br_if $l (i32.lt_u (local.get 1) (local.get 0))))
    (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
    (i32.add (local.get 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))))",
              request);
  ASSERT_NE(m.compile("f"), nullptr);
  EXPECT_EQ(m.call("f", {i32(4)}), returns({i32(11)}));
}

TEST(Osr, LoopsInsideIfArmsLeaveThroughTheEndOfTheIf) {
  Optimized m = with_osr(R"((module (func (export "f") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (loop $t (result i32) (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
              (br_if $t (local.get 0)) i32.const 10))
      (else (loop $e (result i32) (local.set 0 (i32.add (local.get 0) (i32.const 1)))
              (br_if $e (i32.lt_u (local.get 0) (i32.const 5))) i32.const 20)))
    local.get 0 i32.add)))",
                         2);
  const CodeVersion* version = m.compile("f");
  ASSERT_EQ(version->osr_entries.size(), 2u);
  const uint64_t three[] = {3};
  EXPECT_EQ(static_cast<uint32_t>(entry(*version, 0)(m.instance->context(), three)), 10u);
  EXPECT_EQ(static_cast<uint32_t>(entry(*version, 1)(m.instance->context(), three)), 25u);
}

TEST(Osr, SeveralResultsGoThroughTheThread) {
  Optimized m = with_osr(R"((module (func (export "f") (param i32 f64) (result i32 f64)
    (loop $l (local.set 1 (f64.add (local.get 1) (f64.const 0.5)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    local.get 0 local.get 1)))",
                         1);
  const CodeVersion* version = m.compile("f");
  const uint64_t frame[] = {4, std::bit_cast<uint64_t>(1.0)};
  entry(*version, 0)(m.instance->context(), frame);
  EXPECT_EQ(static_cast<uint32_t>(m.instance->thread().results[0]), 0u);
  EXPECT_EQ(std::bit_cast<double>(m.instance->thread().results[1]), 3.0);
}

// A tail call of another function, with more arguments than have registers, and of itself. From the
// remainder of a function there is no way back to its start but through its whole version.
TEST(Osr, MayEndInATailCall) {
  Optimized m = with_osr(R"((module
    (func $sum (param i64 i64 i64 i64 i64 i64 i64 f64) (result i64)
      (i64.add (i64.mul (local.get 0) (i64.const 100)) (i64.add (i64.add (local.get 5) (local.get 6))
        (i64.trunc_f64_s (local.get 7)))))
    (func $f (export "f") (param $n i64) (param $times i64) (result i64) (local $r i64)
      (loop $l
        (local.set $r (i64.add (local.get $r) (local.get $n)))
        (br_if $l (i64.ne (local.tee $n (i64.sub (local.get $n) (i64.const 1))) (i64.const 0))))
      (if (i64.ne (local.get $times) (i64.const 0))
        (then (return_call $f (i64.const 3) (i64.sub (local.get $times) (i64.const 1)))))
      (return_call $sum (local.get $r) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5)
        (i64.const 6) (f64.const 7)))))",
                         1);
  for (const bool inlined : {true, false}) {
    m.request.tuning.inline_functions = inlined;
    const CodeVersion* version = m.compile("f");
    ASSERT_NE(version, nullptr);
    ASSERT_EQ(version->osr_entries.size(), 1u);
    const uint64_t last[] = {4, 0, 1000};  // n, times, r
    EXPECT_EQ(entry(*version, 0)(m.instance->context(), last), 101018u);
    const uint64_t again[] = {4, 100000, 1000};
    EXPECT_EQ(entry(*version, 0)(m.instance->context(), again), 618u);
    EXPECT_EQ(m.call("f", {i64(1), i64(100000)}), returns({i64(618)}));
  }
}

TEST(Osr, UnreachableLoopsHaveNoEntry) {
  Optimized m = with_osr(R"((module (func (export "f") (result i32)
    (return (i32.const 1)) (loop $l (br $l)) i32.const 2)))",
                         1);
  EXPECT_TRUE(m.compile("f")->osr_entries.empty());
}

}  // namespace
}  // namespace hindsight::jit::testing
