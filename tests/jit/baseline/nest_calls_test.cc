// Baseline code calls a nest where its slot says so, and goes on where the nest says that its loop was left (jit/abi/nest_exits.h). The nests
// are C++ here: they read and change the frame, and leave no register as it was.
#include <cstring>

#include "jit/abi/nest_exits.h"
#include "jit/wasm/loop_nests.h"
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class NestCalls : public BaselineTest, public ::testing::WithParamInterface<bool> {
 protected:
  using Nest = std::function<uint32_t(uint64_t* frame)>;

  void SetUp() override {
    BaselineTest::SetUp();
    compile_options_.lwp_counting = GetParam();
  }

  // Runs `nest` in place of a loop of the module's function 0, an export "f", which is compiled by the first call.
  void arm(uint32_t loop, Nest nest) {
    nests_[loop] = std::move(nest);
    static constexpr uint32_t (*kCode[])(VmContext*, uint64_t*) = {run<0>, run<1>, run<2>};
    const OsrEntry entry{LoopIndex(loop), reinterpret_cast<const void*>(kCode[loop]), OsrEntry::Kind::kNest};
    ASSERT_NE(slot_word(entry), entry.code);
    slot(loop).store(slot_word(entry));
  }
  void disarm(uint32_t loop) { slot(loop).store(nullptr); }
  std::atomic<const void*>& slot(uint32_t loop) { return versions_.at(0)->osr_slots[loop]; }

  // The number by which a nest of the loop goes to the label of the frame `level` around it.
  uint32_t label(uint32_t loop, uint32_t level) {
    const uint64_t targets = module_->bodies[0].loops[loop].targets;
    EXPECT_TRUE(targets >> level & 1) << "no branch goes there";
    return nest_label(targets, level);
  }

  // An instance whose "f" was called with `arguments`, so that its code is there.
  std::unique_ptr<TestInstance> warmed(std::string_view wat, std::vector<Value> arguments) {
    module_ = TestInstance::module_of(wat);
    auto instance = instantiate(module_, {.instruction_period = 100, .branch_period = 100});
    EXPECT_EQ(instance->call("f", std::move(arguments)).trap, TrapCode::kNone);
    return instance;
  }

  static inline int calls = 0;
  static inline const void* frame_address = nullptr;
  std::shared_ptr<const wasm::Module> module_;

 private:
  template <uint32_t loop>
  __attribute__((aligned(16), noinline)) static uint32_t run(VmContext*, uint64_t* frame) {
    ++calls;
    frame_address = __builtin_frame_address(0);
    number_ = nests_[loop](frame);
    // Whatever a called function may change.
    asm volatile(
        "mov $-3, %%rcx; mov %%rcx, %%rdx; mov %%rcx, %%rsi; mov %%rcx, %%rdi; mov %%rcx, %%r8; mov %%rcx, "
        "%%r9;"
        "mov %%rcx, %%r10; mov %%rcx, %%r11;"
        "movq %%rcx, %%xmm0; movaps %%xmm0, %%xmm1; movaps %%xmm0, %%xmm2; movaps %%xmm0, %%xmm3;"
        "movaps %%xmm0, %%xmm4; movaps %%xmm0, %%xmm5; movaps %%xmm0, %%xmm6; movaps %%xmm0, %%xmm7"
        :
        :
        : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
          "xmm5", "xmm6", "xmm7", "memory");
    return number_;
  }
  static inline Nest nests_[3];
  static inline uint32_t number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutCounting, NestCalls, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Counting" : "Plain"; });

constexpr uint64_t kDirty = 0xdeadbeef00000000;

TEST_P(NestCalls, GoOnAfterTheLoop) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i64) (local i64)
      i64.const 100
      (loop (local.set 1 (i64.add (local.get 1) (i64.const 1)))
            (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (i64.add (local.get 1)) (i64.add (i64.extend_i32_s (local.get 0))))))",
                         {i32(3)});
  arm(0, [](uint64_t* frame) {
    EXPECT_EQ(static_cast<uint32_t>(frame[0]), 9u);
    EXPECT_EQ(frame[2], 100u) << "what lies below the loop";
    frame[0] = kDirty | 4;
    frame[1] = 20;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(9)}), returns({i64(124)}));
  disarm(0);
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({i64(103)}));
}

