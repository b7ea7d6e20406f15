// Memory that grows by small steps, whose pages are made as it grows.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>

#include "runtime/adaptive/experiments/populate_pages.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

constexpr int32_t kPages = 256;  // of 64 KiB

// grow(pages, every): grows by a page at a time, and writes to one byte in so many of it.
constexpr const char* kGrows = R"((module (memory (export "memory") 1)
  (func (export "grow") (param $pages i32) (param $every i32) (local $at i32) (local $end i32)
    (loop $l
      (local.set $at (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
      (local.set $end (i32.add (local.get $at) (i32.const 65536)))
      (loop $touch
        (i32.store (local.get $at) (i32.const 7))
        (br_if $touch (i32.lt_u (local.tee $at (i32.add (local.get $at) (local.get $every))) (local.get $end))))
      (br_if $l (local.tee $pages (i32.sub (local.get $pages) (i32.const 1))))))))";

class MemoryThatGrows : public testing::Test {
 protected:
  // What was decided, after growing and writing to one byte in so many.
  std::vector<DecisionReport> decisions(int32_t every, std::vector<std::string> disabled = {}) {
    EngineConfig config;
    config.tier = TierMode::kAuto;
    config.disabled_decisions = std::move(disabled);
    auto engine = Engine::create(std::move(config)).value();
    const auto module = load(*engine, kGrows);
    Linker linker(*engine);
    const auto instance = linker.instantiate(module).value();
    EXPECT_TRUE(instance->call("grow", std::array{Value::i32(kPages), Value::i32(every)}));
    const auto memory = instance->memory("memory").value();
    for (uint64_t at = 65536; at < uint64_t{kPages + 1} << 16; ++at) {
      const auto expected = at % static_cast<uint64_t>(every) == 0 ? std::byte{7} : std::byte{0};
      if (memory[at] == expected) continue;
      ADD_FAILURE() << "at " << at;
      break;
    }
    std::vector<DecisionReport> found;
    for (const DecisionReport& report : engine->feedback_report().decisions)
      if (report.kind == "populate") found.push_back(report);
    return found;
  }
};

TEST_F(MemoryThatGrows, HasItsPagesMadeWhereTheGuestTouchesThem) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool can =
      rt::populate_pages(reinterpret_cast<uint64_t>(page), reinterpret_cast<uint64_t>(page) + 4096).error ==
      0;
  ::munmap(page, 4096);
  if (!can) GTEST_SKIP() << "the kernel makes no pages ahead";
  const auto found = decisions(4096);
  ASSERT_EQ(found.size(), 1u);
  // Other programs on the machine may make it any.
  if (found[0].state != DecisionState::kKept) GTEST_SKIP() << "it did not pay here: " << found[0].outcome;
  EXPECT_THAT(found[0].reason, testing::HasSubstr("were touched"));
  // Two steps are watched first, and one in sixteen later.
  EXPECT_THAT(found[0].outcome, testing::HasSubstr("made the pages of 14.9 MiB in 254 steps"));
  EXPECT_THAT(found[0].outcome, testing::HasSubstr("page faults so, and"));
  // One pair at the start, and one for each step that was left later but the last.
  EXPECT_THAT(found[0].outcome, testing::ContainsRegex("medians of 1[5-6] pairs"));
  EXPECT_NE(found[0].measured_gain, 0);
}

TEST_F(MemoryThatGrows, IsLeftToTheGuestWhereItTouchesLittleOfIt) {
  EXPECT_THAT(decisions(32768), testing::IsEmpty());
}

TEST_F(MemoryThatGrows, IsLeftToTheGuestWhereThatIsSwitchedOff) {
  EXPECT_THAT(decisions(4096, {"populate"}), testing::IsEmpty());
}

}  // namespace
}  // namespace hindsight
