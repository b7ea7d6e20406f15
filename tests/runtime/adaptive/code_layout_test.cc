// Moving optimized code while it runs, below the public API.
#include "runtime/adaptive/experiments/code_layout.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "jit/code/move_code.h"
#include "runtime/adaptive/experiments/call_graph.h"
#include "runtime/engine/handles.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;

// A chain of functions, one that is called through a table, one that nobody calls.
constexpr std::string_view kLayoutGuest = R"((module
  (type $t (func (param i32) (result i32)))
  (table funcref (elem $leaf $idle))
  (func $leaf (export "leaf") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func $idle (export "idle") (param i32) (result i32) (i32.const 5))
  (func $middle (export "middle") (param i32) (result i32)
    (call $leaf (call_indirect (type $t) (call $leaf (local.get 0)) (i32.const 0))))
  (func (export "run") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (call $middle (local.get $i))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))))";
constexpr FuncIndex kLeaf{0}, kIdle{1}, kMiddle{2}, kRun{3};
constexpr int32_t kTimes = 20'000;
constexpr int32_t kAnswer = kTimes / 2 * (kTimes - 1) + 3 * kTimes;

class CodeLayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = std::static_pointer_cast<EngineHandle>(make_engine());
    module_ = load(*engine_, kLayoutGuest);
    linker_ = std::make_unique<Linker>(*engine_);
    guest_ = linker_->instantiate(module_).value();
    monitor_ = std::make_unique<feedback::Monitor>(engine_->code().registry(), feedback::Monitor::Config());
    // Every module is large, and nothing costs anything.
    policy_.itlb_reach_bytes = 1;
    policy_.layout_seconds_per_byte = policy_.layout_seconds_per_function = 0;
    layout_ = std::make_unique<CodeLayout>(
        engine_->code(), *monitor_, policy_, measurement_,
        CodeLayout::Hooks{.enqueue_place = [this] { return placing_ = true; },
                          .on_moved =
                              [this](const wasm::Module*, const ModuleCode::Exchange& pair) {
                                stayed_[pair.to->function.value] = pair.to;
                              },
                          .now_seconds = [] { return 1.0; },
                          .settled = [] { return 10.0; }},
        CodeLayout::Pace{.counting = 5ms, .chunk = 20ms, .patience = 60s});
    for (const FuncIndex f : {kLeaf, kIdle, kMiddle, kRun}) optimize(f);
  }
  void TearDown() override {
    stop();
    stayed_.clear();
  }

  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  std::shared_ptr<jit::CodeVersion> compile(FuncIndex function) {
    jit::OptimizeRequest request;
    request.function = function;
    request.tuning.inline_functions = false;
    request.split_cold = split_cold_;
    auto made = code().optimize(request);
    EXPECT_TRUE(made) << made.error().describe();
    return std::move(made->version);
  }
  void optimize(FuncIndex function) { code().publish(compile(function)); }
  // As many samples in the code of each function.
  void sample(double each) {
    monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
      auto& profile = profiles[code().module().get()];
      if (!profile) profile = std::make_unique<feedback::Profile>(code().module());
      for (const FuncIndex f : {kLeaf, kIdle, kMiddle, kRun})
        for (double i = 0; i < each; ++i)
          profile->add_sample(f, code().module()->body(f).begin, /*optimized_code=*/true, 0.01);
    });
  }
  // A guest that runs, watched by the monitor, until stop().
  void start() {
    thread_ = std::thread([this] {
      auto selection = lwp::select_unit("null").value();
      std::shared_ptr<lwp::Unit> unit = selection.factory->create({}).value();
      ASSERT_TRUE(unit->attach());
      monitor_->attach(unit, std::nullopt);
      while (!done_) {
        const std::vector<hindsight::Value> args = {hindsight::Value::i32(kTimes)};
        const auto result = guest_->call("run", args);
        ASSERT_TRUE(result) << result.error().describe();
        ASSERT_EQ((*result)[0].as_i32(), kAnswer);
        ++runs_;
      }
      monitor_->detach(unit.get());
      unit->detach();
    });
  }
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  DecisionState state() const {
    feedback::ModuleProfile profile;
    layout_->save(static_cast<const ModuleHandle&>(*module_).code()->module().get(), profile);
    return profile.layout_episodes.empty() ? DecisionState::kNone : profile.layout_episodes.back().state;
  }
  // Waits until the guest was called a few times more, if there is one that runs. What is measured over a while in which
  // it had no core is given up.
  void let_guest_run() const {
    const uint64_t runs = runs_;
    for (const Patience patience; thread_.joinable() && runs_ < runs + 2 && patience.lasts();)
      std::this_thread::yield();
  }
  // What the monitor's and the arena's threads would do, until the state is one of these.
  void work_until(const std::vector<DecisionState>& states) {
    const auto code = static_cast<const ModuleHandle&>(*module_).code();
    const Patience patience;
    while (std::find(states.begin(), states.end(), state()) == states.end()) {
      ASSERT_TRUE(patience.lasts()) << "still " << to_string(state());
      let_guest_run();
      layout_->round({.look = true, .modules = {code}});
      if (std::exchange(placing_, false)) layout_->place(stop_);
      std::this_thread::yield();
    }
  }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<const hindsight::Module> module_;
  std::unique_ptr<Linker> linker_;
  std::shared_ptr<hindsight::Instance> guest_;
  feedback::PolicyConfig policy_;
  std::unique_ptr<feedback::Monitor> monitor_;
  Measurement measurement_;
  std::unique_ptr<CodeLayout> layout_;
  std::map<uint32_t, std::shared_ptr<jit::CodeVersion>> stayed_;
  bool placing_ = false, split_cold_ = false;
  std::atomic<bool> stop_{false}, done_{false};
  std::atomic<uint64_t> runs_{0};
  std::thread thread_;
};

