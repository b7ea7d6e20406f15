// Hosts that change stacks in functions that guests call, and back in whichever order (docs/EMBEDDING.md, "Stacks of the
// host's own").
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/handles.h"
#include "runtime/exec/guest_thread.h"
#include "runtime/exec/quiescence.h"
#include "tests/runtime/engine/ending/fiber.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

struct OwnStack {
  const GuardedStack stack{kStackBytes};
};
class FiberWithStack : OwnStack, public Fiber {
 public:
  explicit FiberWithStack(std::function<void()> body) : Fiber(stack.bytes(), std::move(body)) {}
};

constexpr const char* kGuest = R"((module
  (import "host" "leave" (func $leave))
  (memory 1)
  (tag $e (param i32))
  (func $throw (param i32) (throw $e (local.get 0)))
  (func (export "go") (result i32) (call $leave) (i32.const 5))
  ;; Leaves n times, and counts.
  (func (export "count") (param $n i32) (result i32) (local $i i32)
    (loop $l (call $leave)
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $i))
  (func (export "go_and_trap") (call $leave) (drop (i32.load (i32.const 70000))))
  (func $deeper (param $n i32) (result i32)
    (if (result i32) (i32.eqz (local.get $n)) (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $deeper (i32.sub (local.get $n) (i32.const 1)))))))
  (func (export "go_and_recurse") (param $n i32) (result i32) (call $leave) (call $deeper (local.get $n)))
  (func (export "go_and_catch") (result i32)
    (call $leave)
    (try (result i32) (do (call $throw (i32.const 8)) (i32.const -1)) (catch $e)))
  (func (export "throw_often") (param $n i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (try (result i32) (do (call $throw (i32.const 1)) (i32.const -1)) (catch $e))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))))";

class Fibers : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
#ifdef HINDSIGHT_SANITIZED
    GTEST_SKIP() << "sanitizers know the stacks of threads alone";
#endif
  }
  // A guest in a store of its own, whose `leave` calls this.
  std::shared_ptr<Instance> guest(std::function<void()> leave) {
    Linker linker(*engine_);
    linker.define_function("host", "leave", std::move(leave));
    return instantiate(linker, *engine_, kGuest);
  }
  // Whether code of this engine would be freed if it were retired now.
  bool may_be_freed() const {
    jit::CodeArena& arena = static_cast<rt::EngineHandle&>(*engine_).code().arena();
    const jit::CodeRange all{arena.executable_begin(), arena.executable_end()};
    std::vector<bool> live(1, false);
    rt::scan_guest_threads({&all, 1}, live);
    return !live[0];
  }
  static int32_t result(Instance& instance, const char* name, std::vector<Value> arguments = {}) {
    const auto results = instance.call(name, arguments);
    EXPECT_TRUE(results) << results.error().describe();
    return results ? (*results)[0].as_i32() : -1;
  }
  const std::shared_ptr<Engine> engine_ = make_engine(GetParam());
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Fibers, kEveryMode, mode_name);

TEST_P(Fibers, KeepTheCodeOfAGuestThatWasLeftWhileTheThreadIsInNone) {
  Fiber* fiber = nullptr;
  const auto left = guest([&] { fiber->yield(); });
  FiberWithStack other([&] { EXPECT_EQ(result(*left, "go"), 5); });
  fiber = &other;
  EXPECT_TRUE(may_be_freed());
  other.resume();
  EXPECT_FALSE(may_be_freed());
  other.resume();
  EXPECT_TRUE(other.is_over());
  EXPECT_TRUE(may_be_freed());
}

// The inner guest is above the outer one.
TEST_P(Fibers, KeepTheCodeOfAGuestOnAnotherStackOfTheSameMapping) {
  const Mapping both(2 * kStackBytes);
  std::function<void()> leave_outer;
  const auto outer = guest([&] { leave_outer(); });
  const auto inner = guest([&] { EXPECT_FALSE(may_be_freed()); });
  Fiber upper({both.begin() + kStackBytes, kStackBytes}, [&] { EXPECT_EQ(result(*inner, "go"), 5); });
  Fiber lower({both.begin(), kStackBytes}, [&] { EXPECT_EQ(result(*outer, "go"), 5); });
  leave_outer = [&] { upper.resume(); };
  lower.resume();
  EXPECT_TRUE(lower.is_over());
  EXPECT_TRUE(may_be_freed());
}