TEST_P(NestCalls, GoOnWithTheLoopsResults) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i64) (local i64 i64)
      i64.const 100
      i32.const 7
      (loop (param i32) (result i32 f64 i64)
        drop
        (br_if 0 (i32.const 1) (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))) drop
        (local.get 0) (f64.const 2) (i64.const 6))
      local.set 1 i64.trunc_f64_s local.set 2 i64.extend_i32_u
      local.get 1 i64.add local.get 2 i64.add i64.add)))",
                         {i32(3)});
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({i64(108)})) << "results in a register and in constants";
  arm(0, [](uint64_t* frame) {
    EXPECT_EQ(frame[3], 100u);
    EXPECT_EQ(static_cast<uint32_t>(frame[4]), 7u) << "the loop's parameter";
    frame[4] = kDirty | 30;
    frame[5] = std::bit_cast<uint64_t>(4.0);
    frame[6] = 2000;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(9)}), returns({i64(2134)}));
}

TEST_P(NestCalls, GoOnAtTheEndOfABlock) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i64)
      i64.const 1000
      (block $b (result i64)
        i64.const 5
        (loop $l
          (drop (br_if $b (i64.const 3) (i32.eqz (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
          (br $l))
        unreachable)
      i64.add)))",
                         {i32(3)});
  EXPECT_EQ(instance->call("f", {i32(9)}), returns({i64(1003)}));
  arm(0, [this](uint64_t* frame) {
    EXPECT_EQ(frame[1], 1000u);
    EXPECT_EQ(frame[2], 5u);
    frame[2] = 77;
    return label(0, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(9)}), returns({i64(1077)}));
}

// The loop's branch leaves local 1 in a register, where the code after the block reads it.
TEST_P(NestCalls, LoadLocalsThatTheLabelHasInRegisters) {
  auto instance = warmed(R"((module (memory 1) (data (i32.const 5) "\2a")
    (func (export "f") (param i32 f64 f32 i64) (result f64) (local i32)
      (block $b
        (loop $l
          (local.set 4 (i32.add (local.get 4) (i32.const 1)))
          (local.set 1 (f64.add (local.get 1) (f64.const 0.5)))
          (local.set 2 (f32.add (local.get 2) (f32.const 0.5)))
          (local.set 3 (i64.add (local.get 3) (i64.const 1)))
          (br_if $b (i32.ge_u (local.get 4) (local.get 0)))
          (br $l)))
      (f64.add (f64.add (local.get 1) (f64.promote_f32 (local.get 2)))
        (f64.add (f64.convert_i64_s (local.get 3)) (f64.convert_i32_u (i32.load8_u (local.get 4))))))))",
                         {i32(5), f64(0), f32(0), i64(0)});
  EXPECT_EQ(instance->call("f", {i32(5), f64(0), f32(0), i64(0)}), returns({f64(2.5 + 2.5 + 5 + 42)}));
  arm(0, [this](uint64_t* frame) {
    frame[1] = std::bit_cast<uint64_t>(1000.0);
    frame[2] = kDirty | std::bit_cast<uint32_t>(200.0f);
    frame[3] = 10000;
    frame[4] = kDirty | 5;
    return label(0, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(9), f64(0), f32(0), i64(0)}), returns({f64(11242)}));
}