TEST_F(CodeLayoutTest, MovesWhatIsCalledWhileItRunsAndKeepsTheFasterPlacement) {
  std::map<uint32_t, std::shared_ptr<jit::CodeVersion>> before;
  for (const FuncIndex f : {kLeaf, kIdle, kMiddle, kRun}) before[f.value] = code().current(f);
  sample(100);
  start();
  work_until({DecisionState::kKept, DecisionState::kRolledBack});
  const uint64_t runs = runs_;
  while (runs_ < runs + 3) std::this_thread::yield();
  stop();

  EXPECT_EQ(code().current(kIdle), before[kIdle.value]) << "nobody called it";
  const bool kept = state() == DecisionState::kKept;
  for (const FuncIndex f : {kLeaf, kMiddle, kRun}) {
    const auto now = code().current(f);
    if (kept)
      EXPECT_EQ(now, stayed_[f.value]);
    else
      EXPECT_EQ(now, before[f.value]);
    // No slot leads to a meter any more.
    EXPECT_EQ(static_cast<InstanceHandle&>(*guest_).inside().func_ref(f)->code.load(), now->entry);
  }
  before.clear();
  EXPECT_EQ(engine_->code().retired().pending(), 3u);
  EXPECT_EQ(engine_->code().collect_retired(), 3u);
}

TEST_F(CodeLayoutTest, MovesTheHotPartAloneAndKeepsTheRestAsLongAsItIsUsed) {
  split_cold_ = true;
  for (const FuncIndex f : {kLeaf, kMiddle, kRun}) optimize(f);
  EXPECT_EQ(engine_->code().collect_retired(), 3u);
  // What is called through the table may be of another type, or nothing.
  const std::shared_ptr<jit::CodeVersion> middle = code().current(kMiddle);
  ASSERT_GT(middle->hot_bytes.value, 0u);
  sample(100);
  start();
  work_until({DecisionState::kKept, DecisionState::kRolledBack});
  stop();
  EXPECT_EQ(engine_->code().retired().pending(), 3u);
  if (state() == DecisionState::kKept) {
    EXPECT_EQ(code().current(kMiddle)->code_size, middle->hot_bytes);
    EXPECT_EQ(code().current(kMiddle)->whole.get(), middle.get());
    EXPECT_EQ(middle->parts.load(), 1u);
    EXPECT_LT(engine_->code().collect_retired(), 3u);
    // The rest goes once nothing leads to it any more.
    stayed_.clear();
    for (const FuncIndex f : {kLeaf, kMiddle, kRun}) EXPECT_TRUE(code().withdraw(f));
    engine_->code().collect_retired();
    engine_->code().collect_retired();
    EXPECT_EQ(engine_->code().retired().pending(), 0u);
  } else {
    EXPECT_EQ(code().current(kMiddle), middle);
    EXPECT_EQ(engine_->code().collect_retired(), 3u);
    EXPECT_EQ(middle->parts.load(), 0u);
  }
}

