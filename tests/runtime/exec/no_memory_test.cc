// Where the host has no memory left, builtins and host calls trap. The test binary's operator new fails when it is told to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "runtime/engine/engine_for_tests.h"
#include "tests/failing_new.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

// One function for each builtin that WebAssembly code can ask for: it works, or traps.
constexpr const char* kBuiltins[] = {
    "trap",        "stack_check",     "compile_lazily", "memory_grow", "memory_init", "data_drop",
    "memory_copy", "memory_fill",     "notify",         "wait32",      "wait64",      "table_get",
    "table_set",   "table_grow",      "table_fill",     "table_copy",  "table_init",  "elem_drop",
    "throw",       "throw_reference", "host_fails",     "host_throws", "fault",       "out_of_table"};

constexpr std::string_view kGuest = R"((module
  (import "host" "fails" (func $fails))
  (import "host" "throws" (func $throws))
  (memory 1 100)
  (table $t 4 funcref)
  (tag $e (param i64))
  (data $d "0123456789012345")
  (elem $s func $leaf)
  (func $leaf)
  (func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))
  (func $late (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
  (func (export "trap") unreachable)
  (func (export "stack_check") (drop (call $deep (i32.const 0))))
  (func (export "compile_lazily") (drop (call $late (i32.const 0))))
  (func (export "memory_grow") (drop (memory.grow (i32.const 1))))
  (func (export "memory_init") (memory.init $d (i32.const 70000) (i32.const 0) (i32.const 4)))
  (func (export "data_drop") (data.drop $d))
  (func (export "memory_copy") (memory.copy (i32.const 0) (i32.const 0x7fffffff) (i32.const 4)))
  (func (export "memory_fill") (memory.fill (i32.const 0x7fffffff) (i32.const 0) (i32.const 4)))
  (func (export "notify") (drop (memory.atomic.notify (i32.const 1) (i32.const 0))))
  (func (export "wait32") (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 0))))
  (func (export "wait64") (drop (memory.atomic.wait64 (i32.const 0) (i64.const 0) (i64.const 0))))
  (func (export "table_get") (drop (table.get $t (i32.const 0x7fffffff))))
  (func (export "table_set") (table.set $t (i32.const 0x7fffffff) (ref.null func)))
  (func (export "table_grow") (drop (table.grow $t (ref.null func) (i32.const 1000))))
  (func (export "table_fill") (table.fill $t (i32.const 0x7fffffff) (ref.null func) (i32.const 1)))
  (func (export "table_copy") (table.copy (i32.const 0x7fffffff) (i32.const 0) (i32.const 1)))
  (func (export "table_init") (table.init $s (i32.const 0x7fffffff) (i32.const 0) (i32.const 1)))
  (func (export "elem_drop") (elem.drop $s))
  (func (export "throw") (throw $e (i64.const 5)))
  (func (export "host_fails") (call $fails))
  (func (export "host_throws") (call $throws))
  (func (export "throw_reference") (throw_ref (block $b (result exnref)
    (try_table (catch_all_ref $b) (throw $e (i64.const 5))) (unreachable))))
  (func (export "fault") (drop (i32.load (i32.const 0x7fffffff))))
  (func (export "out_of_table") (call_indirect $t (i32.const 99)))))";

class WithoutMemory : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Builtins, WithoutMemory, testing::ValuesIn(kBuiltins),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(WithoutMemory, ABuiltinTrapsAndTheNextCallWorks) {
  const auto engine = make_engine();
  const auto module = load(*engine, kGuest);
  for (long allocations = 0;; ++allocations) {
    ASSERT_LT(allocations, 500) << "never works";
    Linker linker(*engine);
    linker.define_host("host", "fails", {}, [](Caller&, std::span<const Value>, std::span<Value>) -> Status {
      return make_error(ErrorKind::kTrap, "a message that is too long for a string's own room");
    });
    linker.define_host("host", "throws", {}, [](Caller&, std::span<const Value>, std::span<Value>) -> Status {
      throw std::runtime_error("a message that is too long for a string's own room");
    });
    auto guest = linker.instantiate(module);
    ASSERT_TRUE(guest) << guest.error().describe();
    auto function = (*guest)->find_function(GetParam());
    ASSERT_TRUE(function);
    uint64_t slot = 0;
    bool worked = false;
    t_left = allocations;
    try {
      (void)(*guest)->call_raw(*function, {&slot, 1});
      worked = t_left > 0;             // some were left: all that it wants it got
    } catch (const std::bad_alloc&) {  // on this side of the guest, for the embedder
    }
    t_left = -1;
    // What remains can be used.
    auto again = (*guest)->find_function("memory_grow");
    ASSERT_TRUE(again);
    const Status next = (*guest)->call_raw(*again, {&slot, 1});
    EXPECT_TRUE(next) << next.error().describe();
    if (worked) break;
  }
}