TEST_P(NestCalls, GoOnWhereTheLoopFellThroughWithItsRegisters) {
  auto instance = warmed(R"((module (memory 1) (data (i32.const 8) "\2a")
    (func (export "f") (param i32) (result i32) (local i32)
      (loop
        (local.set 1 (i32.add (local.get 1) (i32.const 2)))
        (br_if 0 (i32.lt_u (local.get 1) (local.get 0))))
      (i32.load8_u (local.get 1)))))",
                         {i32(8)});
  EXPECT_EQ(instance->call("f", {i32(8)}), returns({i32(42)}));
  arm(0, [](uint64_t* frame) {
    frame[1] = kDirty | 8;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(100)}), returns({i32(42)}));
}

TEST_P(NestCalls, GoOnAtEachTargetOfATable) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i32) (local i32)
      (block $3 (block $2 (block $1
        (loop $l (br_table $1 $2 $3 $l (local.get 0))))
        (return (i32.const 1)))
        (return (i32.const 2)))
      (i32.const 3))))",
                         {i32(0)});
  EXPECT_EQ(instance->call("f", {i32(1)}), returns({i32(2)}));
  for (uint32_t level = 1; level <= 3; ++level) {
    arm(0, [this, level](uint64_t*) { return label(0, level); });
    EXPECT_EQ(instance->call("f", {i32(0)}), returns({i32(level)}));
  }
}

TEST_P(NestCalls, GoOnInALoopAround) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i64) (local i64)
      i64.const 0
      (loop $outer (param i64) (result i64)
        (local.set 1 (i64.add (i64.const 1)))
        i64.const 7
        (loop $inner (result i64)
          (if (i32.gt_u (local.get 0) (i32.const 1)) (then
            (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
            (br $outer (local.get 1))))
          (i64.const 3))
        i64.add (local.get 1) i64.add))))",
                         {i32(3)});
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({i64(13)}));
  calls = 0;
  arm(1, [this](uint64_t* frame) {
    EXPECT_EQ(frame[2], 7u);
    if (frame[1] == 5) {  // the end
      frame[3] = 20;
      return kNestEnded;
    }
    frame[2] = frame[1];
    return label(1, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({i64(32)}));
  EXPECT_EQ(calls, 5);
}

TEST_P(NestCalls, GoOnAfterIfAndElse) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i32) (local i32)
      (local.set 1 (local.get 0))
      (if $if (result i32) (local.get 0)
        (then (loop (br_if $if (i32.const 1) (local.get 0)) drop) (i32.const 2))
        (else (loop (drop (br_if $if (i32.const 3) (i32.eqz (local.get 0))))) (i32.const 4)))
      (i32.add (local.get 1)))))",
                         {i32(0)});
  EXPECT_EQ(instance->call("f", {i32(10)}), returns({i32(11)}));
  arm(0, [this](uint64_t* frame) {
    frame[2] = kDirty | 50;
    return label(0, 1);
  });
  arm(1, [this](uint64_t* frame) {
    frame[1] = 200;
    frame[2] = kDirty | 60;
    return label(1, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(10)}), returns({i32(60)}));
  EXPECT_EQ(instance->call("f", {i32(0)}), returns({i32(260)}));
  arm(1, [](uint64_t*) { return kNestEnded; });
  EXPECT_EQ(instance->call("f", {i32(0)}), returns({i32(4)}));
}

TEST_P(NestCalls, ReturnNothing) {
  auto instance = warmed(R"((module (func (export "f") (param i32)
      i32.const 5 (block (loop (br_if 0 (local.get 0)) (return))) drop)))",
                         {i32(0)});
  arm(0, [this](uint64_t*) { return label(0, 2); });
  EXPECT_EQ(instance->call("f", {i32(1)}), returns({}));
}

