// What is noted of the frames around loops and of the branches out of them, and which loops can be nests.
#include "jit/wasm/loop_nests.h"

#include <gtest/gtest.h>

#include <string>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "tests/jit/typed_module.h"

namespace hindsight::wasm {
namespace {

using jit::testing::typed_module;

// The frames around a loop, its own first: kind, opcode's byte, height.
std::string frames_around(const Module& module, uint32_t loop, uint32_t function = 0) {
  const FunctionBody& body = module.bodies[function];
  std::string out;
  for (uint32_t at = body.loops.at(loop).frame; at != ~0u; at = body.loop_frames[at].parent) {
    const LoopFrame& frame = body.loop_frames[at];
    const char* const kinds[] = {"function", "block", "loop", "handler"};
    out += kinds[static_cast<size_t>(frame.kind)] + std::string(" ") + std::to_string(frame.height) + "; ";
    EXPECT_TRUE(frame.parent == ~0u || frame.parent < at) << "parents come first";
    if (frame.kind == LoopFrame::Kind::kFunction) continue;
    InstrReader reader(module, body);
    reader.seek(frame.offset);
    Instr instr;
    reader.next(instr);
    EXPECT_EQ(instr.opcode == Opcode::kLoop, frame.kind == LoopFrame::Kind::kLoop);
    EXPECT_EQ(frame.type_offset, frame.offset.value + 1);
  }
  return out;
}

uint64_t levels(std::initializer_list<uint32_t> all) {
  uint64_t out = 0;
  for (const uint32_t level : all) out |= uint64_t{1} << level;
  return out;
}

TEST(LoopFrames, AreNotedOnceWithTheOperandsBelowThem) {
  const auto module = typed_module(R"((module (func (param i32) (result i32)
    i64.const 0
    (block (result i32)
      i32.const 1 i32.const 2
      (loop $a (param i32)
        drop
        (if (local.get 0) (then (loop $b (br_if $b (local.get 0)))) (else (loop $c (br_if $c (local.get 0)))))))
    (block (loop $d))
    (block)
    (loop (param i32) (result i32)) drop drop i32.const 0)))");
  ASSERT_TRUE(module);
  const std::string a = "loop 2; block 1; function 0; ";
  EXPECT_EQ(frames_around(*module, 0), a);
  EXPECT_EQ(frames_around(*module, 1), "loop 2; block 2; " + a);
  EXPECT_EQ(frames_around(*module, 2), "loop 2; block 2; " + a);
  EXPECT_EQ(frames_around(*module, 3), "loop 2; block 2; function 0; ");
  EXPECT_EQ(frames_around(*module, 4), "loop 1; function 0; ");
  EXPECT_EQ(module->bodies[0].loop_frames.size(), 1u + 2 + 3 + 2 + 1) << "the empty block is not noted";
}

TEST(LoopFrames, HaveHeightsInSpiteOfDeadCode) {
  const auto valid = typed_module(R"((module (func (param i32) (result i32)
    i32.const 1
    (block (result i32) (br 0 (i32.const 5)) drop drop drop (block (loop)) i32.add)
    (block (param i32) (result i32) (loop)) drop)))");
  ASSERT_TRUE(valid);
  EXPECT_FALSE(valid->bodies[0].loops[0].reachable);
  EXPECT_EQ(frames_around(*valid, 1), "loop 2; block 1; function 0; ");
}

TEST(LoopFrames, CountCaughtExceptionsAndKnowHandlers) {
  const auto module = typed_module(R"((module (tag $t (param i64))
    (func (param i32)
      i32.const 7
      (block
        (try (do (loop)) (catch $t drop (loop (br_if 0 (local.get 0)))
               (try (do (block (loop))) (catch_all (loop)))))
        (block (loop)))
      drop)
    (func (param i32) (result i64)
      (block $out (result i64) (try_table (loop)) (try_table (catch $t $out) (loop)) (loop) (i64.const 1)))))");
  ASSERT_TRUE(module);
  const std::string around = "handler 1; block 1; function 0; ";
  EXPECT_EQ(frames_around(*module, 0), "loop 1; " + around);
  EXPECT_EQ(frames_around(*module, 1), "loop 2; " + around);
  EXPECT_EQ(frames_around(*module, 2), "loop 2; block 2; handler 2; " + around);
  EXPECT_EQ(frames_around(*module, 3), "loop 3; handler 2; " + around);
  EXPECT_EQ(frames_around(*module, 4), "loop 1; block 1; block 1; function 0; ");
  for (uint32_t loop = 0; loop < 5; ++loop)
    EXPECT_EQ(module->bodies[0].loop_frames[module->bodies[0].loops[loop].frame].height,
              module->bodies[0].loops[loop].stack_height);
  EXPECT_EQ(frames_around(*module, 0, 1), "loop 0; block 0; block 0; function 0; ") << "it has no clauses";
  EXPECT_EQ(frames_around(*module, 1, 1), "loop 0; handler 0; block 0; function 0; ");
  EXPECT_EQ(module->bodies[1].loops[1].targets, 0u) << "the clause is not in the loop";

  EXPECT_EQ(why_no_nest(*module, FuncIndex(0), LoopIndex(0)), "a handler of exceptions is around it");
  EXPECT_EQ(why_no_nest(*module, FuncIndex(0), LoopIndex(4)), "");
  EXPECT_EQ(why_no_nest(*module, FuncIndex(1), LoopIndex(0)), "");
}

