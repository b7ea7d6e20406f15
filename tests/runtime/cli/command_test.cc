// The built command where its output differs from run to run; transcripts/ has what is the same each time.
#include <sys/resource.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/runtime/cli/command.h"
#include "tests/sanitizers.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Modules that transcripts use as well.
const std::string kFunctions = contents(HINDSIGHT_TRANSCRIPTS "/files/functions.wat");
const std::string kEcho = contents(HINDSIGHT_TRANSCRIPTS "/files/echo.wat");
const std::string kMarker = contents(HINDSIGHT_TRANSCRIPTS "/files/marker.wat");

TEST_F(Command, ATimeoutIsATrap) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const std::string module = file("f.wat", kFunctions);
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        hindsight({"run", "--timeout", "50ms", "--tier", tier, "--invoke", "forever", module});
    EXPECT_EQ(outcome.status, 134) << tier << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("timed out")) << tier;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  }
}

TEST_F(Command, ATimeoutNeedsNoQuotaOfSignals) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const std::string module = file("f.wat", kFunctions);
  // Children have it too; nothing else of this process does.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    const Outcome outcome =
        hindsight({"run", "--timeout", "50ms", "--tier", tier, "--invoke", "forever", module});
    EXPECT_EQ(outcome.status, 134) << tier << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("timed out")) << tier;
  }
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
}

// A copy of the library, with no optimizing tier beside it.
TEST_F(Command, SaysOnceThatThereIsNoOptimizingTierAndDecidesNothingAnyMore) {
  fs::copy_file(HINDSIGHT_LIBRARY, path(HINDSIGHT_LIBRARY_NAME));
  const std::string module = file("spin.wat", R"((module (func (export "spin") (param $n i32) (result i32)
    (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n))))");
  const Outcome outcome = program({"/usr/bin/env", "LD_LIBRARY_PATH=" + path(""), HINDSIGHT_COMMAND, "run",
                                   "-v", "--invoke", "spin", module, "400000000"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "0\n") << outcome.err;
  if (outcome.err.find("no optimizing tier") == std::string::npos)
    GTEST_SKIP() << "it is found elsewhere: " << outcome.err;
  size_t failed = 0;
  for (size_t at = 0; (at = outcome.err.find("cannot be opened", at)) != std::string::npos; ++at) ++failed;
  EXPECT_LE(failed, 8u) << outcome.err;  // compiles that were under way
}

TEST_F(Command, ATimeoutBoundsAStartFunction) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const std::string module =
      file("start.wat", "(module (func $s (loop br 0)) (start $s) (func (export \"_start\")))");
  const Outcome outcome = hindsight({"run", "--timeout", "50ms", module});
  EXPECT_EQ(outcome.status, 134) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("timed out"));
}

