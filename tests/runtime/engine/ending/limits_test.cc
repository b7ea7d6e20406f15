// What a guest can make the host hold is bounded by its store's limits.
#include <gmock/gmock.h>

#include <mutex>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<std::shared_ptr<Instance>> instantiate_with(const StoreLimits& limits, std::string_view wat) {
  static const auto engine = make_engine();
  Linker linker(*engine, limits);
  return linker.instantiate(load(*engine, wat));
}

int32_t number(Instance& instance, std::string_view function, std::vector<Value> args = {}) {
  auto result = instance.call(function, args);
  EXPECT_TRUE(result) << result.error().describe();
  return result ? (*result)[0].as_i32() : -12345;
}

TEST(LimitsOfAStore, RefuseTablesThatTogetherTakeTooMuch) {
  const StoreLimits limits{.table_bytes = 8000};
  EXPECT_TRUE(instantiate_with(limits, "(module (table 500 funcref) (table 500 externref))"));
  const auto refused = instantiate_with(limits, "(module (table 500 funcref) (table 501 externref))");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_EQ(refused.error().message,
            "a table of 501 elements would take 4008 bytes besides the 4000 that the store has; the limit "
            "table-bytes allows 8000");
}

TEST(LimitsOfAStore, RefuseATableWithTooManyElements) {
  const auto refused = instantiate_with({.table_elements = 100}, "(module (table 101 funcref))");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a table of 101 elements would take 101 elements; the limit table-elements allows 100");
}

TEST(LimitsOfAStore, MakeTablesStopGrowing) {
  constexpr std::string_view kTables = R"((module
    (table $a 0 funcref) (table $b 0 externref)
    (func (export "a") (param i32) (result i32) (table.grow $a (ref.null func) (local.get 0)))
    (func (export "b") (param i32) (result i32) (table.grow $b (ref.null extern) (local.get 0)))))";
  auto guest = instantiate_with({.table_bytes = 800, .table_elements = 80}, kTables);
  ASSERT_TRUE(guest);
  EXPECT_EQ(number(**guest, "a", {Value::i32(81)}), -1);
  EXPECT_EQ(number(**guest, "a", {Value::i32(70)}), 0);
  EXPECT_EQ(number(**guest, "b", {Value::i32(31)}), -1);
  EXPECT_EQ(number(**guest, "b", {Value::i32(29)}), 0);
  for (int32_t size = 29; size < 30; ++size) EXPECT_EQ(number(**guest, "b", {Value::i32(1)}), size);
  EXPECT_EQ(number(**guest, "b", {Value::i32(1)}), -1);
}

TEST(LimitsOfAStore, BoundItsMemoriesTogether) {
  constexpr std::string_view kMemories = R"((module
    (memory $a 1) (memory $b 1)
    (func (export "a") (param i32) (result i32) (memory.grow $a (local.get 0)))
    (func (export "b") (param i32) (result i32) (memory.grow $b (local.get 0)))))";
  auto guest = instantiate_with({.memory_bytes = 4 * 65536}, kMemories);
  ASSERT_TRUE(guest);
  EXPECT_EQ(number(**guest, "a", {Value::i32(3)}), -1);
  EXPECT_EQ(number(**guest, "a", {Value::i32(2)}), 1);
  EXPECT_EQ(number(**guest, "b", {Value::i32(1)}), -1);
  const auto refused = instantiate_with({.memory_bytes = 65536}, kMemories);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("a memory of 1 pages"), HasSubstr("memory-bytes allows 65536")));
}

TEST(LimitsOfAStore, CountTheTypesOfAModuleOnce) {
  const auto engine = make_engine();
  Linker linker(*engine, {.types = 3});
  const auto first = load(*engine, "(module (type (func)) (type (func (param i32))))");
  EXPECT_TRUE(linker.instantiate(first));
  EXPECT_TRUE(linker.instantiate(first));
  const auto refused =
      linker.instantiate(load(*engine, "(module (type (func)) (type (func (param i64))))", "more"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "module more would take 2 types besides the 2 that the store has; the limit types allows 3");
}

// Each exception holds the one before it.
TEST(LimitsOfAStore, EndAGuestThatKeepsExceptions) {
  constexpr std::string_view kChain = R"((module
    (tag $t (param i64 i64 i64 i64 i64 i64 i64 i64))
    (table $kept 100000 externref)
    (func $again (param $n i32)
      try
        i64.const 1 i64.const 2 i64.const 3 i64.const 4 i64.const 5 i64.const 6 i64.const 7 i64.const 8
        throw $t
      catch_all
        local.get $n
        if
          local.get $n i32.const 1 i32.sub call $again
        end
        rethrow 0
      end)
    (func (export "chain") (param i32) (try (do local.get 0 call $again) (catch_all)))))";
  auto guest = instantiate_with({.exception_bytes = 16 << 10}, kChain);
  ASSERT_TRUE(guest) << guest.error().describe();
  EXPECT_TRUE((*guest)->call("chain", std::vector{Value::i32(10)}));
  EXPECT_THAT(trap_of(**guest, "chain", {Value::i32(3000)}),
              HasSubstr("the limit exception-bytes allows 16384"));
}

