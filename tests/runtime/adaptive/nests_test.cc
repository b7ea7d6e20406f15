// Loops that are compiled as nests while their function runs on: programs that are phases in one function.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "jit/wasm/module.h"
#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/handles.h"
#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

constexpr uint32_t kPhases = 4;
constexpr int32_t kTurns = 20'000;  // of a phase's inner loop, for each of its outer loop

// Each phase goes on until the host has seen enough of it, and counts its turns. They do different things to one number, so
// that all of them have to run as often as the counters say.
std::string phases() {
  constexpr std::array<const char*, kPhases> kWork = {
      "(i32.add (i32.mul (local.get $x) (i32.const 1103515245)) (i32.const 12345))",
      "(i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5)))",
      "(i32.rotl (i32.add (local.get $x) (local.get $i)) (i32.const 7))",
      "(i32.sub (i32.mul (local.get $x) (i32.const 69069)) (local.get $i))"};
  std::string text = R"((module
    (import "host" "goes_on" (func $goes_on (param i32) (result i32)))
    (func $main (export "main") (result i32) (local $x i32) (local $i i32)
      (local.set $x (i32.const 1)))";
  for (uint32_t i = 0; i < kPhases; ++i) {
    text += fmt::format(R"(
      (loop $phase
        (local.set $i (i32.const {}))
        (loop $turns
          (local.set $x {})
          (br_if $turns (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (br_if $phase (call $goes_on (i32.const {}))))",
                        kTurns, kWork[i], i);
    text += ")";
  }
  return text + "(local.get $x)))";
}

int32_t expected(const std::array<uint32_t, kPhases>& rounds) {
  uint32_t x = 1;
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    for (uint32_t round = 0; round < rounds[phase]; ++round) {
      for (uint32_t i = kTurns; i > 0; --i) {
        x = phase == 0   ? x * 1103515245 + 12345
            : phase == 1 ? x ^ (x << 5)
            : phase == 2 ? std::rotl(x + i, 7)
                         : x * 69069 - i;
      }
    }
  }
  return static_cast<int32_t>(x);
}

TEST(Nests, AreCompiledForEachPhaseOfAFunctionThatIsCalledOnce) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  LogLines compiles("compile");
  config.log = compiles.sink();
  auto engine = create_engine_for_tests(std::move(config), {});
  ASSERT_TRUE(engine) << engine.error().describe();
  auto module = load(**engine, phases());
  const auto& loops =
      static_cast<const rt::ModuleHandle&>(*module).code()->module()->body(FuncIndex(1)).loops;
  ASSERT_EQ(loops.size(), 2 * kPhases);

  const auto is_compiled = [&](uint32_t phase) {
    return std::ranges::any_of(compiles.lines(), [&](const std::string& line) {
      return line.starts_with(fmt::format("the loop at 0x{:x} of main:", loops[2 * phase].offset.value)) ||
             line.starts_with(fmt::format("the loop at 0x{:x} of main:", loops[2 * phase + 1].offset.value));
    });
  };
  std::array<uint32_t, kPhases> rounds{};
  const Patience patience;
  Linker linker(**engine);
  linker.define_function("host", "goes_on", [&](int32_t phase) -> int32_t {
    rounds[static_cast<uint32_t>(phase)] += 1;
    return patience.lasts() && !is_compiled(static_cast<uint32_t>(phase));
  });
  auto instance = linker.instantiate(module);
  ASSERT_TRUE(instance) << instance.error().describe();
  auto result = (*instance)->call("main", {});
  ASSERT_TRUE(result) << result.error().describe();
  EXPECT_EQ((*result)[0].as_i32(), expected(rounds));
  for (uint32_t phase = 0; phase < kPhases; ++phase) EXPECT_TRUE(is_compiled(phase)) << phase;

  const FeedbackReport report = (*engine)->feedback_report();
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    EXPECT_TRUE(std::ranges::any_of(report.decisions, [&](const DecisionReport& decision) {
      return decision.kind == "optimize" && decision.function == "main" && decision.wasm_offset &&
             *decision.wasm_offset >= loops[2 * phase].offset.value &&
             *decision.wasm_offset < loops[2 * phase].end.value;
    })) << phase;
  }
}

}  // namespace
}  // namespace hindsight