TEST_P(NestCalls, ReturnOneResult) {
  const auto expect = [&](const std::string& type, const std::string& value, const Value& result) {
    auto instance =
        warmed("(module (func (export \"f\") (param i32) (result " + type +
                   ") i32.const 5 (loop (br_if 0 (local.get 0)) (return (" + value + "))) unreachable))",
               {i32(0)});
    arm(0, [&](uint64_t* frame) {
      const bool wide = module_->bodies[0].uses_v128;
      frame[wide ? 2 : 1] = result.bits;
      if (wide) frame[3] = result.high;
      return label(0, 1);
    });
    EXPECT_EQ(instance->call("f", {i32(1)}), returns({result})) << type;
  };
  expect("i32", "i32.const 0", i32(77));
  expect("i64", "i64.const 0", i64(~uint64_t{77}));
  expect("f32", "f32.const 0", f32(1.5));
  expect("f64", "f64.const 0", f64(2.5));
  expect("v128", "v128.const i64x2 0 0", v128(1, 2));
  expect("externref", "ref.null extern", externref(0x1234));
}

TEST_P(NestCalls, ReturnManyResults) {
  auto instance =
      warmed(R"((module (func (export "f") (param i32) (result i32 v128 f32 i64 externref) (local v128)
      i32.const 5
      (loop (br_if 0 (local.get 0))
        (return (i32.const 1) (local.get 1) (f32.const 1) (i64.const 1) (ref.null extern)))
      unreachable)))",
             {i32(0)});
  arm(0, [this](uint64_t* frame) {
    frame += 4;
    frame[0] = 1;
    frame[2] = 2;
    frame[3] = 3;
    frame[4] = std::bit_cast<uint32_t>(4.0f);
    frame[6] = 5;
    frame[8] = 6;
    return label(0, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(1)}), returns({i32(1), v128(2, 3), f32(4), i64(5), externref(6)}));
}

TEST_P(NestCalls, KeepVectorsInTheFrame) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result v128) (local v128)
      (block $b (result v128)
        (loop $l (result v128)
          (local.set 1 (i64x2.add (local.get 1) (v128.const i64x2 1 2)))
          (drop (br_if $b (local.get 1) (i32.eqz (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
          (br $l)))
      (i64x2.add (local.get 1)))))",
                         {i32(3)});
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({v128(6, 12)}));
  arm(0, [this](uint64_t* frame) {
    frame[2] = 100;
    frame[3] = 200;
    frame[4] = 1;
    frame[5] = 2;
    return label(0, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(3)}), returns({v128(101, 202)}));
}

TEST_P(NestCalls, AreMadeByEachOfTwoLoops) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i32) (local i32 i32)
      (local.set 2 (local.get 0))
      (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (loop (local.set 1 (i32.add (local.get 1) (i32.const 2)))
            (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
      (local.get 1))))",
                         {i32(3)});
  arm(0, [](uint64_t* frame) {
    frame[2] = 4;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(5)}), returns({i32(8)}));
  arm(1, [](uint64_t* frame) {
    EXPECT_EQ(static_cast<uint32_t>(frame[2]), 4u);
    frame[1] = 99;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(5)}), returns({i32(99)}));
}

TEST_P(NestCalls, LeaveTheStackAsItWas) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i32) (local i32)
      (loop $outer
        (loop $inner (br_if $outer (i32.and (local.get 1) (i32.const 0))))
        (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1))))",
                         {i32(1)});
  calls = 0;
  frame_address = nullptr;
  const void* first = nullptr;
  bool moved = false;
  arm(1, [&](uint64_t* frame) {
    if (!first) first = frame_address;
    moved |= first != frame_address;
    frame[1] += 2;
    return kNestEnded;
  });
  EXPECT_EQ(instance->call("f", {i32(1'000'000)}), returns({i32(2'000'000)}));
  EXPECT_EQ(calls, 1'000'000);
  EXPECT_FALSE(moved);
}