TEST_F(Command, SaysNothingOfItsOwnOnOneProcessor) {
  const std::string module =
      file("hot.wat", R"((module (func (export "hot") (param i32) (result i32) (local i32)
    (loop (local.set 1 (i32.xor (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))))");
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // what is started has it too
  for (const char* tier : {"auto", "optimized"}) {
    const Outcome outcome = hindsight({"run", "--tier", tier, "--invoke", "hot", module, "100000000"});
    EXPECT_EQ(outcome.status, 0) << tier;
    EXPECT_EQ(outcome.err, "") << tier;
  }
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(Command, WritesAProfileThatExplainReadsAndAReport) {
  const std::string module = file("f.wat", kFunctions);
  const Outcome run = hindsight({"run", "--profile-out", path("p.profile"), "--report", path("r.html"),
                                 "--invoke", "add", module, "1", "2"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(contents(path("r.html")), HasSubstr("</html>"));
  const Outcome explain = hindsight({"explain", path("p.profile")});
  EXPECT_EQ(explain.status, 0) << explain.err;
  EXPECT_NE(explain.out, "");
  EXPECT_EQ(hindsight({"explain", file("bad.profile", "nonsense")}).status, 1);
  EXPECT_EQ(hindsight({"explain", path("none.profile")}).status, 1);
  EXPECT_EQ(hindsight({"run", "--report", path("no/such/dir.html"), module}).status, 2);
}

TEST_F(Command, RunsAProgramThatSpawnsThreads) {
  for (const char* tier : {"baseline", "optimized", "auto"}) {
    const Outcome run =
        hindsight({"run", std::string("--tier=") + tier, HINDSIGHT_THREADED_PROGRAM, "4", "200000"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, "collatz_threads 23138472 156159\n") << tier;
  }
  const Outcome gather = hindsight({"run", HINDSIGHT_THREADED_GATHER, "2", "16", "12", "5"});
  EXPECT_EQ(gather.status, 0) << gather.err;
  const Outcome slowly =
      hindsight({"run", "--tier=baseline", HINDSIGHT_THREADED_GATHER, "2", "16", "12", "5"});
  EXPECT_EQ(gather.out, slowly.out);
  EXPECT_THAT(gather.out, StartsWith("gather_threads "));
  const Outcome inspected = hindsight({"inspect", HINDSIGHT_THREADED_PROGRAM});
  EXPECT_THAT(inspected.out, HasSubstr("wasi.thread-spawn"));
  EXPECT_THAT(inspected.out, HasSubstr("..1024 pages, shared"));
}

TEST_F(Command, LwpInfoSpeaksToPeopleAndPrograms) {
  const Outcome text = hindsight({"lwp", "info"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("clock"));
  EXPECT_TRUE(nlohmann::json::parse(hindsight({"lwp", "info", "--json"}).out, nullptr, false).is_object());
}

TEST_F(Command, RunsGuestsThatMarkWhatTheyDoAndReportsIt) {
  const std::string marker = file("marker.wat", kMarker);
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    for (const char* feedback : {"on", "off"}) {
      const Outcome run =
          hindsight({"run", "--tier", tier, "--feedback", feedback, "--report", path("r.html"), marker});
      EXPECT_EQ(run.status, 0) << run.err;
      const std::string page = contents(path("r.html"));
      EXPECT_THAT(page, HasSubstr("The guest's own events"));
      EXPECT_THAT(page, HasSubstr("3 events inserted"));
      EXPECT_THAT(page, HasSubstr("build"));
      EXPECT_THAT(page, HasSubstr("phases +0x"));
    }
  }
  EXPECT_EQ(hindsight({"run", "--tier", "baseline", "--unit", "none", marker}).status, 0);
}

TEST_F(Command, TracesRecordsAndShowsThem) {
  const std::string marker = file("marker.wat", kMarker);
  ASSERT_EQ(hindsight({"run", "--trace", path("t.jsonl"), marker}).status, 0);
  const Outcome shown = hindsight({"lwp", "records", path("t.jsonl")});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("phases +0x"));
  EXPECT_THAT(shown.out, HasSubstr("value 0x64, data 0x1, flags 0xb"));
  EXPECT_THAT(shown.out, HasSubstr("\"build\""));
  EXPECT_THAT(shown.out, HasSubstr("3 programmed event"));
  EXPECT_THAT(shown.out, HasSubstr("5 value sample of the guest"));
  EXPECT_THAT(shown.out, HasSubstr(" 0 missed"));
  const Outcome summary = hindsight({"lwp", "records", "--summary", path("t.jsonl")});
  EXPECT_THAT(summary.out, Not(HasSubstr("phases")));
  EXPECT_THAT(hindsight({"lwp", "records", "--limit", "2", path("t.jsonl")}).out, HasSubstr("... "));

  ASSERT_EQ(hindsight({"run", "--trace", path("t.json"), marker}).status, 0);
  const auto chrome = nlohmann::json::parse(contents(path("t.json")), nullptr, false);
  ASSERT_FALSE(chrome.is_discarded());
  size_t marks = 0, counters = 0;
  for (const auto& event : chrome["traceEvents"]) {
    marks += event["ph"] == "i" && event["cat"] == "guest" ? 1 : 0;
    counters += event["ph"] == "C" ? 1 : 0;
  }
  EXPECT_EQ(marks, 3u);
  EXPECT_EQ(counters, 5u);

  ASSERT_EQ(hindsight({"run", "--trace", path("t.lwp"), marker}).status, 0);
  const Outcome bare = hindsight({"lwp", "records", path("t.lwp")});
  EXPECT_EQ(bare.status, 0) << bare.err;
  EXPECT_THAT(bare.out, HasSubstr("3 programmed event"));
}

TEST_F(Command, ATraceIsBoundedAndSaysWhatItLeftOut) {
  const std::string marker = file("marker.wat", kMarker);
  const Outcome run = hindsight({"run", "--trace", path("t.jsonl"), "--trace-limit", "4", marker});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("the trace holds 4 records; "));
  const Outcome shown = hindsight({"lwp", "records", path("t.jsonl")});
  EXPECT_THAT(shown.out, HasSubstr("4 records: "));
  EXPECT_THAT(shown.out, Not(HasSubstr(" 0 left out")));
}

TEST_F(Command, TopWritesPlainTextWhereThereIsNoTerminal) {
  const Outcome outcome = hindsight({"top", file("echo.wat", kEcho)});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("hindsight top"));
  EXPECT_THAT(outcome.err, HasSubstr("decisions"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("echo.wat"));
}

// ---------------------------------------------------------------- bench

TEST_F(Command, BenchMeasuresAFileInEveryModeAndWritesAllFigures) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome outcome =
      hindsight({"bench", echo, "--runs", "2", "--json", path("b.json"), "--html", path("b.html")});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("[1/1] file/echo"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1 workloads answered right"));
  const auto json = nlohmann::json::parse(contents(path("b.json")), nullptr, false);
  ASSERT_TRUE(json.is_object());
  for (const char* key : {"cpu", "cores", "kernel", "page_bytes", "unit"}) {
    EXPECT_TRUE(json["machine"].contains(key)) << key;
  }
  ASSERT_EQ(json["workloads"].size(), 1u);
  const auto& workload = json["workloads"][0];
  EXPECT_EQ(workload["name"], "echo");
  EXPECT_EQ(workload["answers_ok"], true);
  for (const char* mode : {"baseline", "plain", "feedback"}) {
    EXPECT_EQ(workload["modes"][mode]["runs"], 2) << mode;
    ASSERT_EQ(workload["modes"][mode]["process_cpu_s"].size(), 2u) << mode;
    EXPECT_GT(workload["modes"][mode]["process_cpu_s"][0].get<double>(), 0) << mode;
    EXPECT_GT(workload["modes"][mode]["median_s"].get<double>(), 0) << mode;
    EXPECT_LE(workload["modes"][mode]["min_s"], workload["modes"][mode]["max_s"]) << mode;
  }
  EXPECT_GT(workload["speedup"]["feedback_vs_plain"]["median"].get<double>(), 0);
  EXPECT_THAT(contents(path("b.html")), HasSubstr("</html>"));
}

TEST_F(Command, BenchRunsSeveralInstancesAtOnceAndWantsOneAnswerOfThem) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome outcome =
      hindsight({"bench", echo, "--runs", "1", "--instances", "3", "--json", path("b.json")});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1 workloads answered right"));
  const auto json = nlohmann::json::parse(contents(path("b.json")), nullptr, false);
  EXPECT_EQ(json["settings"]["instances"], 3);
  const std::string random = file("random.wat", R"((module
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1) (data (i32.const 0) "\10\00\00\00\10\00\00\00")
    (func (export "_start")
      (drop (call $random (i32.const 16) (i32.const 16)))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))))");
  const Outcome different =
      hindsight({"bench", random, "--runs", "1", "--modes", "baseline", "--instances", "2"});
  EXPECT_EQ(different.status, 1) << different.out;
  EXPECT_THAT(different.out, HasSubstr("answered other than the first"));
  EXPECT_EQ(hindsight({"bench", echo, "--instances", "0"}).status, 2);
  EXPECT_EQ(hindsight({"bench", echo, "--instances", "2", "--pin"}).status, 2);
}

