#include "runtime/adaptive/compile_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_priority.h"
#include "base/thread_processor.h"
#include "runtime/engine/handles.h"
#include "tests/feedback/silent_unit.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight::rt {
namespace {

class Queue : public testing::Test {
 protected:
  void TearDown() override {
    queue_.stop();
    for (const auto& guest : guests_) monitor_.detach(guest.get());
  }

  // Its compile says that it has begun, and may end once `may_end` is there.
  Job job(uint32_t function, Priority priority) {
    Job job;
    job.module = handle().code()->module().get();
    job.code = handle().code();
    job.plan.function = FuncIndex(function);
    job.plan.action = feedback::Action::kOptimize;
    job.priority = priority;
    return job;
  }
  // One that takes long to compile.
  Job lengthy(uint32_t function, Hot hot) {
    Job made = job(function, hot);
    made.expected_seconds = 0.2;
    return made;
  }
  // All threads that there are for what is not urgent are compiling such jobs until may_end_.
  void occupy(Priority priority = Undo()) {
    const unsigned threads = services_.threads().most();
    begun_ = std::make_unique<std::latch>(threads);
    for (unsigned i = 0; i < threads; ++i) queue_.add(job(kWaits, priority));
    begun_->wait();
  }
  void add_guest() {
    guests_.push_back(std::make_shared<SilentUnit>());
    monitor_.attach(guests_.back(), std::nullopt);
  }
  // As many guests as it takes.
  void leave_one_processor() {
    for (unsigned i = 1; i < usable_processors(); ++i) add_guest();
  }
  // What is to be tried is under way when a job comes that is hot, and worth half a second for each of compiling. How long it gave way.
  double waits_while_hot_is_compiled(Later tried) {
    double gave = 0;
    std::atomic<bool> passed = false;
    begun_ = std::make_unique<std::latch>(1);
    between_passes_ = [&](const Job& waits) {
      gave = queue_.give_way(waits);
      passed = true;
    };
    on_compile_ = [&](uint32_t function) {
      if (function == kWaits) return;
      may_end_.set_value();
      while (!queue_.is_way_given() && !passed) std::this_thread::yield();
    };
    queue_.add(job(kWaits, tried));
    begun_->wait();
    queue_.add(job(1, Hot{.seconds = 1}));
    queue_.wait_until_idle();
    return gave;
  }
  const ModuleHandle& handle() const { return static_cast<const ModuleHandle&>(*module_); }