TEST_F(CodeLayoutTest, PlacesCopiesBehindEachOtherOnAPageOfTheirOwn) {
  const auto places = [&] {
    std::vector<const std::byte*> begins;
    for (const FuncIndex f : {kLeaf, kMiddle, kRun}) {
      const auto version = code().current(f);
      begins.push_back(version->begin());
    }
    std::sort(begins.begin(), begins.end());
    return begins;
  };
  const std::vector<const std::byte*> originals = places();
  sample(100);
  start();
  work_until({DecisionState::kTrial});
  // Until the trial has put the copies in place.
  std::vector<const std::byte*> begins = places();
  while (begins == originals && state() == DecisionState::kTrial) {
    let_guest_run();
    layout_->round({.look = true});
    begins = places();
  }
  ASSERT_NE(begins, originals) << to_string(state());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begins[0]) % jit::kHugeCodePage, 0u);
  EXPECT_LT(begins[2] - begins[0], 8192);
}

TEST_F(CodeLayoutTest, LeavesAloneWhatIsCompiledAnewMeanwhile) {
  sample(100);
  start();
  work_until({DecisionState::kTrial});
  const std::shared_ptr<jit::CodeVersion> newer = compile(kLeaf);
  code().publish(newer);
  work_until({DecisionState::kKept, DecisionState::kRolledBack});
  stop();
  EXPECT_EQ(code().current(kLeaf), newer);
  // Both placements of it and one of each of the others.
  EXPECT_EQ(engine_->code().retired().pending(), 4u);
  EXPECT_EQ(engine_->code().collect_retired(), 4u);
}

TEST_F(CodeLayoutTest, SaysThatThereIsNoThreadToPlaceItOn) {
  sample(100);
  layout_ = std::make_unique<CodeLayout>(
      engine_->code(), *monitor_, policy_, measurement_,
      CodeLayout::Hooks{.enqueue_place = [] { return false; },
                        .on_moved = [](const wasm::Module*, const ModuleCode::Exchange&) {},
                        .now_seconds = [] { return 1.0; },
                        .settled = [] { return 10.0; }},
      CodeLayout::Pace{.counting = 5ms, .chunk = 20ms, .patience = 60s});
  start();
  work_until({DecisionState::kFailed});
  FeedbackReport report;
  layout_->report(report.decisions);
  ASSERT_EQ(report.decisions.size(), 1u);
  EXPECT_EQ(report.decisions[0].outcome, "no thread could be created to place it");
  EXPECT_FALSE(layout_->busy());
}

TEST_F(CodeLayoutTest, GivesUpWhereNobodyCalls) {
  sample(100);
  CodeLayout::Pace quick{.counting = 0ms, .chunk = 0ms, .patience = 5ms};
  layout_ = std::make_unique<CodeLayout>(
      engine_->code(), *monitor_, policy_, measurement_,
      CodeLayout::Hooks{.enqueue_place = [this] { return placing_ = true; },
                        .on_moved = [](const wasm::Module*, const ModuleCode::Exchange&) {},
                        .now_seconds = [] { return 1.0; },
                        .settled = [] { return 10.0; }},
      quick);
  work_until({DecisionState::kFailed});
  EXPECT_EQ(engine_->code().retired().pending(), 0u);
}

TEST_F(CodeLayoutTest, LeavesNothingBehindWhenItsModuleGoesInTheMiddle) {
  sample(100);
  start();
  work_until({DecisionState::kTrial});
  stop();
  const size_t registered = engine_->code().registry().size();
  EXPECT_GT(registered, 4u);
  layout_->forget(code());
  EXPECT_EQ(engine_->code().retired().pending(), 3u);
  EXPECT_EQ(engine_->code().collect_retired(), 3u);
  EXPECT_EQ(engine_->code().registry().size(), registered - 3);
}