TEST_F(Command, BenchTakesAListOfModesBeforeAndBehindTheWorkload) {
  const std::string echo = file("echo.wat", kEcho);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"bench", "--modes", "optimized,feedback", echo, "--runs", "1"},
           {"bench", echo, "--runs", "1", "--modes", "optimized,feedback"}}) {
    const Outcome outcome = hindsight(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("modes optimized, feedback"));
    EXPECT_THAT(outcome.out, HasSubstr("1 of 1 workloads answered right"));
  }
}

// Runs a loop as often as its argument says, and prints a digest of what each time gave, or the same for any number.
std::string repeating(bool forgets) {
  return R"((module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func $number (param $at i32) (result i32) (local $n i32)
      (loop $more
        (if (i32.load8_u (local.get $at)) (then
          (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 10)) (i32.sub (i32.load8_u (local.get $at)) (i32.const 48))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $more))))
      (local.get $n))
    (func (export "_start") (local $left i32) (local $i i32) (local $digest i32)
      (drop (call $args (i32.const 64) (i32.const 128)))
      (local.set $left (call $number (i32.load (i32.const 68))))
      (loop $again
        (local.set $i (i32.const 100000))
        (loop $turns
          (local.set $digest (i32.add (i32.mul (local.get $digest) (i32.const 1664525)) (local.get $i)))
          (br_if $turns (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (i32.store (i32.const 0) (i32.const 8)) (i32.store (i32.const 4) (i32.const 8))
      (loop $digits
        (i32.store8 (i32.add (local.get $left) (i32.const 8))
          (i32.add (i32.const 97) (i32.and (i32.const 15) )" +
         std::string(forgets ? "(i32.const 1)"
                             : "(i32.shr_u (local.get $digest) (i32.mul (local.get $left) (i32.const 4)))") +
         R"()))
        (br_if $digits (i32.lt_u (local.tee $left (i32.add (local.get $left) (i32.const 1))) (i32.const 8))))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32))))))";
}