  static constexpr uint32_t kWaits = 1000;
  const std::shared_ptr<EngineHandle> engine_ = std::static_pointer_cast<EngineHandle>(make_engine());
  const std::shared_ptr<const hindsight::Module> module_ = load(*engine_, "(module (func))");
  CodeServices& services_ = engine_->code();
  const EngineClock clock_;
  DecisionLog decisions_;
  feedback::Monitor monitor_{services_.registry(), feedback::Monitor::Config()};
  SamplingGovernor governor_{services_, monitor_, clock_};
  std::vector<std::shared_ptr<SilentUnit>> guests_;
  std::unique_ptr<std::latch> begun_;
  std::promise<void> may_end_;
  std::shared_future<void> ends_ = may_end_.get_future().share();
  std::mutex mutex_;
  std::vector<uint32_t> compiled_;
  std::function<void(const Job&)> between_passes_ = [](const Job&) {};  // of those that can wait
  std::function<void(uint32_t)> on_compile_ = [](uint32_t) {};
  CompileQueue queue_{services_, monitor_, decisions_, governor_, [this](Job job, ModuleCode&) {
                        const uint32_t function = job.plan.function.value;
                        if (function == kWaits) {
                          begun_->count_down();
                          ends_.wait();
                          between_passes_(job);
                        }
                        const std::lock_guard lock(mutex_);
                        compiled_.push_back(function);
                        on_compile_(function);
                      }};
};

TEST_F(Queue, CompilesWhatRunsInBaselineCodeBesideWhatCanWait) {
  occupy();
  std::latch hot(2);
  on_compile_ = [&](uint32_t function) {
    if (function < kWaits) hot.count_down();
  };
  queue_.add(job(1, Hot{.seconds = 1}));
  queue_.add(job(2, Hot{.seconds = 2}));
  hot.wait();  // for ever, if they waited for the others
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_EQ(compiled_.size(), 2u + services_.threads().most());
  EXPECT_EQ(queue_.load().jobs, 0u);
}

TEST_F(Queue, HasOneOfThoseThatCanWaitGiveWayToWhatRunsInBaselineCode) {
  std::atomic<unsigned> passed = 0;
  between_passes_ = [&](const Job& waits) {
    if (queue_.give_way(waits) == 0) ++passed;
  };
  occupy();
  on_compile_ = [&](uint32_t function) {
    if (function == kWaits) return;
    may_end_.set_value();
    while (!queue_.is_way_given()) std::this_thread::yield();  // for ever, if none did
  };
  queue_.add(job(1, Hot{.seconds = 1}));
  queue_.wait_until_idle();  // for ever, if it was not told to go on
  EXPECT_EQ(passed, services_.threads().most() - 1) << "and no more than one waits";
  EXPECT_FALSE(queue_.is_way_given());
}

TEST_F(Queue, CompilesWhatIsShortBesideWhatIsLongAndComesAfterIt) {
  const unsigned threads = services_.threads().most();
  begun_ = std::make_unique<std::latch>(threads);
  for (unsigned i = 0; i < threads; ++i) {
    queue_.add(lengthy(kWaits, {.seconds = 0.1}));
  }
  begun_->wait();
  std::latch hot(1);
  on_compile_ = [&](uint32_t function) {
    if (function == 1) hot.count_down();
  };
  Job less_hot = job(2, Hot{.seconds = 0.05});
  queue_.add(std::move(less_hot));
  queue_.add(job(1, Hot{.seconds = 1}));
  hot.wait();  // for ever, if it waited for the others
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(compiled_, std::vector<uint32_t>{1}) << "and no other, which comes after them";
  }
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_EQ(compiled_.size(), 2u + threads);
}

// It is in baseline code while it waits.
TEST_F(Queue, GoesByWhatIsLongHasRunSinceItsCompileBegan) {
  const unsigned threads = services_.threads().most();
  begun_ = std::make_unique<std::latch>(threads);
  for (unsigned i = 0; i < threads; ++i) queue_.add(lengthy(kWaits, {.seconds = 0.1}));
  begun_->wait();
  const std::shared_ptr<const wasm::Module> module = handle().code()->module();
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    profiles[module.get()] = std::make_unique<feedback::Profile>(module);
    profiles[module.get()]->counts(FuncIndex(kWaits)).seconds_baseline = 5;
  });
  std::latch hotter(1);
  on_compile_ = [&](uint32_t function) {
    if (function == 2) hotter.count_down();
  };
  queue_.add(job(1, Hot{.seconds = 1}));
  queue_.add(job(2, Hot{.seconds = 10}));
  hotter.wait();
  // Each job has a task, and the one for what goes first has ended.
  while (queue_.load().tasks > threads + 2) std::this_thread::yield();
  EXPECT_EQ(queue_.load().jobs, 1u) << "what is hotter than they were, and is not any more, comes after them";
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_EQ(queue_.load().jobs, 0u);
}