// The builtins by which code that is watched tells what it does. That is events that baseline code counts, the words of
// instrumented code, the strips of loops on trial.
struct Watched {
  const char* name;
  EngineConfig config;
  TestKnobs knobs = {};
};
void PrintTo(const Watched& watched, std::ostream* out) {
  *out << watched.name;
}

EngineConfig counting() {
  EngineConfig config;
  config.first_optimized = 1;  // nothing: optimized code does not count
  config.last_optimized = 0;
  return config;
}
EngineConfig instrumented() {
  EngineConfig config;
  config.tier = TierMode::kBaseline;
  config.unit = "model";
  return config;
}
EngineConfig on_trial() {
  EngineConfig config;
  config.tier = TierMode::kOptimized;
  config.profiling = false;
  return config;
}

// More of everything than comes between two events.
constexpr std::string_view kBusy =
    R"((module (memory 4) (table funcref (elem $one $two)) (type $t (func (result i32)))
  (func $one (type $t) (i32.const 1))
  (func $two (type $t) (i32.const 2))
  (func (export "work") (param $n i32) (result i32) (local $s i32) (local $i i32)
    (loop $l
      (local.set $s (i32.add (local.get $s)
        (i32.load (i32.and (i32.load (i32.and (i32.shl (local.get $i) (i32.const 2)) (i32.const 0x3fffc))) (i32.const 0xfffc)))))
      (local.set $s (i32.add (local.get $s) (call_indirect (type $t) (i32.and (local.get $i) (i32.const 1)))))
      (local.set $s (i32.add (local.get $s) (i32.div_u (local.get $i) (i32.add (local.get $n) (i32.const 1)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $s))))";
constexpr int32_t kTurns = 100'000;
constexpr int32_t kAnswer = kTurns / 2 * 3;

class WatchedWithoutMemory : public testing::TestWithParam<Watched> {};
INSTANTIATE_TEST_SUITE_P(Builtins, WatchedWithoutMemory,
                         testing::Values(Watched{"lwp_events", counting()},
                                         Watched{"trace_full", instrumented()},
                                         Watched{"strip_ended", on_trial(), {.random_hints = 1}}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(WatchedWithoutMemory, ABuiltinTrapsAndTheNextCallWorks) {
  const auto made = create_engine_for_tests(GetParam().config, GetParam().knobs);
  ASSERT_TRUE(made) << made.error().describe();
  Engine& engine = **made;
  const auto module = load(engine, kBusy);
  for (long allocations = 0;; ++allocations) {
    ASSERT_LT(allocations, 500) << "never works";
    Linker linker(engine);
    auto guest = linker.instantiate(module);
    ASSERT_TRUE(guest) << guest.error().describe();
    auto function = (*guest)->find_function("work");
    ASSERT_TRUE(function);
    uint64_t slot = kTurns;
    bool worked = false;
    t_left = allocations;
    try {
      worked = (*guest)->call_raw(*function, {&slot, 1}) && t_left > 0;
    } catch (const std::bad_alloc&) {  // on this side of the guest, for the embedder
    }
    t_left = -1;
    if (worked) {
      EXPECT_EQ(static_cast<int32_t>(slot), kAnswer);
    }
    slot = kTurns;
    const Status next = (*guest)->call_raw(*function, {&slot, 1});
    ASSERT_TRUE(next) << next.error().describe();
    EXPECT_EQ(static_cast<int32_t>(slot), kAnswer);
    if (worked) break;
  }
}

}  // namespace
}  // namespace hindsight