TEST_F(Command, BenchRunsSetsOfOthersByPathsBesideTheirManifest) {
  ASSERT_TRUE(fs::create_directories(path("set/programs")));
  file("set/programs/mine.wat", repeating(false));
  const Outcome alone = hindsight({"run", path("set/programs/mine.wat"), "3"});
  ASSERT_EQ(alone.status, 0) << alone.err;
  const nlohmann::json workload{{"name", "mine"},
                                {"suite", "ours"},
                                {"wasm", "programs/mine.wat"},
                                {"args", nlohmann::json::array({"3"})},
                                {"expected", alone.out}};
  const std::string manifest =
      file("set/list.json", nlohmann::json{{"workloads", nlohmann::json::array({workload})}}.dump());
  const Outcome outcome =
      hindsight({"bench", "--manifest", manifest, "ours", "--modes", "baseline,plain", "--runs", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("[1/1] ours/mine"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1 workloads answered right"));
}

TEST_F(Command, RunsWithSamplesOfTimeAloneWhereFeedbackIsOff) {
  const std::string program = file("work.wat", repeating(false));
  const Outcome counted = hindsight({"run", "-v", "--feedback", "off", program, "4000"});
  const Outcome timed = hindsight({"run", "-v", "--feedback", "off", "--unit", "time", program, "4000"});
  EXPECT_EQ(timed.status, 0) << timed.err;
  EXPECT_EQ(timed.out, counted.out);
  EXPECT_THAT(timed.err, HasSubstr("unit clock"));
  EXPECT_THAT(timed.err, HasSubstr("optimize")) << "what is hot is found out without counts";
  const Outcome refused = hindsight({"run", "--unit", "time", program, "1"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("it is for tier auto without feedback"));
}

TEST_F(Command, BenchComparesFeedbackWithAndWithoutSomeOfItsDecisions) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome outcome = hindsight({"bench", echo, "--runs", "1", "--modes",
                                     "plain,optimized,pages,pages+loads,feedback,feedback-calls", "--without",
                                     "values", "--without", "branch", "--json", path("b.json")});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("in every mode without values, branch"));
  const auto json = nlohmann::json::parse(contents(path("b.json")), nullptr, false);
  EXPECT_EQ(json["settings"]["without"], nlohmann::json({"values", "branch"}));
  for (const char* pair :
       {"feedback_vs_plain", "pages_vs_optimized", "feedback_vs_feedback-calls", "optimized_vs_plain"})
    EXPECT_TRUE(json["workloads"][0]["speedup"].contains(pair)) << pair;
}

TEST_F(Command, BenchSplitsAGainByWhatEachFamilyAdds) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome outcome = hindsight(
      {"bench", echo, "--runs", "1", "--split", "--json", path("b.json"), "--html", path("b.html")});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("counting +pages +loads +branches +calls +values +entry +together"));
  const auto json = nlohmann::json::parse(contents(path("b.json")), nullptr, false);
  ASSERT_EQ(json["split"].size(), 7u);
  double product = 1;
  for (const auto& step : json["split"])
    product *= json["workloads"][0]["speedup"][step["speedup"].get<std::string>()]["rounds"][0].get<double>();
  const double all = json["workloads"][0]["speedup"]["feedback_vs_plain"]["rounds"][0];
  EXPECT_NEAR(product / all, 1, 1e-9);
  EXPECT_THAT(contents(path("b.html")), HasSubstr("What each family of decisions adds"));
  EXPECT_EQ(hindsight({"bench", echo, "--split", "--modes", "plain"}).status, 2);
}

