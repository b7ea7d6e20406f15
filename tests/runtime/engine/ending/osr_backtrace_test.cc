// Activations that went on in other code in the middle of a loop are shown once, and real ones as often as they are.
#include <gmock/gmock.h>

#include <array>
#include <atomic>

#include "runtime/engine/engine_for_tests.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

struct Way {
  const char* name;
  bool leave = false;         // optimized code is left for other code
  bool for_baseline = false;  // namely for baseline code
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

// Each activation goes round a while, so that it is in the code that its loop went on in, and calls the next.
constexpr std::string_view kOsrGuest = R"((module (memory 1) (tag $oops)
  (func $work (param $n i32)
    (local $i i32) (local $r i32)
    (loop $rounds
      (loop $inner
        (local.set $r (i32.add (i32.mul (local.get $r) (i32.const 31)) (i32.load (i32.and (local.get $i) (i32.const 1020)))))
        (local.set $r (i32.rotl (i32.mul (local.get $r) (local.get $r)) (local.get $i)))
        (i32.store (i32.const 4) (local.get $r))
        (br_if $inner (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1023))))
      (if (i32.eq (local.get $i) (i32.const 4096))
        (then
          (if (local.get $n) (then (call $work (i32.sub (local.get $n) (i32.const 1))))
            (else (call $end)))))
      (br_if $rounds (i32.lt_u (local.get $i) (i32.const 8192)))))
  (global $way (mut i32) (i32.const 0))
  (func $end
    (if (global.get $way) (then (throw $oops)))
    (drop (i32.load (i32.const 70000))))
  (func (export "trap") (param i32) (global.set $way (i32.const 0)) (call $work (local.get 0)))
  (func (export "throw") (param i32) (global.set $way (i32.const 1)) (call $work (local.get 0)))))";

class BacktracesOfLoops : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    EngineConfig config;
    config.tier = TierMode::kOptimized;
    config.profiling = false;
    engine_ = create_engine_for_tests(config, {.enter_at_loops = true,
                                               .leave_at_loops = GetParam().leave,
                                               .leave_for_baseline = GetParam().for_baseline})
                  .value();
    Linker linker(*engine_);
    guest_ = instantiate(linker, *engine_, kOsrGuest);
    ASSERT_NE(guest_, nullptr);
  }
  size_t activations_of_work() const {
    const auto functions = functions_of(guest_->last_trap());
    return static_cast<size_t>(std::ranges::count(functions, "work"));
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(EveryWay, BacktracesOfLoops,
                         testing::Values(Way{"entered"}, Way{"entered_and_left", true},
                                         Way{"entered_and_left_for_baseline", true, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(BacktracesOfLoops, ShowEachActivationOnceInTraps) {
  for (const int depth : {0, 1, 5, 0}) {
    EXPECT_EQ(trap_of(*guest_, "trap", {Value::i32(depth)}), "out of bounds memory access");
    EXPECT_EQ(activations_of_work(), static_cast<size_t>(depth) + 1);
    EXPECT_EQ(functions_of(guest_->last_trap()).back(), "trap");
  }
}

TEST_P(BacktracesOfLoops, ShowEachActivationOnceInExceptions) {
  for (const int depth : {0, 1, 5, 0}) {
    const auto result = guest_->call("throw", std::array{Value::i32(depth)});
    ASSERT_FALSE(result);
    EXPECT_EQ(activations_of_work(), static_cast<size_t>(depth) + 1);
    EXPECT_EQ(functions_of(guest_->last_trap()).back(), "throw");
  }
}

// As a program's own hot loop has it: one activation begins in baseline code and goes on in what was compiled meanwhile.
TEST(BacktracesOfHotLoops, ShowTheirOneActivationOnce) {
  std::atomic<bool> entered{false};
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.log_level = LogLevel::kDebug;
  config.log = [&](LogLevel, std::string_view topic, std::string_view line) {
    // As a whole, or its loop.
    if (topic == "compile" && line.find("run: ") != std::string_view::npos &&
        line.find("(0 OSR entries") == std::string_view::npos)
      entered = true;
  };
  const auto engine = Engine::create(config).value();
  Linker linker(*engine);
  const Patience patience;
  int more = 200;  // rounds, of which each may go on in the new code
  linker.define_function("host", "ends",
                         [&]() -> int32_t { return !patience.lasts() || (entered && --more == 0); });
  const auto guest = instantiate(linker, *engine, R"((module
    (import "host" "ends" (func $ends (result i32)))
    (memory 1)
    (func $run (export "run") (local $i i32)
      (loop $rounds
        (loop $inner
          (i32.store (i32.and (local.get $i) (i32.const 1020)) (i32.mul (local.get $i) (i32.const 31)))
          (br_if $inner (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 0xffff))))
        (if (call $ends) (then (unreachable)))
        (br $rounds)))))");
  EXPECT_EQ(trap_of(*guest, "run"), "unreachable");
  EXPECT_TRUE(entered) << "its loop was never compiled";
  EXPECT_EQ(functions_of(guest->last_trap()), std::vector<std::string>{"run"});
}

}  // namespace
}  // namespace hindsight