TEST_P(Fibers, KeepTheCodeOfTheInnerGuestWhenTheOuterOneEndsFirst) {
  Fiber* fiber = nullptr;
  const auto inner = guest([&] { fiber->yield(); });
  FiberWithStack other([&] { EXPECT_EQ(result(*inner, "go"), 5); });
  fiber = &other;
  const auto outer = guest([&] { other.resume(); });
  EXPECT_EQ(result(*outer, "go"), 5);
  EXPECT_FALSE(may_be_freed());
  other.resume();
  EXPECT_TRUE(may_be_freed());
}

TEST_P(Fibers, LetGuestsTrapRecurseAndCatchAfterOthersHaveRun) {
  Fiber* fiber = nullptr;
  const auto inner = guest([&] { fiber->yield(); });
  FiberWithStack other([&] {
    EXPECT_EQ(trap_of(*inner, "go_and_trap"), "out of bounds memory access");
    EXPECT_EQ(trap_of(*inner, "go_and_recurse", {Value::i32(1'000'000)}), "call stack exhausted");
    EXPECT_EQ(result(*inner, "go_and_catch"), 8);
  });
  fiber = &other;
  const auto outer = guest([&] { other.resume(); });
  EXPECT_EQ(trap_of(*outer, "go_and_trap"), "out of bounds memory access");
  EXPECT_EQ(trap_of(*outer, "go_and_recurse", {Value::i32(1'000'000)}), "call stack exhausted");
  EXPECT_EQ(result(*outer, "go_and_catch"), 8);
  other.resume();
  EXPECT_TRUE(other.is_over());
  EXPECT_TRUE(may_be_freed());
}

TEST_P(Fibers, RunGuestsInTurnsAndEndThemInAnyOrder) {
  constexpr int kFibers = 7;
  struct Turn {
    std::shared_ptr<Instance> guest;
    std::unique_ptr<FiberWithStack> fiber;
  };
  std::vector<Turn> turns(kFibers);
  for (int i = 0; i < kFibers; ++i) {
    Turn& turn = turns[i];
    turn.guest = guest([&turn] { turn.fiber->yield(); });
    // The third ones end first, and so on.
    const int32_t count = 1 + i * 3 % kFibers;
    turn.fiber = std::make_unique<FiberWithStack>([&turn, count] {
      EXPECT_EQ(result(*turn.guest, "count", {Value::i32(count)}), count);
      EXPECT_EQ(trap_of(*turn.guest, "go_and_trap"), "out of bounds memory access");
    });
  }
  const auto own = guest([&] {
    for (const Turn& turn : turns)
      if (!turn.fiber->is_over()) turn.fiber->resume();
  });
  for (int round = 0; round < kFibers + 2; ++round) {
    EXPECT_EQ(result(*own, "go_and_catch"), 8);
    bool all_over = true;
    for (const Turn& turn : turns) all_over = all_over && turn.fiber->is_over();
    EXPECT_EQ(may_be_freed(), all_over) << round;
    EXPECT_EQ(rt::this_guest_thread().inside == 0, all_over);
  }
  EXPECT_TRUE(may_be_freed());
}

TEST_P(Fibers, LetAStoresCallsNestOnSeveralStacks) {
  std::function<void()> leave;
  const auto one = guest([&] { leave(); });
  FiberWithStack other([&] {
    EXPECT_EQ(result(*one, "go"), 5);
    EXPECT_EQ(trap_of(*one, "go_and_trap"), "out of bounds memory access");
  });
  int depth = 0;
  leave = [&] {
    if (++depth == 1) return other.resume();
    EXPECT_EQ(may_be_freed(), false);
  };
  EXPECT_EQ(trap_of(*one, "go_and_trap"), "out of bounds memory access");
  EXPECT_TRUE(other.is_over());
  EXPECT_EQ(result(*one, "go_and_catch"), 8);
  EXPECT_TRUE(may_be_freed());
}

// More than a heap holds before it is collected.
TEST_P(Fibers, LetGuestsThrowWhereTheirStacksCannotBeLookedThrough) {
  constexpr int32_t kMany = 20'000;
  const auto inner = guest([] {});
  const auto outer = guest([&] {
    FiberWithStack other([&] { EXPECT_EQ(result(*inner, "throw_often", {Value::i32(kMany)}), kMany); });
    other.resume();
  });
  EXPECT_EQ(result(*outer, "go_and_catch"), 8);
  EXPECT_EQ(result(*inner, "throw_often", {Value::i32(kMany)}), kMany);
}

}  // namespace
}  // namespace hindsight
