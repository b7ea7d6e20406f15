// Loops poll their OSR slot and hand over a frame that holds every local and operand.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class OsrTest : public BaselineTest {
 protected:
  // What the replacing code saw.
  static inline VmContext* seen_context;
  static inline std::vector<uint64_t> seen;
  static inline size_t frame_slots;
  // Aligned as code of functions is: the lowest bits of an entry say what kind it is.
  [[gnu::aligned(16)]] static uint64_t replacement(VmContext* context, const uint64_t* frame) {
    seen_context = context;
    seen.assign(frame, frame + frame_slots);
    return 4242;
  }
  [[gnu::aligned(16)]] static double float_replacement(VmContext*, const uint64_t*) { return 2.5; }
};

TEST_F(OsrTest, TheSlotIsCalledWithLocalsThenOperands) {
  std::atomic<const void*>* slots = nullptr;
  auto instance = instantiate(R"((module
    (import "h" "arm" (func $arm))
    (func (export "f") (param i32 f64) (result i64) (local i64)
      i64.const 77
      local.get 0 i32.const 2 i32.mul
      f64.const 0.5
      (loop (param i32 f64) (result i64)
        drop drop
        local.get 2 i64.const 1 i64.add local.set 2
        local.get 2 i64.const 3 i64.eq if call $arm end
        local.get 0 local.get 2 i32.wrap_i64 i32.add
        local.get 1 f64.const 1 f64.add local.tee 1
        local.get 2 i64.const 10 i64.lt_s br_if 0
        drop drop local.get 2)
      i64.add)))",
                              {.host = {{"h.arm", [&](TestInstance&, uint64_t*) {
                                           slots = versions_.at(1)->osr_slots;
                                           slots[0].store(reinterpret_cast<const void*>(&replacement));
                                           return true;
                                         }}}});
  frame_slots = 6;
  EXPECT_EQ(instance->call("f", {i32(5), f64(1.5)}), returns({i64(4242)}));
  EXPECT_EQ(seen_context, instance->context());
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(static_cast<uint32_t>(seen[0]), 5u);
  EXPECT_EQ(std::bit_cast<double>(seen[1]), 4.5);
  EXPECT_EQ(seen[2], 3u);
  EXPECT_EQ(seen[3], 77u);
  EXPECT_EQ(static_cast<uint32_t>(seen[4]), 8u);
  EXPECT_EQ(std::bit_cast<double>(seen[5]), 4.5);

  // Disarmed, the loop runs to its end; and the slots are apart from the code, in a line of their own.
  slots[0].store(nullptr);
  instance->call("f", {i32(5), f64(1.5)});
  EXPECT_EQ(versions_.at(1)->osr_slot_count, 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slots) % 64, 0u);
}

TEST_F(OsrTest, NestedLoopsHaveSlotsOfTheirOwnInByteOrder) {
  auto instance = instantiate(R"((module
    (func (export "f") (param i32) (result f64)
      (block (br 0) (loop (br 0)))
      (loop
        (loop local.get 0 i32.const 1 i32.sub local.tee 0 i32.const 10 i32.gt_s br_if 0)
        (loop local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0))
      f64.const 1)))");
  EXPECT_EQ(instance->call("f", {i32(20)}), returns({f64(1)}));
  ASSERT_EQ(versions_.at(0)->osr_slot_count, 4u);
  for (uint32_t i = 0; i < 4; ++i) {
    versions_.at(0)->osr_slots[i].store(reinterpret_cast<const void*>(&float_replacement));
    EXPECT_EQ(instance->call("f", {i32(20)}), returns({f64(i == 0 ? 1 : 2.5)})) << i;
    versions_.at(0)->osr_slots[i].store(nullptr);
  }
}