// It began on one thread more, as a task of another kind had the others. That has ended when the hotter one comes.
TEST_F(Queue, HasWhatIsLongGiveWayToWhatComesBeforeItIfGuestsLeaveOneProcessor) {
  leave_one_processor();
  double gave = 0;
  between_passes_ = [&](const Job& waits) { gave = queue_.give_way(waits); };
  const unsigned threads = services_.threads().most();
  std::latch others(threads), others_may_end(1);
  begun_ = std::make_unique<std::latch>(1);
  for (unsigned i = 0; i < threads; ++i)
    ASSERT_TRUE(queue_.run([&] {
      others.count_down();
      others_may_end.wait();
    }));
  others.wait();
  queue_.add(lengthy(kWaits, {.seconds = 0.1}));
  begun_->wait();
  others_may_end.count_down();
  on_compile_ = [&](uint32_t function) {
    if (function == kWaits) return;
    may_end_.set_value();
    while (!queue_.is_way_given()) std::this_thread::yield();  // for ever, if it did not
  };
  queue_.add(lengthy(1, {.seconds = 1}));  // and hotter
  queue_.wait_until_idle();                // for ever, if it was not told to go on
  EXPECT_GT(gave, 0);
  EXPECT_EQ(compiled_, (std::vector<uint32_t>{1, kWaits}));
}

TEST_F(Queue, HasNobodyGiveWayWhereEachHasAProcessor) {
  if (services_.threads().most() < 2) GTEST_SKIP() << "one thread compiles after the other";
  double gave = 0;
  between_passes_ = [&](const Job& waits) { gave = queue_.give_way(waits); };
  begun_ = std::make_unique<std::latch>(1);
  queue_.add(lengthy(kWaits, {.seconds = 0.1}));
  begun_->wait();
  std::latch passed(1);
  on_compile_ = [&](uint32_t function) {
    if (function == kWaits) return passed.count_down();
    may_end_.set_value();
  };
  queue_.add(job(1, Hot{.seconds = 1}));
  queue_.wait_until_idle();
  passed.wait();
  EXPECT_EQ(gave, 0);
}

TEST_F(Queue, HasWhatIsToBeTriedGiveWayToWhatIsWorthMoreIfGuestsLeaveOneProcessor) {
  leave_one_processor();
  EXPECT_GT(waits_while_hot_is_compiled({.seconds = 1, .expected = 1, .saves = 0.25}), 0);
}

TEST_F(Queue, HasWhatIsToBeTriedGoOnWhereItIsWorthMoreThanWhatIsHot) {
  leave_one_processor();
  EXPECT_EQ(waits_while_hot_is_compiled({.seconds = 4, .expected = 1, .saves = 0.25}), 0);
}

// Its code is there, and more of it may be decided meanwhile.
TEST_F(Queue, NamesWhatWaitsForItsSecondCompileUntilThatBegins) {
  begun_ = std::make_unique<std::latch>(services_.threads_for_trials().most());
  for (unsigned i = 0; i < services_.threads_for_trials().most(); ++i) queue_.add(job(kWaits, Later()));
  begun_->wait();
  queue_.add(job(1, Later()));
  EXPECT_EQ(queue_.waiting_for_second(),
            (DecisionLog::Units{{handle().code()->module().get(), jit::Unit{FuncIndex(1)}}}));
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_TRUE(queue_.waiting_for_second().empty());
}

TEST(RightOfWay, IsGivenByAllThatAreWorthLess) {
  RightOfWay right_of_way(RightOfWay::Waiters::kAll);
  right_of_way.take_over(2);
  std::future<double> gave = std::async(std::launch::async, [&] { return right_of_way.give(1); });
  std::future<double> so_did = std::async(std::launch::async, [&] { return right_of_way.give(1.5); });
  while (!right_of_way.is_given()) std::this_thread::yield();
  EXPECT_EQ(right_of_way.give(2), 0);
  right_of_way.give_back_over(2);
  gave.wait();
  so_did.wait();
  EXPECT_FALSE(right_of_way.is_given());
  EXPECT_EQ(right_of_way.give(1), 0);
}

TEST(RightOfWay, IsWaitedForUntilAllHaveGivenItBack) {
  RightOfWay right_of_way;
  right_of_way.take();
  right_of_way.take();
  std::future<double> gave = std::async(std::launch::async, [&] { return right_of_way.give(); });
  while (!right_of_way.is_given()) std::this_thread::yield();
  right_of_way.give_back();
  EXPECT_TRUE(right_of_way.is_given());
  right_of_way.give_back();
  EXPECT_GT(gave.get(), 0);
}

