// Compiles of which nothing new comes: told from those of which something comes, and not published.
#include "runtime/adaptive/functions/recompile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "feedback/profile/profile_file.h"
#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/engine/handles.h"
#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using enum jit::ChangeKind;

constexpr int kCode = 0;  // an address that stands for code

jit::Answer answer(jit::ChangeKind kind, uint32_t at, bool applied) {
  return {.site = {kind, WasmOffset(at)},
          .state = applied ? jit::Answer::State::kApplied : jit::Answer::State::kRefused};
}

struct Made {
  Made() {
    version.tier = jit::Tier::kOptimized;
    version.entry = &kCode;
    version.answers = {answer(jit::ChangeKind::kPrefetch, 10, true),
                       answer(jit::ChangeKind::kValue, 20, true)};
    tell(kValue, 20, jit::UsualValue{.value = 40});
    tell(kInlineCalls, 30, jit::CallTargets{.targets = {{1, 0.6}, {2, 0.4}}});
    tell(kWeighBranches, 40, jit::BranchCounts{.taken = 900, .not_taken = 100});
    version.osr_entries = {{LoopIndex(1), &kCode}};
    version.osr_exits = {{LoopIndex(1), nullptr}};
  }
  template <typename What>
  void tell(jit::ChangeKind kind, uint32_t at, What what) {
    told.push_back({.request = {.site = {kind, WasmOffset(at)}, .what = std::move(what)}});
  }
  // What goes with the first that was told of this kind.
  template <typename What>
  What& first(jit::ChangeKind kind) {
    for (feedback::Candidate& candidate : told)
      if (candidate.kind() == kind) return std::get<What>(candidate.request.what);
    std::abort();
  }
  std::vector<jit::CallTargets::Target>& targets() { return first<jit::CallTargets>(kInlineCalls).targets; }

  jit::CodeVersion version;
  std::vector<feedback::Candidate> told;
};

bool nothing_new(const std::function<void(Made&)>& change, bool loops_wait = true) {
  const Made running;
  Made made;
  change(made);
  return rt::what_is_new({running.version, running.told}, {made.version, made.told}, loops_wait).empty();
}

// What takes over from it without that makes it slower.
TEST(Recompiles, LoseWhatWasWonInTheCodeThatTheyTakeOverFrom) {
  Made made;
  EXPECT_FALSE(rt::has_won(made.version, {})) << "it is in trial";
  EXPECT_TRUE(rt::has_won(made.version, {{{kPrefetch, WasmOffset(10)}, 4}}));
  made.version.answers = {answer(kPrefetch, 10, false)};
  EXPECT_FALSE(rt::has_won(made.version, {{{kPrefetch, WasmOffset(10)}, 4}})) << "it is not in this code";
}

// Its second compile ends when a loop around it gets code: what was to be tried there is tried in that.
TEST(Recompiles, OfLoopsAroundOneThatWaitsForItsOwnTryWhatWasToBeTriedInIt) {
  feedback::FunctionEvidence evidence;
  evidence.function = FuncIndex(3);
  evidence.loops.resize(2);
  evidence.loops[0].offset = WasmOffset(10);
  evidence.loops[0].end = WasmOffset(100);
  evidence.loops[1].offset = WasmOffset(20);
  evidence.loops[1].end = WasmOffset(30);
  const jit::Site within{kPrefetch, WasmOffset(25)}, beside{kPrefetch, WasmOffset(50)};
  evidence.changes.settle(within, feedback::ChangeState::kInTrial);
  evidence.changes.settle(beside, feedback::ChangeState::kInTrial);
  rt::forget_what_waits(evidence, nullptr,
                        {{nullptr, {FuncIndex(2), LoopIndex(0)}}, {nullptr, {FuncIndex(4)}}});
  EXPECT_EQ(evidence.changes.state(within), feedback::ChangeState::kInTrial) << "another function's wait";
  rt::forget_what_waits(evidence, nullptr, {{nullptr, {FuncIndex(3), LoopIndex(1)}}});
  EXPECT_EQ(evidence.changes.state(within), feedback::ChangeState::kNone);
  EXPECT_EQ(evidence.changes.state(beside), feedback::ChangeState::kInTrial);
}

