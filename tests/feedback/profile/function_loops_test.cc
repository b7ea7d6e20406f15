#include "feedback/profile/function_loops.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

wasm::LoopInfo loop(uint32_t offset, uint32_t end, std::optional<uint32_t> parent = {}) {
  wasm::LoopInfo loop;
  loop.offset = WasmOffset(offset);
  loop.end = WasmOffset(end);
  if (parent) loop.parent = LoopIndex(*parent);
  return loop;
}

std::optional<uint32_t> innermost(const FunctionLoops& loops, uint32_t at) {
  const std::optional<LoopIndex> loop = loops.innermost(WasmOffset(at));
  return loop ? std::optional(loop->value) : std::nullopt;
}

TEST(FunctionLoops, TheInnermostLoopIsTheLastOneThatBeganAndHasNotEnded) {
  wasm::FunctionBody body;
  body.loops = {loop(10, 50), loop(20, 30, 0), loop(22, 28, 1), loop(35, 45, 0), loop(60, 70)};
  const FunctionLoops loops(body);
  for (uint32_t at = 0; at < 80; ++at) {
    std::optional<uint32_t> expected;
    for (uint32_t i = 0; i < body.loops.size(); ++i)
      if (body.loops[i].offset.value <= at && at < body.loops[i].end.value) expected = i;
    EXPECT_EQ(innermost(loops, at), expected) << at;
  }
  EXPECT_EQ(innermost(loops, ~0u), std::nullopt);
  EXPECT_EQ(loops.inner_loops(LoopIndex(0)), 3u);
  EXPECT_EQ(loops.inner_loops(LoopIndex(1)), 1u);
  EXPECT_EQ(loops.inner_loops(LoopIndex(4)), 0u);
}

TEST(FunctionLoops, AFunctionWithoutLoopsHasNone) {
  EXPECT_EQ(innermost(FunctionLoops(wasm::FunctionBody()), 5), std::nullopt);
}

TEST(FunctionLoops, LoopsThatNothingReachesArePassedOver) {
  wasm::FunctionBody body;
  body.loops = {loop(10, 50), loop(20, 30, 0)};
  body.loops[1].reachable = false;
  EXPECT_EQ(innermost(FunctionLoops(body), 25), 0u);
}

}  // namespace
}  // namespace hindsight::feedback
