// Tier auto with many threads and at its end. What these tests find, they find under the sanitizers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"
#include "runtime/adaptive/experiments/huge_pages.h"
#include "runtime/engine/engine_for_tests.h"
#include "runtime/engine/handles.h"
#include "tests/log_lines.h"
#include "tests/no_threads.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

std::shared_ptr<Engine> make_auto_engine(EngineConfig config, const TestKnobs& knobs = {}) {
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  auto engine = create_engine_for_tests(std::move(config), knobs);
  EXPECT_TRUE(engine) << engine.error().describe();
  return engine ? *engine : nullptr;
}

std::string functions(uint32_t count) {
  std::string text = "(module";
  for (uint32_t i = 0; i < count; ++i)
    text += fmt::format("(func (export \"f{}\") (param i32) (result i32) local.get 0 i32.const {} i32.mul)",
                        i, i);
  return text + ")";
}

// As an earlier run would have saved it, in a file of this test's own.
std::string profile_of(const Module& module, std::vector<feedback::Episode> episodes,
                       std::vector<feedback::PageEpisode> page_episodes = {}) {
  feedback::ModuleProfile profile;
  profile.hash_hex = module.content_hash_hex();
  profile.episodes = std::move(episodes);
  profile.page_episodes = std::move(page_episodes);
  std::string path = testing::TempDir() + "hindsight_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
  Status saved = feedback::save_profile({.policy = {}, .modules = {std::move(profile)}}, path);
  EXPECT_TRUE(saved) << saved.error().describe();
  return path;
}

feedback::Episode worth_optimizing(uint32_t function, double seconds) {
  feedback::Episode episode;
  episode.id = function + 1;
  episode.evidence.function = FuncIndex(function);
  episode.evidence.seconds_baseline = seconds;
  episode.action = "optimize";
  episode.state = DecisionState::kCompiled;
  return episode;
}

// Every function was worth it.
std::string profile_of(const Module& module, uint32_t count,
                       const std::function<double(uint32_t)>& seconds = {}) {
  std::vector<feedback::Episode> episodes;
  for (uint32_t i = 0; i < count; ++i) episodes.push_back(worth_optimizing(i, seconds ? seconds(i) : 1));
  return profile_of(module, std::move(episodes));
}

TEST(AutomaticTiers, LetGoOfModulesThatEndedBeforeManyOthersDidButNotOfWhatTheyAddUpTo) {
  constexpr uint32_t kFunctions = 3, kLoads = 50, kTold = 32;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  auto engine = make_auto_engine(config);
  std::weak_ptr<const wasm::Module> first;
  for (uint32_t i = 0; i < kLoads; ++i) {
    auto module = load(*engine, functions(kFunctions));
    if (i == 0) first = static_cast<const rt::ModuleHandle&>(*module).code()->module();
    engine->wait_for_compiles();
    Linker linker(*engine);
    auto instance = linker.instantiate(module);
    ASSERT_TRUE(instance) << instance.error().describe();
    EXPECT_EQ((*(*instance)->call("f2", std::vector{Value::i32(4)}))[0].as_i32(), 8);
  }
  const FeedbackReport report = engine->feedback_report();
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(report.functions_optimized, kLoads * kFunctions);
  EXPECT_EQ(report.decisions.size(), kTold * kFunctions);
  EXPECT_EQ(report.modules_forgotten, kLoads - kTold);
  EXPECT_EQ(report.decisions_forgotten, (kLoads - kTold) * kFunctions);
  EXPECT_THAT(report.to_string(), testing::HasSubstr("not told: 54 decisions of 18 modules"));

  const std::string path = testing::TempDir() + "hindsight_forgotten.json";
  ASSERT_TRUE(engine->save_profile(path));
  const auto saved = feedback::load_profile(path);
  ASSERT_TRUE(saved) << saved.error().describe();
  ASSERT_EQ(saved->modules.size(), 1u);
  EXPECT_GT(saved->modules[0].runs, 1) << "all of them are runs of one module";
}

TEST(AutomaticTiers, WithoutAThreadToWatchFromAreAnErrorAndLeaveProfilesAlone) {
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.profile_out = testing::TempDir() + "hindsight_no_thread.json";
  std::remove(config.profile_out.c_str());
  const NoThreads none;
  for (const char* unit : {"auto", "model"}) {
    config.unit = unit;
    const auto engine = Engine::create(config);
    ASSERT_FALSE(engine) << unit;
    EXPECT_EQ(engine.error().kind, ErrorKind::kResource) << unit;
    EXPECT_THAT(engine.error().message, testing::HasSubstr("allow more threads")) << unit;
  }
  EXPECT_FALSE(std::ifstream(config.profile_out).good());
}