TEST(LoopTargets, AreTheFramesThatBranchesInTheLoopGoTo) {
  const auto module = typed_module(R"((module (tag $t) (func $f) (elem declare func $f)
    (func (param i32 funcref)
      (block $4 (loop $3 (block $2 (block $1
        (br_if $4 (local.get 0))
        (loop $self
          (br_if $1 (local.get 0))
          (br_if $self (local.get 0))
          (block $inside (br_if $inside (local.get 0)) (br_if $3 (local.get 0)))))
        (loop $next (br_if $2 (local.get 0)))
        (br_if $3 (local.get 0))))))
    (func (param i32) (result i32)
      (block (block (block (loop (br_table 1 2 3 0 2 (local.get 0))))))
      (loop (if (local.get 0) (then (return (i32.const 1)))))
      (loop (block (br 2 (i32.const 1))))
      (i32.const 1))
    (func (param funcref)
      (block (block (loop (br_on_null 1 (local.get 0)) drop)))
      (block $a (block $b (result (ref func)) (loop (br_on_non_null $b (local.get 0))) (br $a)) drop)
      (block (block (block (loop (try_table (catch $t 1) (catch_all 2)))))))
    (func (param i32)
      (block (loop (return) (loop (br_if 2 (local.get 0)))))
      (block (loop (try (do (call $f)) (catch_all (rethrow 0))))))))");
  ASSERT_TRUE(module);
  const auto targets = [&](uint32_t function, uint32_t loop) {
    return module->bodies[function].loops.at(loop).targets;
  };
  EXPECT_EQ(targets(1, 0), levels({1})) << "$4, from inside of $3";
  EXPECT_EQ(targets(1, 1), levels({1, 3}));
  EXPECT_EQ(targets(1, 2), levels({1}));
  EXPECT_EQ(targets(2, 0), levels({1, 2, 3}));
  EXPECT_EQ(targets(2, 1), levels({1})) << "return";
  EXPECT_EQ(targets(2, 2), levels({1})) << "the function's label";
  EXPECT_EQ(targets(3, 0), levels({1}));
  EXPECT_EQ(targets(3, 1), levels({1}));
  EXPECT_EQ(targets(3, 2), levels({1, 2}));
  EXPECT_EQ(targets(4, 0), levels({1, 2})) << "what is dead counts";
  EXPECT_EQ(targets(4, 1), levels({2}));
  EXPECT_EQ(targets(4, 2), 0u) << "an exception is no branch";
}

// A loop with so many blocks around it, inside of a loop, and a branch over `levels` frames.
std::string deep(uint32_t blocks, uint32_t levels) {
  std::string out = "(module (func (param i32) (loop ";
  for (uint32_t i = 0; i < blocks; ++i) out += "(block ";
  out += "(loop (br_if " + std::to_string(levels) + " (local.get 0)))";
  return out + std::string(blocks, ')') + ")))";
}