TEST_P(NestCalls, LeaveTheLoopAtItsHeader) {
  auto instance = warmed(R"((module (func (export "f") (param i32) (result i32) (local i32)
      i32.const 40
      (loop (param i32) (result i32)
        i32.const 2 i32.add
        (local.set 1 (i32.add (local.get 1) (i32.const 100)))
        (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (i32.add (local.get 1)))))",
                         {i32(1)});
  const Outcome expected = instance->call("f", {i32(5)});
  EXPECT_EQ(expected, returns({i32(550)}));
  // An iteration of baseline code after each call.
  calls = 0;
  arm(0, [](uint64_t*) { return kNestLeftAfterPoll; });
  EXPECT_EQ(instance->call("f", {i32(5)}), expected);
  EXPECT_EQ(calls, 5);
  // All of the rest, after two iterations of the nest.
  calls = 0;
  arm(0, [this](uint64_t* frame) {
    disarm(0);
    frame[0] = 3;
    frame[1] = kDirty | 200;
    frame[2] = kDirty | 44;
    return kNestLeft;
  });
  EXPECT_EQ(instance->call("f", {i32(5)}), expected);
  EXPECT_EQ(calls, 1);
}

TEST_P(NestCalls, AreMadeInFunctionsWithHandlers) {
  auto instance = warmed(R"((module (tag $t (param i32))
    (func (export "f") (param i32) (result i32) (local i32)
      (block $out (result i32)
        (local.set 1 (block $caught (result i32)
          (try_table (catch $t $caught)
            (if (i32.eq (local.get 0) (i32.const 99)) (then (throw $t (i32.const 3)))))
          (i32.const 2)))
        (loop $l
          (block $inside (result i32)
            (try_table (catch $t $inside) (catch_all $l)
              (if (i32.eq (local.get 0) (i32.const 99)) (then (throw $t (i32.const 3)))))
            (br_if $out (i32.const 1) (i32.eqz (local.get 0))))
          (local.set 1 (i32.add (local.get 1)))
          (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
          (br $l))
        unreachable)
      (i32.add (local.get 1)))))",
                         {i32(2)});
  EXPECT_EQ(instance->call("f", {i32(2)}), returns({i32(5)}));
  EXPECT_EQ(wasm::why_no_nest(*module_, FuncIndex(0), LoopIndex(0)), "");
  arm(0, [this](uint64_t* frame) {
    frame[1] = 10;
    frame[2] = 30;
    return label(0, 1);
  });
  EXPECT_EQ(instance->call("f", {i32(2)}), returns({i32(40)}));
}

TEST_P(NestCalls, ReachSixtyThreeFramesFar) {
  const auto text = [](uint32_t levels) {
    std::string out = "(module (func (export \"f\") (param i32) (result i32) (block $out ";
    for (uint32_t i = 1; i < levels; ++i) out += "(block ";
    out += "(loop (br_if $out (local.get 0)))";
    for (uint32_t i = 1; i < levels; ++i) out += "(local.set 0 (i32.const 3)))";
    return out + ") (i32.add (local.get 0) (i32.const 1))))";
  };
  auto near = warmed(text(63), {i32(1)});
  arm(0, [this](uint64_t* frame) {
    frame[0] = 41;
    return label(0, 63);
  });
  EXPECT_EQ(near->call("f", {i32(1)}), returns({i32(42)}));
  EXPECT_EQ(near->call("f", {i32(0)}), returns({i32(42)}));
  // From further inside there is no table, and remainders enter as ever.
  auto far = warmed(text(64), {i32(1)});
  EXPECT_TRUE(module_->bodies[0].loops[0].too_deep);
  slot(0).store(reinterpret_cast<const void*>(+[](VmContext*, const uint64_t*) -> uint64_t { return 7; }));
  EXPECT_EQ(far->call("f", {i32(1)}), returns({i32(7)}));
}

TEST_P(NestCalls, TakeTablesThatGrowWithTheLoops) {
  const auto bytes = [&](uint32_t loops) {
    std::string text = "(module (func (export \"f\") (param i32) (block $out ";
    for (uint32_t i = 0; i < loops; ++i) text += "(loop ";
    text += "(br_if $out (local.get 0))" + std::string(loops, ')') + ")))";
    warmed(text, {i32(1)});
    return versions_.at(0)->memory.size();
  };
  const size_t once = bytes(1000);
  EXPECT_LE(bytes(2000), 2 * once + once / 10);
}

}  // namespace
}  // namespace hindsight::jit::testing