TEST_F(Command, BenchRunsAtLengthsOfOnesChoice) {
  file("work.wat", repeating(false));
  file("idle.wat", repeating(true));
  const std::string manifest = file("m.json", R"({"workloads": [
    {"name": "work", "suite": "s", "wasm": "work.wat", "args": ["200"], "length_argument": 0, "expected": ""},
    {"name": "idle", "suite": "s", "wasm": "idle.wat", "args": ["200"], "length_argument": 0, "expected": ""}]})");
  const Outcome outcome = hindsight({"bench", "--manifest", manifest, "work", "--lengths", "0.15,0.3",
                                     "--runs", "1", "--json", path("b.json"), "--html", path("b.html")});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(contents(path("b.json")), nullptr, false);
  ASSERT_EQ(json["workloads"].size(), 2u) << outcome.err;
  EXPECT_EQ(json["workloads"][0]["length_s"], 0.15);
  EXPECT_EQ(json["workloads"][1]["suite"], "0.3 s");
  EXPECT_THAT(contents(path("b.html")), HasSubstr("by the length of the run"));
  const Outcome refused =
      hindsight({"bench", "--manifest", manifest, "idle", "--lengths", "0.15,0.3", "--runs", "1"});
  EXPECT_EQ(refused.status, 1) << refused.out;
  EXPECT_THAT(refused.out, HasSubstr("so its answer does not show its work"));
  const Outcome unknown = hindsight({"bench", path("work.wat"), "--lengths", "1"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("nothing says which argument is its length"));
}