TEST(AutomaticTiers, CompileWhatAProfileSaysBeforeTheGuestRuns) {
  constexpr uint32_t kFunctions = 3;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  auto engine = make_auto_engine(config);
  auto module = load(*engine, functions(kFunctions));
  engine->wait_for_compiles();
  EXPECT_EQ(engine->feedback_report().functions_optimized, kFunctions);
}

TEST(AutomaticTiers, CompileTheHottestOfTheFunctionsThatWait) {
  constexpr uint32_t kFunctions = 12;
  const auto heat = [](uint32_t function) { return 1.0 + (5 * function + 3) % kFunctions; };
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions, heat);
  LogLines compiles("compile", /*hold=*/true);
  config.log = compiles.sink();
  auto engine = make_auto_engine(config);
  auto module = load(*engine, functions(kFunctions));
  // All of them wait by now but the first, whose compile has not been logged to the end.
  compiles.let_go();
  engine->wait_for_compiles();
  const std::vector<std::string> lines = compiles.lines();
  ASSERT_EQ(lines.size(), kFunctions);
  std::vector<double> heats;
  for (const std::string& line : lines) {
    unsigned function = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "f%u:", &function), 1) << line;
    heats.push_back(heat(function));
  }
  EXPECT_TRUE(std::is_sorted(heats.begin() + 1, heats.end(), std::greater<>()))
      << testing::PrintToString(heats);
}

// f0 is being compiled, f1 and f2 wait, and then `late` runs on. Which is compiled next?
std::string compiled_next(const std::string& late) {
  std::string text = "(module";
  for (int i = 0; i < 3; ++i)
    text += fmt::format(R"((func (export "f{}") (param i32) (result i32)
      (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 0)))",
                        i);
  EngineConfig config;
  LogLines compiles("compile", /*hold=*/true), decisions("policy");
  config.log = [sinks = std::array{compiles.sink(), decisions.sink()}](LogLevel level, std::string_view topic,
                                                                       std::string_view line) {
    for (const LogSink& sink : sinks) sink(level, topic, line);
  };
  auto engine = make_auto_engine(config);
  auto module = load(*engine, text + ")");
  Linker linker(*engine);
  auto instance = linker.instantiate(module);
  EXPECT_TRUE(instance);
  const auto run_until = [&](const std::string& function, const std::function<bool()>& enough) {
    for (const Patience patience; patience.lasts() && !enough();)
      EXPECT_TRUE((*instance)->call(function, std::array{Value::i32(1'000'000)}));
    EXPECT_TRUE(enough()) << function;
  };
  run_until("f0", [&] { return !compiles.lines().empty(); });
  for (const std::string function : {"f1", "f2"})
    // Or the loop of it: which of them hangs on what compiles take here.
    run_until(function, [&, decided = function + ": "] {
      return std::ranges::any_of(decisions.lines(), [&](const std::string& line) {
        return line.starts_with("optimize ") && line.find(decided) != std::string::npos;
      });
    });
  // Until most of all samples are its own.
  const auto samples = [&] { return engine->feedback_report().counts.attributed; };
  run_until(late, [&, enough = 3 * samples() + 20] { return samples() >= enough; });
  compiles.let_go();
  engine->wait_for_compiles();
  const std::vector<std::string> lines = compiles.lines();
  if (lines.size() < 2) return "";
  const std::string unit = lines[1].substr(0, lines[1].find(':'));
  return unit.substr(unit.rfind(' ') + 1);
}

TEST(AutomaticTiers, CompileFirstWhatGotHotWhileItWaited) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_EQ(compiled_next("f1"), "f1");
  EXPECT_EQ(compiled_next("f2"), "f2");
}

TEST(AutomaticTiers, SayWhyTheyCompileAFunctionAndWhyACompileBeginsAnew) {
  // Two hundred products are used twice, the second time from the last to the first. LLVM computes them once and keeps
  // them, in a frame that only it knows of.
  constexpr int kValues = 200;
  std::string there, back;
  for (int i = 0; i < kValues; ++i) {
    const auto step = [](int n) {
      return fmt::format(
          "(i64.rotl (i64.const 1)) (i64.xor (i64.mul (i64.add (local.get 0) (i64.const {})) (local.get "
          "1)))\n",
          1000 + n * n);
    };
    there += step(i);
    back += step(kValues - 1 - i);
  }
  const std::string guest = fmt::format(
      "(module (memory 1) (func (export \"f\") (param i64 i64) (result i64)\n(i64.const 0)\n{}{}))", there,
      back);
  auto known = load(*make_engine(), guest);
  feedback::Episode episode = worth_optimizing(0, 1);
  episode.reason = "it was hot";
  EngineConfig config;
  config.profile_in = profile_of(*known, {episode});
  LogLines compiles("compile");
  config.log = compiles.sink();
  auto engine = make_auto_engine(config);
  auto module = load(*engine, guest);
  engine->wait_for_compiles();
  ASSERT_FALSE(compiles.lines().empty());
  const std::string line = compiles.lines().front();
  EXPECT_THAT(line, testing::HasSubstr("because: decided in an earlier run: it was hot"));
  EXPECT_THAT(line, testing::ContainsRegex("restarted: a frame of [0-9]+ bytes needs a stack check"));
}