TEST_F(CodeLayoutTest, DoesNothingUntilThereIsEvidence) {
  sample(1);
  layout_->round({.look = true, .modules = {static_cast<const ModuleHandle&>(*module_).code()}});
  EXPECT_EQ(state(), DecisionState::kNone);
}

TEST_F(CodeLayoutTest, CountsCallsAlsoOfVersionsPublishedLater) {
  ASSERT_TRUE(code().meter_calls(kLeaf));
  const auto call = [&] {
    const std::vector<hindsight::Value> args = {hindsight::Value::i32(10)};
    return guest_->call("run", args).value()[0].as_i32();
  };
  EXPECT_EQ(call(), 75);
  EXPECT_EQ(code().metered_calls(kLeaf), 30u);
  optimize(kLeaf);
  EXPECT_EQ(call(), 75);
  EXPECT_EQ(code().metered_calls(kLeaf), 60u);
  code().stop_metering(kLeaf);
  EXPECT_EQ(call(), 75);
  EXPECT_EQ(code().metered_calls(kLeaf), 60u);
  // One that nothing leads to follows all the same: a thread may have stopped in it.
  EXPECT_TRUE(code().withdraw(kLeaf));
  EXPECT_EQ(engine_->code().collect_retired(), 2u);
  EXPECT_FALSE(code().meter_calls(kLeaf)) << "it has no code now";
  EXPECT_EQ(call(), 75);
  EXPECT_TRUE(code().meter_calls(kLeaf));
  EXPECT_EQ(call(), 75);
  EXPECT_EQ(code().metered_calls(kLeaf), 90u);
}

TEST_F(CodeLayoutTest, SharesTheCallsOfAFunctionOutAmongThoseThatMayHaveMadeThem) {
  std::vector<std::shared_ptr<jit::CodeVersion>> versions;
  for (const FuncIndex f : {kLeaf, kMiddle, kRun}) versions.push_back(code().current(f));
  feedback::Profile profile(code().module());
  const std::vector<uint64_t> calls = {3000, 1000, 1};
  const jit::CallGraph graph = make_call_graph(*code().module(), &profile, versions, calls);
  ASSERT_EQ(graph.functions.size(), 3u);
  EXPECT_EQ(graph.functions[0].calls, 3000u);
  uint64_t to_leaf = 0, to_middle = 0;
  for (const jit::CallGraph::Call& call : graph.calls) {
    if (call.callee == 0) to_leaf += call.count;
    if (call.callee == 1) to_middle += call.count;
  }
  EXPECT_EQ(to_leaf, 3000u);
  EXPECT_EQ(to_middle, 1000u);
}

TEST_F(CodeLayoutTest, OrdersThoseThatCallEachOtherSideBySide) {
  auto optimizer = engine_->code().optimizer();
  ASSERT_TRUE(optimizer) << optimizer.error().describe();
  jit::CallGraph graph;
  for (int i = 0; i < 6; ++i) graph.functions.push_back({500, 1000});
  // Two trios, mixed.
  graph.calls = {{0, 2, 10, 1000}, {2, 4, 10, 1000}, {1, 3, 10, 900}, {3, 5, 10, 900}, {0, 1, 10, 1}};
  const std::vector<uint32_t> order = (*optimizer)->order_by_calls(graph);
  ASSERT_THAT(order, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
  const auto place = [&](uint32_t f) { return std::find(order.begin(), order.end(), f) - order.begin(); };
  const auto spread = [&](uint32_t a, uint32_t b, uint32_t c) {
    return std::max({place(a), place(b), place(c)}) - std::min({place(a), place(b), place(c)});
  };
  EXPECT_EQ(spread(0, 2, 4), 2);
  EXPECT_EQ(spread(1, 3, 5), 2);
  EXPECT_TRUE((*optimizer)->order_by_calls({}).empty());
}

}  // namespace
}  // namespace hindsight::rt