constexpr std::string_view kTwoFunctions = R"((module (memory 1)
  (func $small (export "small") (result i32) (i32.const 3))
  (func (export "sum") (param $n i32) (result i32) (local $s i32) (local $i i32)
    (loop $l
      (local.set $s (i32.add (local.get $s) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $s))))";

// The least limit under which baseline code of both functions has room.
uint64_t bytes_of_both() {
  for (uint64_t bytes = 0;; bytes += 64) {
    auto guest = instantiate_with({.code_bytes = bytes}, kTwoFunctions);
    EXPECT_TRUE(guest) << guest.error().describe();
    if ((*guest)->call("small", {}) && (*guest)->call("sum", std::vector{Value::i32(100)})) return bytes;
  }
}

TEST(LimitsOfAStore, EndAGuestThatNeedsTooMuchCode) {
  auto guest = instantiate_with({.code_bytes = 16}, kTwoFunctions);
  ASSERT_TRUE(guest) << guest.error().describe();
  const auto refused = (*guest)->call("small", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kTrap);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("out of resources"), HasSubstr("function small would take "),
                    HasSubstr(" bytes of code; the limit code-bytes allows 16")));
  auto enough = instantiate_with({.code_bytes = bytes_of_both()}, kTwoFunctions);
  EXPECT_EQ(number(**enough, "small"), 3);
  EXPECT_EQ(number(**enough, "sum", {Value::i32(100)}), 0);
}

TEST(LimitsOfAStore, CountTheCodeOfAModuleInEachStoreThatUsesIt) {
  const auto engine = make_engine();
  const auto module = load(*engine, kTwoFunctions);
  Linker large(*engine), small(*engine, {.code_bytes = 16});
  auto early = small.instantiate(module);
  ASSERT_TRUE(early) << early.error().describe();
  auto other = large.instantiate(module);
  ASSERT_TRUE(other);
  EXPECT_EQ(number(**other, "small"), 3);
  EXPECT_EQ(number(**early, "small"), 3) << "is there already";
  EXPECT_THAT(trap_of(**early, "sum", {Value::i32(1)}), HasSubstr("besides the "));
  Linker late(*engine, {.code_bytes = 16});
  const auto refused = late.instantiate(module);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("module guest would take "),
                                             HasSubstr(" bytes of code; the limit code-bytes allows 16")));
  // What it had no room for it has not taken.
  EXPECT_TRUE(late.instantiate(load(*engine, "(module (func (export \"f\")))")));
}

TEST(LimitsOfAStore, KeepOptimizedCodeAwayThatHasNoRoom) {
  const uint64_t limit = bytes_of_both();
  EngineConfig config;
  config.tier = TierMode::kOptimized;
  config.profiling = false;
  config.limits.code_bytes = limit;
  std::mutex mutex;
  std::vector<std::string> lines;
  config.log = [&](LogLevel, std::string_view, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("code-bytes") != line.npos) lines.emplace_back(line);
  };
  const auto engine = Engine::create(config).value();
  Linker linker(*engine);
  auto guest = linker.instantiate(load(*engine, kTwoFunctions));
  ASSERT_TRUE(guest) << guest.error().describe();
  EXPECT_EQ(number(**guest, "sum", {Value::i32(100)}), 0);
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(report.functions_optimized, 0u);
  EXPECT_GE(report.versions_over_limit, 1u);
  EXPECT_THAT(report.to_string(), HasSubstr("not compiled for the limit code-bytes"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("function sum would take "), HasSubstr("said once")));
}

}  // namespace
}  // namespace hindsight