TEST(RightOfWay, IsNotWaitedForWhileNobodyHasIt) {
  RightOfWay right_of_way;
  EXPECT_EQ(right_of_way.give(), 0);
  right_of_way.take();
  std::future<double> gave = std::async(std::launch::async, [&] { return right_of_way.give(); });
  while (!right_of_way.is_given()) std::this_thread::yield();
  EXPECT_EQ(right_of_way.give(), 0) << "one is enough";
  right_of_way.give_back();
  EXPECT_GT(gave.get(), 0);
  EXPECT_EQ(right_of_way.give(), 0);
}

TEST_F(Queue, LeavesWhatCanWaitWaiting) {
  occupy();
  Job for_callees = job(2, Hot{.seconds = 1});
  for_callees.plan.for_callees = for_callees.plan.only_for_callees = true;
  queue_.add(std::move(for_callees));
  queue_.add(job(3, Undo()));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(compiled_.empty()) << "none of them runs in baseline code for want of its own";
  }
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_EQ(compiled_.size(), 2u + services_.threads().most());
}

TEST_F(Queue, CompilesWhatIsToBeTriedOnThreadsOfItsOwn) {
  occupy(Hot());  // worth no more: on one processor it would be waited for
  std::latch tried(2);
  on_compile_ = [&](uint32_t function) {
    if (function < kWaits) tried.count_down();
  };
  queue_.add(job(1, Later()));
  ASSERT_TRUE(queue_.run_for_trials([&] { tried.count_down(); }));
  tried.wait();  // for ever, if it waited for the others
  may_end_.set_value();
  queue_.wait_until_idle();
  EXPECT_EQ(compiled_.size(), 1u + services_.threads().most());
}

TEST_F(Queue, CompilesWhatIsToBeTriedBesideGuestsIfTheyLeaveNoProcessor) {
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  int its = 0;
  on_compile_ = [&](uint32_t) { its = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  leave_one_processor();
  queue_.add(job(1, Later()));
  queue_.wait_until_idle();
  EXPECT_TRUE(its > own || own == kMostNice) << "one is left";
  add_guest();
  queue_.add(job(1, Later()));
  queue_.wait_until_idle();
  EXPECT_EQ(its, own);
}

TEST_F(Queue, CompilesWhatRunsInBaselineCodeOnNoThreadForTrials) {
  const unsigned threads = services_.threads_for_trials().most();
  begun_ = std::make_unique<std::latch>(threads);
  for (unsigned i = 0; i < threads; ++i) queue_.add(job(kWaits, Later()));
  begun_->wait();
  std::latch hot(1);
  on_compile_ = [&](uint32_t function) {
    if (function == 1) hot.count_down();
  };
  queue_.add(job(1, Hot{.seconds = 1}));
  hot.wait();  // for ever, if it waited for the others
  EXPECT_FALSE(queue_.is_way_given());
  may_end_.set_value();
  queue_.wait_until_idle();
}

TEST_F(Queue, CompilesWhatRunsInBaselineCodeBesideTasksOfAnotherKind) {
  const unsigned threads = services_.threads().most();
  std::latch begun(threads), hot(1);
  for (unsigned i = 0; i < threads; ++i)
    ASSERT_TRUE(queue_.run([&] {
      begun.count_down();
      hot.wait();
    }));
  begun.wait();
  on_compile_ = [&](uint32_t) { hot.count_down(); };
  queue_.add(job(1, Hot{.seconds = 1}));
  queue_.wait_until_idle();  // for ever, if it waited for the others
  EXPECT_EQ(compiled_, std::vector<uint32_t>{1});
}

}  // namespace
}  // namespace hindsight::rt