TEST_F(Command, BenchFailsWhenAnAnswerIsWrong) {
  file("echo.wat", kEcho);
  const std::string manifest = file(
      "manifest.json",
      R"({"workloads": [{"name": "e", "suite": "s", "wasm": "echo.wat", "args": [], "expected": "something else\n"}]})");
  const Outcome outcome = hindsight({"bench", "--manifest", manifest, "--modes", "baseline", "--runs", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("WRONG"));
  EXPECT_THAT(outcome.out, HasSubstr("0 of 1 workloads answered right"));
}

TEST_F(Command, BenchCountsTrapsAndExitStatusesAsWrongAnswers) {
  const std::string trap = file("trap.wat", R"((module (func (export "_start") unreachable)))");
  const Outcome outcome = hindsight({"bench", trap, "--modes", "baseline", "--runs", "1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("unreachable"));
}

TEST_F(Command, RunsTheSecondTimeWithTheCodeOfTheFirst) {
  const std::string module = file("functions.wat", kFunctions);
  const std::vector<std::string> words = {
      "run", "-v", "--tier", "optimized", "--code-cache", path("code"), "--invoke", "add", module, "3", "4"};
  const Outcome first = hindsight(words);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, "7\n");
  EXPECT_THAT(first.err, HasSubstr("functions kept"));
  const Outcome second = hindsight(words);
  EXPECT_EQ(second.out, "7\n");
  EXPECT_THAT(second.err, HasSubstr("1 functions, "));
  EXPECT_THAT(second.err, Not(HasSubstr("functions kept")));

  const Outcome info = hindsight({"cache", "info", "--code-cache", path("code")});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("1 files"));
  EXPECT_THAT(info.out, HasSubstr("functions.wat, 1 functions; tier optimized"));
  const auto json =
      nlohmann::json::parse(hindsight({"cache", "info", "--json", "--code-cache", path("code")}).out);
  EXPECT_EQ(json["files"][0]["functions"], 1);
  EXPECT_THAT(hindsight({"cache", "clear", "--code-cache", path("code")}).out, HasSubstr("1 files removed"));
  EXPECT_THAT(hindsight({"cache", "info", "--code-cache", path("code")}).out, HasSubstr("0 files"));
}

// Others are in transcripts/clear.txt; these have other things in them on each machine.
TEST_F(Command, ClearsNoFolderThatIsNotItsOwn) {
  for (const char* what : {"cache", "profile"}) {
    const std::string option = std::string(what) == "cache" ? "--code-cache" : "--profile-dir";
    for (const std::string folder : {"/", "/etc"}) {
      const Outcome outcome = hindsight({what, "clear", option, folder});
      EXPECT_NE(outcome.status, 0) << folder;
      EXPECT_EQ(outcome.out, "") << folder;
      EXPECT_THAT(outcome.err, StartsWith("hindsight: " + folder + ": ")) << folder;
    }
  }
}

TEST_F(Command, KeepsNoCodeIfToldSo) {
  const std::string module = file("functions.wat", kFunctions);
  const Outcome outcome = hindsight({"run", "--tier", "optimized", "--code-cache", path("code"),
                                     "--no-code-cache", "--invoke", "add", module, "3", "4"});
  EXPECT_EQ(outcome.out, "7\n");
  EXPECT_FALSE(fs::exists(path("code")));
  EXPECT_EQ(hindsight({"cache", "info"}).status, 2);  // off in the environment
}

TEST_F(Command, SaysOnceThatAFileOfTheCacheIsDamaged) {
  const std::string module = file("functions.wat", kFunctions);
  const std::vector<std::string> words = {
      "run", "--tier", "optimized", "--code-cache", path("code"), "--invoke", "add", module, "3", "4"};
  EXPECT_EQ(hindsight(words).err, "");
  for (const auto& entry : fs::directory_iterator(path("code")))
    if (entry.path().extension() == ".code") fs::resize_file(entry.path(), 100);
  const Outcome outcome = hindsight(words);
  EXPECT_EQ(outcome.out, "7\n");
  EXPECT_THAT(outcome.err, StartsWith("hindsight: warning: cache: "));
  EXPECT_THAT(outcome.err, HasSubstr("is truncated"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_EQ(hindsight(words).err, "");
}

TEST_F(Command, BenchFindsTheBundledWorkloads) {
  const Outcome outcome = hindsight({"bench", "--list"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* suite : {"compute", "vector", "simd", "branch", "memory", "call", "for_branches",
                            "for_calls", "for_values", "traps", "shifts"})
    EXPECT_THAT(outcome.out, HasSubstr(suite));
}

}  // namespace