TEST(AutomaticTiers, SayWhatTheOptimizersPassesTook) {
  constexpr uint32_t kFunctions = 3;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  for (const bool wanted : {false, true}) {
    config.time_passes = wanted;
    auto engine = make_auto_engine(config);
    auto module = load(*engine, functions(kFunctions));
    engine->wait_for_compiles();
    const FeedbackReport report = engine->feedback_report();
    EXPECT_EQ(report.optimizer_passes.empty(), !wanted);
    if (!wanted) continue;
    double sum = 0;
    for (const auto& pass : report.optimizer_passes) sum += pass.seconds;
    EXPECT_GT(sum, 0);
    EXPECT_LT(sum, 1.01 * report.optimized_compile_seconds);
    EXPECT_TRUE(std::is_sorted(report.optimizer_passes.begin(), report.optimizer_passes.end(),
                               [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
    // One pass of the middle end and one of code generation.
    for (const char* part : {"InstCombinePass", "Instruction Selection"})
      EXPECT_TRUE(std::ranges::any_of(report.optimizer_passes, [&](const auto& pass) {
        return pass.name.find(part) != std::string::npos;
      })) << part;
    EXPECT_THAT(report.to_string(), testing::HasSubstr("ms in passes of"));
  }
}

TEST(AutomaticTiers, EndWhileCompilesAreQueued) {
  constexpr uint32_t kFunctions = 24;
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), functions(kFunctions)), kFunctions);
  for (int round = 0; round < 3; ++round) {
    auto engine = make_auto_engine(config);
    auto module = load(*engine, functions(kFunctions));
    // The engine's end must wait for the task that runs and for those that the arena has not begun.
  }
}

TEST(AutomaticTiers, CanBeLookedAtWhileGuestsRunAndModulesComeAndGo) {
  auto engine = make_auto_engine({});
  auto module = load(*engine, R"((module (memory 4)
    (func (export "run") (param $n i32) (result i32) (local $at i32) (local $sum i32)
      (loop $again
        (local.set $at (i32.and (i32.add (i32.mul (local.get $at) (i32.const 1103515245)) (i32.const 12345))
                                (i32.const 0x3fffc)))
        (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
        (i32.store (local.get $at) (local.get $n))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))
      (local.get $sum))))");
  std::atomic<int> running{3};
  auto guest = [&] {
    Linker linker(*engine);
    auto instance = linker.instantiate(module).value();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(instance->call("run", std::array{Value::i32(2'000'000)}));
    --running;
  };
  std::thread first(guest), second(guest);
  std::thread loader([&] {
    for (uint32_t i = 0; i < 50; ++i) {
      Linker linker(*engine);
      auto short_lived = linker.instantiate(load(*engine, functions(1 + i % 3))).value();
      EXPECT_EQ(short_lived->call("f0", std::array{Value::i32(7)}).value()[0].as_i32(), 0);
    }
    --running;
  });
  while (running != 0) {
    FeedbackReport report = engine->feedback_report();
    EXPECT_LE(report.counts.attributed, report.counts.samples);
    std::this_thread::yield();
  }
  first.join();
  second.join();
  loader.join();
  engine->wait_for_compiles();
  EXPECT_GE(engine->feedback_report().functions_baseline, 2u);
}