// $f and $g are the same; what $f began, $g ends, from either loop, with what lies on the stack below it.
class LoopEntriesTest : public OsrTest {
 protected:
  void expect_that_g_ends_what_f_began(const std::string& locals, const std::string& before,
                                       const std::string& after) {
    compile_options_.loop_entries = true;
    const std::string body = "(param i32 f64) (result f64) (local i64 i32) " + locals + before + R"(
      i64.const 1000
      (loop $outer (result i64)
        i32.const 3 local.set 3
        local.get 2
        (loop $inner (param i64) (result i64)
          i64.const 1 i64.add
          local.get 1 f64.const 0.5 f64.add local.set 1
          local.get 3 i32.const 1 i32.sub local.tee 3 br_if $inner)
        local.set 2
        call $turn
        local.get 0 i32.const 1 i32.sub local.tee 0 br_if $outer
        local.get 2)
      i64.add f64.convert_i64_s local.get 1 f64.add )" +
                             after;
    std::atomic<const void*>* slot = nullptr;
    const void* entry = nullptr;
    uint32_t turns = 0;
    auto instance = instantiate(R"((module
      (import "h" "turn" (func $turn))
      (func (export "f") )" + body + R"()
      (func (export "g") )" + body + "))",
                                {.host = {{"h.turn", [&](TestInstance&, uint64_t*) {
                                             if (++turns == 2 && slot != nullptr) slot->store(entry);
                                             return true;
                                           }}}});
    const auto expected = instance->call("f", {i32(4), f64(0.25)});
    ASSERT_EQ(instance->call("g", {i32(4), f64(0.25)}), expected);
    const CodeVersion& f = *versions_.at(1);
    const CodeVersion& g = *versions_.at(2);
    ASSERT_EQ(g.osr_entries.size(), 2u);
    for (uint32_t loop = 0; loop < 2; ++loop) {
      EXPECT_EQ(g.osr_entries[loop].loop, LoopIndex(loop));
      turns = 0;
      slot = &f.osr_slots[loop];
      entry = g.osr_entries[loop].code;
      EXPECT_EQ(instance->call("f", {i32(4), f64(0.25)}), expected) << loop;
      EXPECT_EQ(turns, 4u);
      slot->store(nullptr);
    }
  }
};

TEST_F(LoopEntriesTest, GoOnWithTheFrameThatTheyAreGiven) {
  expect_that_g_ends_what_f_began("", "", "");
}

TEST_F(LoopEntriesTest, GoOnWithManyValues) {
  expect_that_g_ends_what_f_began(
      "(local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 f32 i32) ",
      "local.get 0 local.set 16 f32.const 1.5 local.set 15 i64.const -7 local.set 14 ",
      "local.get 16 f64.convert_i32_s f64.add local.get 15 f64.promote_f32 f64.add "
      "local.get 14 f64.convert_i64_s f64.add");
}

TEST_F(LoopEntriesTest, GoOnWithVectors) {
  expect_that_g_ends_what_f_began(
      "(local v128) ", "local.get 1 f64x2.splat local.set 4 local.get 4 ",
      "local.set 1 local.get 4 f64x2.add f64x2.extract_lane 1 local.get 1 f64.add");
}

TEST_F(LoopEntriesTest, AreNotMadeUnlessAskedForNorOfWhatHasTailCalls) {
  auto plain = instantiate("(module (func (export \"f\") (loop)))");
  EXPECT_EQ(plain->call("f"), returns({}));
  EXPECT_TRUE(versions_.at(0)->osr_entries.empty());
  compile_options_.loop_entries = true;
  auto calls = instantiate(
      "(module (func $f (export \"f\") (param i32) (loop) (if (local.get 0) "
      "(then (return_call $f (i32.const 0))))))");
  EXPECT_EQ(calls->call("f", {i32(1)}), returns({}));
  EXPECT_TRUE(versions_.at(0)->osr_entries.empty());
}

TEST_F(OsrTest, CodeWithoutPollsHasNoSlots) {
  compile_options_.osr_polls = false;
  auto instance = instantiate("(module (func (export \"f\") (loop)))");
  EXPECT_EQ(instance->call("f"), returns({}));
  EXPECT_EQ(versions_.at(0)->osr_slots, nullptr);
}

}  // namespace
}  // namespace hindsight::jit::testing