TEST(Recompile, BringsNothingNewWhereAllThatIsNewWasRefused) {
  EXPECT_TRUE(nothing_new([](Made&) {}));
  EXPECT_TRUE(nothing_new([](Made& made) {
    made.version.answers.push_back(answer(jit::ChangeKind::kInterleave, 10, false));
    made.version.answers.push_back(answer(jit::ChangeKind::kSelect, 41, false));
    made.tell(kSelect, 41, jit::BranchCounts());
    made.tell(kValue, 21, jit::UsualValue{.value = 7});
  }));
  EXPECT_TRUE(nothing_new([](Made& made) { made.targets()[0].share = 0.5; }));
  EXPECT_TRUE(nothing_new([](Made& made) { made.version.osr_entries.clear(); }))
      << "the entry that runs stays";
  EXPECT_TRUE(nothing_new([](Made& made) { made.version.osr_exits.clear(); }));
  EXPECT_TRUE(nothing_new(
      [](Made& made) {
        made.version.osr_entries[0].loop = LoopIndex(2);
        made.version.osr_exits.emplace_back().loop = LoopIndex(2);
      },
      /*loops_wait=*/false));
}

TEST(Recompile, BringsSomethingNewWhereAnythingOfItIsOtherwise) {
  const std::vector<std::pair<const char*, std::function<void(Made&)>>> changes = {
      {"a change more",
       [](Made& made) { made.version.answers.push_back(answer(jit::ChangeKind::kSelect, 41, true)); }},
      {"a change less", [](Made& made) { made.version.answers.pop_back(); }},
      {"another number", [](Made& made) { made.first<jit::UsualValue>(kValue).value = 48; }},
      {"another target", [](Made& made) { made.targets()[1].element = 3; }},
      {"another order of targets", [](Made& made) { std::swap(made.targets()[0], made.targets()[1]); }},
      {"a call more",
       [](Made& made) {
         made.tell(kInlineCalls, 31, jit::CallTargets{.targets = {{1, 1}}});
       }},
      {"a body in place more", [](Made& made) { made.version.inlined.push_back(FuncIndex(3)); }},
      {"a branch more", [](Made& made) { made.tell(kWeighBranches, 41, jit::BranchCounts{.taken = 9}); }},
      {"a branch that goes elsewhere",
       [](Made& made) { made.first<jit::BranchCounts>(kWeighBranches).not_taken = 101; }},
      {"a side that lies apart",
       [](Made& made) { made.tell(kSplitCold, 40, jit::BranchCounts{.taken = 900}); }},
      {"an entry for another loop", [](Made& made) { made.version.osr_entries[0].loop = LoopIndex(2); }},
      {"a way out of another loop", [](Made& made) { made.version.osr_exits[0].loop = LoopIndex(2); }},
      {"loop entries alone", [](Made& made) { made.version.entry = nullptr; }},
  };
  for (const auto& [what, change] : changes) EXPECT_FALSE(nothing_new(change)) << what;
}

// A chain of nodes far apart: loads that stall, and of which nobody knows an address ahead of time.
constexpr const char* kChain = R"((module (memory 1024)
  (func (export "link") (param $nodes i32) (local $i i32) (local $p i32)
    (loop $l
      ;; An odd step goes through all of a power of two.
      (local.set $p (i32.and (i32.mul (local.get $i) (i32.const 40503)) (i32.sub (local.get $nodes) (i32.const 1))))
      (i32.store (i32.shl (local.get $p) (i32.const 6))
        (i32.shl (i32.and (i32.mul (i32.add (local.get $i) (i32.const 1)) (i32.const 40503))
                          (i32.sub (local.get $nodes) (i32.const 1))) (i32.const 6)))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $nodes)))))
  (func (export "walk") (param $p i32) (param $steps i32) (result i32)
    (loop $l
      (local.set $p (i32.load (local.get $p)))
      (br_if $l (local.tee $steps (i32.sub (local.get $steps) (i32.const 1)))))
    (local.get $p))))";

