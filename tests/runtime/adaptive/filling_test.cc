// Tier auto and a guest that fills its memory, or begins to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/adaptive/experiments/huge_pages.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

// What the engine says, from its own threads; somebody may wait for it.
class Heard {
 public:
  LogSink sink() {
    return [this](LogLevel, std::string_view, std::string_view line) {
      std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      came_.notify_all();
    };
  }
  // The first line with these words, or nothing after a minute.
  std::optional<std::string> wait_for(const std::string& words) {
    std::unique_lock lock(mutex_);
    std::optional<std::string> found;
    came_.wait_for(lock, std::chrono::minutes(1), [&] {
      for (const std::string& line : lines_)
        if (line.find(words) != std::string::npos) found = line;
      return found.has_value();
    });
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> lines_;
};

class MemoryThatIsFilled : public testing::Test {
 protected:
  static constexpr int32_t kBytes = 64 << 20;

  void start(std::vector<std::string> disabled = {}) {
    EngineConfig config;
    config.tier = TierMode::kAuto;
    config.log_level = LogLevel::kDebug;
    config.log = heard_.sink();
    config.disabled_decisions = std::move(disabled);
    auto engine = Engine::create(std::move(config));
    ASSERT_TRUE(engine) << engine.error().describe();
    engine_ = *engine;
    module_ = load(*engine_, R"((module (memory (export "memory") 1024)
      (func (export "fill") (param $from i32) (param $to i32)
        (loop $l
          (i32.store (local.get $from) (i32.const 7))
          (br_if $l (i32.lt_u (local.tee $from (i32.add (local.get $from) (i32.const 1024))) (local.get $to)))))))");
    Linker linker(*engine_);
    instance_ = linker.instantiate(module_).value();
  }
  void fill(int32_t from, int32_t to) {
    ASSERT_TRUE(instance_->call("fill", std::array{Value::i32(from), Value::i32(to)}));
  }
  std::vector<DecisionState> states() const {
    std::vector<DecisionState> states;
    for (const DecisionReport& report : engine_->feedback_report().decisions)
      if (report.kind == "huge-pages") states.push_back(report.state);
    return states;
  }

  // A machine that has small pages at hand and no huge ones.
  static bool slower(const std::string& judged) {
    return judged.find("goes back to small pages") != std::string::npos;
  }

  Heard heard_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const Module> module_;
  std::shared_ptr<Instance> instance_;
};

TEST_F(MemoryThatIsFilled, HasHugePagesFromThereOn) {
  start();
  fill(0, kBytes / 2);
  ASSERT_TRUE(heard_.wait_for("the memory is being filled")) << "nobody saw it";
  fill(kBytes / 2, kBytes);
  const auto judged = heard_.wait_for("huge-pages: ");
  ASSERT_TRUE(judged);
  const auto memory = instance_->memory("memory");
  ASSERT_TRUE(memory);
  for (int32_t at = 0; at < kBytes; at += 1024) ASSERT_EQ(static_cast<int>((*memory)[at]), 7);
  if (judged->find("kernel") != std::string::npos || slower(*judged)) GTEST_SKIP() << *judged;
  EXPECT_THAT(states(), testing::ElementsAre(DecisionState::kKept));
  const auto base = reinterpret_cast<uint64_t>(memory->data());
  EXPECT_GE(rt::bytes_on_huge_pages(base, base + kBytes), uint64_t{kBytes} / 4);
}

TEST_F(MemoryThatIsFilled, HasSmallPagesAgainWhereTheGuestDoesNotGoOn) {
  start();
  fill(0, kBytes / 2);
  ASSERT_TRUE(heard_.wait_for("the memory is being filled")) << "nobody saw it";
  const auto judged = heard_.wait_for("huge-pages: rolled back");
  ASSERT_TRUE(judged);
  EXPECT_THAT(*judged, slower(*judged) ? testing::HasSubstr("goes back to small pages")
                                       : testing::HasSubstr("stopped filling"));
  EXPECT_THAT(states(), testing::Contains(DecisionState::kRolledBack));
  const auto memory = instance_->memory("memory");
  const auto base = reinterpret_cast<uint64_t>(memory->data());
  const uint64_t huge = rt::bytes_on_huge_pages(base, base + kBytes);
  fill(kBytes / 2 + kBytes / 4, kBytes / 2 + kBytes / 4 + 4096);
  EXPECT_EQ(rt::bytes_on_huge_pages(base, base + kBytes), huge);
}

TEST_F(MemoryThatIsFilled, IsNotWaitedForWhereItIsGivenUp) {
  start();
  fill(0, kBytes / 2);
  ASSERT_TRUE(heard_.wait_for("the memory is being filled")) << "nobody saw it";
  instance_.reset();
  ASSERT_TRUE(heard_.wait_for("huge-pages: ")) << "nobody saw that it is gone";
  EXPECT_THAT(states(), testing::ElementsAre(testing::Ne(DecisionState::kTrial)));
}

TEST_F(MemoryThatIsFilled, IsLeftAloneWhereTheDecisionIsSwitchedOff) {
  start({"huge-pages"});
  fill(0, kBytes);
  engine_->wait_for_compiles();
  EXPECT_TRUE(states().empty());
}

}  // namespace
}  // namespace hindsight
