// Jobs that wait until the first code of their unit ran for a while.
#include "runtime/adaptive/functions/second_compiles.h"

#include <gtest/gtest.h>

#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/handles.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight::rt {
namespace {

constexpr FuncIndex kSpin{0};

class SecondCompilesTest : public testing::Test {
 protected:
  SecondCompilesTest() : monitor_(registry_, feedback::Monitor::Config{}) {
    EngineConfig config;
    config.tier = TierMode::kOptimized;
    config.profiling = false;
    engine_ = std::static_pointer_cast<EngineHandle>(create_engine_for_tests(config, {}).value());
    module_ = load(*engine_, R"((module (func (export "spin") (param $n i32)
      (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))))");
    code_ = static_cast<const ModuleHandle&>(*module_).code();
    jit::OptimizeRequest request;
    request.function = kSpin;
    code_->publish(code_->optimize(request).value().version);
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      profiles[code_->module().get()] = monitor_.make_profile(code_->module());
    });
  }
  Job job() {
    Job job;
    job.module = code_->module().get();
    job.code = code_;
    job.plan.function = kSpin;
    feedback::Episode episode;
    episode.evidence.function = kSpin;
    job.episode = decisions_.add(job.module, std::move(episode), 0);
    job.priority = Later();
    return job;
  }
  void run_for(double seconds) {
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      profiles.at(code_->module().get())->counts(kSpin).run_seconds_optimized += seconds;
    });
  }

  jit::CodeRegistry registry_;
  feedback::Monitor monitor_;
  DecisionLog decisions_;
  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::shared_ptr<ModuleCode> code_;
  feedback::PolicyConfig policy_;
  TrialPrice price_{policy_};
  std::vector<Job> queued_;
  SecondCompiles waiting_{monitor_, decisions_, price_,
                          [this](Job job) { queued_.push_back(std::move(job)); }};
};

TEST_F(SecondCompilesTest, WaitUntilTheFirstCodeRanOnHoweverLongThatTakes) {
  run_for(5);  // before it was published
  waiting_.add(job());
  const Round round{.look = true};
  for (int i = 0; i < 1000; ++i) waiting_.round(round);
  run_for(0.004);
  waiting_.round(round);
  EXPECT_TRUE(queued_.empty());
  EXPECT_EQ(waiting_.waiting().size(), 1u);
  run_for(0.017);
  waiting_.round(round);
  ASSERT_EQ(queued_.size(), 1u);
  EXPECT_TRUE(queued_[0].is_second());
  EXPECT_TRUE(waiting_.waiting().empty());
  EXPECT_EQ(decisions_.under_way().size(), 1u) << "until it is compiled";
}

TEST_F(SecondCompilesTest, DoNotWaitWhereTheTimeIsThatOfCallees) {
  Job of_callees = job();
  of_callees.plan.for_callees = true;
  waiting_.add(std::move(of_callees));
  waiting_.round({});
  EXPECT_EQ(queued_.size(), 1u);
}

TEST_F(SecondCompilesTest, WaitForSoMuchTimeThatTrialsMaySaveWhatTheCompileTakes) {
  Job dear = job();
  dear.expected_seconds = 0.1;
  dear.plan.candidates.push_back(
      {.request = {.site = {jit::ChangeKind::kPrefetch, WasmOffset(40)}}, .estimate = {.share = 0.5}});
  waiting_.add(std::move(dear));
  price_.note_compile(0.01, 0.01);  // takes nothing from the guest
  for (int i = 0; i < 18; ++i) price_.note_verdict(false);
  run_for(0.3);  // of which 0.5 may be saved, each second at 0.1 / (1 / 20)
  waiting_.round({});
  EXPECT_TRUE(queued_.empty());
  EXPECT_NE(decisions_.all()[0].state_why.find("That may save 50 % of its time"), std::string::npos)
      << decisions_.all()[0].state_why;
  run_for(0.11);
  waiting_.round({});
  ASSERT_EQ(queued_.size(), 1u);
  EXPECT_NEAR(worth_of(queued_[0].priority), 0.41 * 0.5 / 20 / 0.1, 1e-6);
}

TEST_F(SecondCompilesTest, SayWhereNothingIsExpectedOfThem) {
  Job vain = job();
  vain.expected_seconds = 0.1;
  waiting_.add(std::move(vain));
  run_for(0.3);
  waiting_.round({});
  EXPECT_TRUE(queued_.empty());
  EXPECT_EQ(decisions_.all()[0].state_why,
            "its first code runs, and what is to be tried in it is expected to save nothing so far");
}

TEST_F(SecondCompilesTest, AreDroppedWhereTheFirstCodeIsTakenBackOrGoes) {
  waiting_.add(job());
  EXPECT_TRUE(code_->withdraw(kSpin));
  waiting_.round({.look = true});
  EXPECT_TRUE(waiting_.waiting().empty());
  EXPECT_TRUE(decisions_.under_way().empty()) << "it may be decided on again";
  EXPECT_EQ(decisions_.all()[0].state, DecisionState::kCompiled);

  waiting_.add(job());
  waiting_.forget(*code_);
  EXPECT_TRUE(waiting_.waiting().empty());
  EXPECT_TRUE(decisions_.under_way().empty());
  run_for(1);
  waiting_.round({.look = true});
  EXPECT_TRUE(queued_.empty());
}

}  // namespace
}  // namespace hindsight::rt