TEST(Recompile, OfWhichNothingNewComesIsNotPublished) {
  constexpr uint32_t kNodes = 1u << 20, kSteps = 200'000;
  constexpr int kMostWalks = 100;
  constexpr FuncIndex kWalk(1);
  std::mutex mutex;
  std::vector<std::string> lines;
  EngineConfig config;
  // Compiled when the module is loaded, before anybody knows of a stall.
  feedback::Episode known;
  known.id = 1;
  known.evidence.function = kWalk;
  known.evidence.seconds_baseline = 1;
  known.action = "optimize";
  known.state = DecisionState::kCompiled;
  feedback::ModuleProfile profile;
  profile.hash_hex = load(*make_engine(), kChain)->content_hash_hex();
  profile.episodes = {known};
  config.profile_in = testing::TempDir() + "hindsight_recompile.json";
  ASSERT_TRUE(feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, config.profile_in));
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  // What is left for a chain that stalls is a prefetch, which is refused.
  config.disabled_decisions = {"jump-pointers", "interleave", "huge-pages", "follow-shifts"};
  config.log = [&](LogLevel, std::string_view topic, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (topic == "compile") lines.emplace_back(line);
  };
  auto engine = Engine::create(config).value();
  auto module = load(*engine, kChain);
  Linker linker(*engine);
  auto instance = linker.instantiate(module).value();
  ASSERT_TRUE(instance->call("link", std::array{Value::i32(kNodes)}));
  const auto over = [&] {
    const std::lock_guard lock(mutex);
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("the compile gave nothing new") != std::string::npos;
    });
  };
  const rt::ModuleCode& code = *static_cast<const rt::ModuleHandle&>(*module).code();
  engine->wait_for_compiles();
  std::shared_ptr<jit::CodeVersion> version;
  int32_t at = 0;
  for (int i = 0; i < kMostWalks && !over(); ++i) {
    auto now = code.version(kWalk, jit::Tier::kOptimized);
    if (!over()) version = std::move(now);  // of before
    at = instance->call("walk", std::array{Value::i32(at), Value::i32(kSteps)}).value()[0].as_i32();
  }
  if (!over()) GTEST_SKIP() << "samples did not show that the chain stalls in optimized code";
  engine->wait_for_compiles();
  EXPECT_EQ(code.version(kWalk, jit::Tier::kOptimized), version) << "what ran runs on";
  bool told = false;
  for (const DecisionReport& report : engine->feedback_report().decisions) {
    told |= report.kind == "optimize" && report.state == DecisionState::kRefused &&
            report.state_why == "the running code stays";
    if (report.kind == "prefetch" && report.function == "walk") {
      EXPECT_EQ(report.state, DecisionState::kNotPossible) << report.outcome;
    }
  }
  EXPECT_TRUE(told);
}

TEST(Recompile, ForTrialsEndsBeforeCodeGenerationWhereNoneIsPossible) {
  constexpr uint32_t kNodes = 1u << 20, kSteps = 200'000;
  LogLines log;
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  config.disabled_decisions = {"jump-pointers", "interleave", "speculate", "huge-pages", "follow-shifts"};
  constexpr std::string_view kEnded = "ended before code generation";
  constexpr FuncIndex kWalk(1);
  // All code of it, by which the guest may be running.
  const rt::ModuleCode* code = nullptr;
  const auto running = [&] {
    std::vector<VersionId> all;
    for (const auto& nest : code->nests(kWalk)) all.push_back(nest->id);
    if (const auto whole = code->version(kWalk, jit::Tier::kOptimized)) all.push_back(whole->id);
    return all;
  };
  std::mutex mutex;
  std::vector<VersionId> then;
  config.log = [&, into = log.sink()](LogLevel level, std::string_view topic, std::string_view line) {
    if (line.find(kEnded) != std::string_view::npos) {
      const std::lock_guard lock(mutex);
      if (then.empty()) then = running();
    }
    into(level, topic, line);
  };
  std::shared_ptr<Engine> engine;
  std::shared_ptr<const Module> module;
  std::optional<Linker> linker;
  std::shared_ptr<Instance> instance;
  for (const Patience patience; patience.lasts() && log.count(kEnded) == 0;) {
    // On a busy machine its first code may come so late that all is known by then, and is asked for with it: another go.
    const size_t gone_wrong = log.count("not possible");
    instance.reset();
    linker.reset();
    module.reset();
    engine = Engine::create(config).value();
    module = load(*engine, kChain);
    code = static_cast<const rt::ModuleHandle&>(*module).code().get();
    instance = linker.emplace(*engine).instantiate(module).value();
    ASSERT_TRUE(instance->call("link", std::array{Value::i32(kNodes)}));
    int32_t at = 0;
    while (patience.lasts() && log.count(kEnded) == 0 && log.count("not possible") == gone_wrong)
      at = instance->call("walk", std::array{Value::i32(at), Value::i32(kSteps)}).value()[0].as_i32();
  }
  ASSERT_NE(log.count(kEnded), 0u) << log.text();
  engine->wait_for_compiles();
  {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(then.empty());
    const auto now = running();
    for (const VersionId version : then)
      EXPECT_NE(std::ranges::find(now, version), now.end()) << "what ran runs on";
  }
  EXPECT_GE(log.count("the compile gave nothing new, so the running code stays"), 1u);
  bool refused = false;
  for (const DecisionReport& report : engine->feedback_report().decisions)
    if (report.kind == "prefetch" && report.function == "walk")
      refused |= report.state == DecisionState::kNotPossible && !report.outcome.empty();
  EXPECT_TRUE(refused) << log.text();
}

}  // namespace
}  // namespace hindsight