TEST(LoopTargets, ReachSixtyThreeFramesFar) {
  for (const uint32_t level : {62u, 63u}) {
    const auto module = typed_module(deep(70, level));
    ASSERT_TRUE(module);
    EXPECT_EQ(module->bodies[0].loops[1].targets, levels({level}));
    EXPECT_FALSE(module->bodies[0].loops[1].too_deep);
  }
  const auto far = typed_module(deep(70, 64));
  EXPECT_TRUE(far->bodies[0].loops[1].too_deep);
  EXPECT_FALSE(far->bodies[0].loops[0].too_deep) << "the branch stays in the outer loop";
  EXPECT_EQ(why_no_nest(*far, FuncIndex(0), LoopIndex(1)), "a branch leaves it over more than 63 blocks");
  const auto out = typed_module(deep(70, 72));
  EXPECT_TRUE(out->bodies[0].loops[1].too_deep);
  EXPECT_FALSE(out->bodies[0].loops[0].too_deep);
  EXPECT_EQ(out->bodies[0].loops[0].targets, levels({1})) << "it is near to the outer loop";
  EXPECT_EQ(why_no_nest(*out, FuncIndex(0), LoopIndex(0)), "");
}

TEST(LoopNests, WorkGrowsWithTheModule) {
  // n loops in each other, the innermost with n branches to the outermost of all frames; and n loops side by side in n blocks.
  const auto steps = [](uint32_t n) {
    std::string text = "(module (func (param i32) (block $out ";
    for (uint32_t i = 0; i < n; ++i) text += "(loop ";
    for (uint32_t i = 0; i < n; ++i) text += "(br_if $out (local.get 0))";
    text += std::string(n, ')') + ")";
    for (uint32_t i = 0; i < n; ++i) text += "(block ";
    for (uint32_t i = 0; i < n; ++i) text += "(loop)";
    return typed_module(text + std::string(n, ')') + "))")->decode_stats.steps;
  };
  const uint64_t once = steps(1000);
  EXPECT_LT(steps(2000), 2 * once + once / 10);
}

TEST(LoopNests, AreNotMadeOfDeadCodeOrTailCalls) {
  const auto module = typed_module(R"((module
    (func $f (param i32)
      (loop (br_if 0 (local.get 0)))
      (loop (if (local.get 0) (then (return_call $f (i32.const 0)))))
      (loop (loop (br_if 0 (local.get 0))) (if (local.get 0) (then (return_call $f (i32.const 0)))))
      (return)
      (loop))))");
  ASSERT_TRUE(module);
  const auto why = [&](uint32_t loop) { return why_no_nest(*module, FuncIndex(0), LoopIndex(loop)); };
  EXPECT_EQ(why(0), "");
  EXPECT_EQ(why(1), "it has a tail call");
  EXPECT_EQ(why(2), "it has a tail call");
  EXPECT_EQ(why(3), "") << "the tail call is outside of it";
  EXPECT_EQ(why(4), "it is in dead code");
}

TEST(LoopNests, HaveTheBytesOfWhatTheyCallIfThatIsSmall) {
  const auto module = typed_module(R"((module
    (import "h" "h" (func $h))
    (func $small (result i32) i32.const 1)
    (func $loops (param i32) (loop (br_if 0 (local.get 0))))
    (func $f (loop) (loop (call $h) (call $f)) (loop (drop (call $small)) (drop (call $small))) (call $h))
    (func $large (param i32) )" +
                                   [] {
                                     std::string body;
                                     for (int i = 0; i < 100; ++i) body += "(drop (local.get 0))";
                                     return body;
                                   }() +
                                   R"()
    (func $g (loop (call $large (i32.const 1)))
             (loop (call $large (i32.const 1)) (call $large (i32.const 1)) (call $loops (i32.const 0))))))");
  ASSERT_TRUE(module);
  const auto own = [&](uint32_t function, uint32_t loop) {
    const LoopInfo& info = module->body(FuncIndex(function)).loops[loop];
    return info.end.value + 1 - info.offset.value;
  };
  const auto bytes = [&](uint32_t function, uint32_t loop) {
    return nest_bytes(*module, FuncIndex(function), LoopIndex(loop));
  };
  const auto size = [&](uint32_t function) {
    return module->body(FuncIndex(function)).end.value - module->body(FuncIndex(function)).begin.value;
  };
  EXPECT_EQ(bytes(3, 0), own(3, 0));
  EXPECT_EQ(bytes(3, 1), own(3, 1)) << "hosts and itself";
  EXPECT_EQ(bytes(3, 2), own(3, 2) + 2 * size(1));
  EXPECT_EQ(size(4), 301u) << "larger than what is inlined in loops";
  EXPECT_EQ(bytes(5, 0), own(5, 0));
  EXPECT_EQ(bytes(5, 1), own(5, 1) + size(2)) << "a small one with a loop";
}

}  // namespace
}  // namespace hindsight::wasm