// Chains of one node in the nearest cache: a group of searches only costs. The answers are right all the
// time.
TEST(AutomaticTiers, TakeBackInterleavingThatDoesNotPay) {
  constexpr const char* kGuest = R"((module (memory 1)
    (func (export "probe") (param $n i32) (result i32) (local $p i32) (local $sum i32)
      (loop $l
        (local.set $p (i32.add (i32.const 64) (i32.shl (i32.and (local.get $n) (i32.const 31)) (i32.const 3))))
        (loop $chain
          (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $p))))
          (br_if $chain (local.tee $p (i32.load (local.get $p)))))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $sum))
    (data (i32.const 64) "\00\00\00\00\01\00\00\00\00\00\00\00\02\00\00\00")))";
  const auto text = wasm::assemble_text(kGuest, "guest");
  ASSERT_TRUE(text);
  feedback::Episode episode = worth_optimizing(0, 1);
  // The second load, whose value is the next node.
  const auto first = std::find(text->begin(), text->end(), uint8_t{0x28});
  constexpr std::array<uint8_t, 2> kLoad = {0x28, 0x02};
  const auto second = std::search(first + 2, text->end(), kLoad.begin(), kLoad.end());
  const WasmOffset load_at(static_cast<uint32_t>(second - text->begin()));
  episode.outcomes.settle({jit::ChangeKind::kInterleave, load_at},
                          {.state = feedback::ChangeState::kInTrial, .setting = 16});
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), kGuest), {episode});
  LogLines compiles("compile");
  config.log = compiles.sink();
  auto engine = make_auto_engine(config, {.trial_bias = 0.5});
  auto module = load(*engine, kGuest);
  engine->wait_for_compiles();
  ASSERT_FALSE(compiles.lines().empty());
  EXPECT_THAT(compiles.lines().back(), testing::HasSubstr("interleave at "));
  EXPECT_THAT(compiles.lines().back(), testing::HasSubstr("searches of "));
  Linker linker(*engine);
  auto instance = linker.instantiate(module).value();
  const auto decision = [&] {
    for (const DecisionReport& report : engine->feedback_report().decisions)
      if (report.kind == "interleave") return report;
    return DecisionReport{};
  };
  DecisionState state = DecisionState::kNone;
  for (const Patience patience; patience.lasts() && state != DecisionState::kRolledBack;) {
    EXPECT_EQ(instance->call("probe", std::array{Value::i32(320'000)}).value()[0].as_i32(), 30'000);
    state = decision().state;
  }
  EXPECT_EQ(state, DecisionState::kRolledBack) << decision().outcome;
  engine->wait_for_compiles();
  EXPECT_EQ(instance->call("probe", std::array{Value::i32(320'000)}).value()[0].as_i32(), 30'000);
}

// Nothing is there to be moved before the first touch, so an earlier run's decision is carried out by asking
// the kernel.
TEST(AutomaticTiers, AskForHugePagesBeforeTheFirstTouchWhereAnEarlierRunKeptThem) {
  constexpr const char* kGuest = R"((module (memory (export "memory") 512)
    (func (export "touch") (local $i i32)
      (loop $l
        (i32.store8 (local.get $i) (i32.const 7))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4096))) (i32.const 33554432)))))))";
  const uint64_t bytes = uint64_t{32} << 20;
  feedback::PageEpisode kept, beyond;
  kept.state = DecisionState::kKept;
  kept.measured_gain = 0.25;
  kept.places = {{.memory = 0, .begin = 0, .end = bytes}};
  beyond = kept;  // as a file may say that somebody else wrote
  beyond.places = {{.memory = 0, .begin = bytes, .end = uint64_t{1} << 56},
                   {.memory = 9, .begin = 0, .end = bytes}};
  EngineConfig config;
  config.profile_in = profile_of(*load(*make_engine(), kGuest), {}, {kept, beyond});
  LogLines said("policy");
  config.log = said.sink();
  auto engine = make_auto_engine(config);
  auto module = load(*engine, kGuest);
  Linker linker(*engine);
  auto instance = linker.instantiate(module).value();
  EXPECT_THAT(said.lines(), testing::Contains(testing::HasSubstr("before their first touch")));
  ASSERT_TRUE(instance->call("touch", {}));
  const auto memory = instance->memory("memory");
  ASSERT_TRUE(memory);
  const auto base = reinterpret_cast<uint64_t>(memory->data());
  for (uint64_t at = 0; at < bytes; at += 4096) ASSERT_EQ(static_cast<int>((*memory)[at]), 7);
  std::vector<DecisionState> states;
  for (const DecisionReport& report : engine->feedback_report().decisions)
    if (report.kind == "huge-pages") states.push_back(report.state);
  ASSERT_EQ(states.size(), 2u);
  if (states[0] != DecisionState::kKept) GTEST_SKIP() << "the kernel has no huge pages";
  const std::string setting = [] {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string line;
    std::getline(file, line);
    return line;
  }();
  if (setting.find("[never]") != std::string::npos)
    GTEST_SKIP() << "the system's setting for huge pages is never";
  EXPECT_GE(rt::bytes_on_huge_pages(base, base + bytes), bytes / 2);
}

}  // namespace
}  // namespace hindsight
