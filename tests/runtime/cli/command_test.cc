// The built command as people use it: words in, output and exit status out.
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

constexpr const char* kFunctions = R"((module $functions
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "both") (param f64) (result f64 i64) (local.get 0) (i64.const -5))
  (func $inner (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func $middle (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1)))
  (func (export "divide") (param i32) (result i32) (i32.add (call $middle (local.get 0)) (i32.const 1)))
  (func (export "forever") (loop $l (br $l)))
  (memory (export "memory") 1)))";

// Prints its arguments, each on a line, and exits with 3 when it got more than one.
constexpr const char* kEcho = R"((module $echo
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32) (local $end i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (drop (call $args (i32.const 64) (i32.const 1024)))
    (local.set $i (i32.const 1024))
    (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 4))))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $i) (local.get $end)))
      (if (i32.eqz (i32.load8_u (local.get $i))) (then (i32.store8 (local.get $i) (i32.const 10))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next)))
    (i32.store (i32.const 16) (i32.const 1024))
    (i32.store (i32.const 20) (i32.load (i32.const 4)))
    (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24)))
    (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 1)) (then (call $exit (i32.const 3)))))))";

TEST_F(Command, SaysItsVersionAndHelpsOnStdout) {
  EXPECT_THAT(hindsight({"--version"}).out, StartsWith("hindsight "));
  const Outcome help = hindsight({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* word : {"run", "bench", "top", "explain", "inspect", "lwp"})
    EXPECT_THAT(help.out, HasSubstr(word));
  EXPECT_THAT(help.out, Not(HasSubstr("bench-child")));
  EXPECT_THAT(hindsight({"run", "--help"}).out, HasSubstr("MODULE [ARGUMENTS...]"));
}

TEST_F(Command, TakesOneValueAnOptionHoweverOftenItIsGiven) {
  const std::string module = file("echo.wat", kEcho);
  const Outcome run =
      hindsight({"run", "--dir", folder_.string(), "--env", "A=1", "--env", "B=2", "--without", "prefetch",
                 "--without", "inline-calls", "--dir", folder_.string() + "::/x", module, "word"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("word"));
}

TEST_F(Command, RunsTheStartFunctionWhereThereIsNoOther) {
  const std::string module =
      file("start.wat", R"((module (memory 1) (func $s (drop (i32.const 1))) (start $s)))");
  const Outcome run = hindsight({"run", module});
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string endless = file("endless.wat", "(module (func $s (loop (br 0))) (start $s))");
  EXPECT_EQ(hindsight({"run", "--timeout", "50ms", endless}).status, 134);
  EXPECT_THAT(hindsight({"run", file("none.wat", "(module (func (export \"f\")))")}).err,
              HasSubstr("exports no function '_start' and has no start function"));
}

TEST_F(Command, WrongUsageEndsWithTwoAndSaysWhatToDo) {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"fly"},
                                                                 {"run"},
                                                                 {"run", "--frobnicate", "x.wasm"},
                                                                 {"run", "--tier", "fast", "x.wasm"},
                                                                 {"run", "--timeout=soon", "x.wasm"},
                                                                 {"run", "--max-memory", "much", "x.wasm"},
                                                                 {"run", "--unit", "psychic", "x.wasm"},
                                                                 {"run", "--without", "luck", "x.wasm"},
                                                                 {"run", "--env", "novalue", "x.wasm"},
                                                                 {"run", "--timeout"},
                                                                 {"bench", "--modes", "warp", "x.wasm"},
                                                                 {"bench", "--runs", "0", "x.wasm"},
                                                                 {"lwp"},
                                                                 {"inspect"},
                                                                 {"explain"}}) {
    const Outcome outcome = hindsight(words);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("hindsight: ")) << testing::PrintToString(words);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(words);
  }
}

TEST_F(Command, RunGivesEverythingAfterThePathToTheGuest) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome outcome = hindsight({"run", "--feedback=off", echo, "--timeout", "-v", "--help", "run"});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_EQ(outcome.out, echo + "\n--timeout\n-v\n--help\nrun\n");
  EXPECT_EQ(hindsight({"run", echo, "--", "--", "x"}).out, echo + "\n--\nx\n");
  EXPECT_EQ(hindsight({"run", echo}).status, 0);
}

TEST_F(Command, InvokePrintsResultsOneALine) {
  const std::string module = file("f.wat", kFunctions);
  const Outcome sum = hindsight({"run", "--invoke", "add", module, "-1", "0x10"});
  EXPECT_EQ(sum.status, 0) << sum.err;
  EXPECT_EQ(sum.out, "15\n");
  EXPECT_EQ(hindsight({"run", "--invoke", "both", module, "0.5"}).out, "0.5\n-5\n");
}

TEST_F(Command, InvokeChecksNamesAndArguments) {
  const std::string module = file("f.wat", kFunctions);
  const Outcome name = hindsight({"run", "--invoke", "sub", module});
  EXPECT_EQ(name.status, 2);
  EXPECT_THAT(name.err, HasSubstr("no function 'sub'"));
  EXPECT_THAT(name.err, HasSubstr("add, both"));
  EXPECT_THAT(hindsight({"run", "--invoke", "memory", module}).err, HasSubstr("no function 'memory'"));
  EXPECT_THAT(hindsight({"run", "--invoke", "add", module, "1"}).err, HasSubstr("takes 2 arguments"));
  const Outcome type = hindsight({"run", "--invoke", "add", module, "1", "two"});
  EXPECT_EQ(type.status, 2);
  EXPECT_THAT(type.err, HasSubstr("argument 2 of add: 'two' is no i32"));
  const Outcome start = hindsight({"run", module});
  EXPECT_EQ(start.status, 2);
  EXPECT_THAT(start.err, HasSubstr("--invoke"));
}

TEST_F(Command, ATrapEndsWith134AndABacktraceOnEveryTier) {
  const std::string module = file("f.wat", kFunctions);
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    const Outcome outcome = hindsight({"run", "--tier", tier, "--invoke", "divide", module, "0"});
    EXPECT_EQ(outcome.status, 134) << tier;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("integer divide by zero")) << tier;
    const size_t inner = outcome.err.find("inner"), middle = outcome.err.find("middle"),
                 outer = outcome.err.find("divide", outcome.err.find('\n'));
    EXPECT_LT(inner, middle) << tier << outcome.err;
    EXPECT_LT(middle, outer) << tier << outcome.err;
    EXPECT_NE(outer, std::string::npos) << tier << outcome.err;
  }
}

TEST_F(Command, AnExceptionThatNobodyCatchesEndsLikeATrap) {
  const std::string module = file("throws.wat", R"((module
    (tag $oops (export "oops") (param i32 f64))
    (func $inner (throw $oops (i32.const 5) (f64.const 0.5)))
    (func (export "outer") (try (do (call $inner)) (catch_all (rethrow 0))))))");
  for (const char* tier : {"auto", "baseline", "optimized"}) {
    const Outcome outcome = hindsight({"run", "--tier", tier, "--invoke", "outer", module});
    EXPECT_EQ(outcome.status, 134) << tier;
    EXPECT_THAT(outcome.err, HasSubstr("uncaught exception (oops (i32 5, f64 0.5))")) << tier;
    EXPECT_LT(outcome.err.find("inner"), outcome.err.find("outer")) << tier << outcome.err;
  }
  EXPECT_THAT(hindsight({"inspect", module}).out, HasSubstr("(i32, f64) -> ()"));
}

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

TEST_F(Command, AModuleThatCannotBeLoadedEndsWithOneFileAndReason) {
  const std::string missing = path("missing.wasm");
  const Outcome absent = hindsight({"run", missing});
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(absent.err, HasSubstr(missing));
  // An unknown section of length 5 where 1 byte is left.
  const std::string broken = file("broken.wasm", std::string("\0asm\1\0\0\0\1\5\0", 11));
  const Outcome outcome = hindsight({"run", broken});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr(broken));
  EXPECT_THAT(outcome.err, HasSubstr("0x"));
  EXPECT_EQ(hindsight({"run", file("empty.wasm", "")}).status, 1);
  EXPECT_EQ(hindsight({"run", file("text.wat", "(module (func")}).status, 1);
  EXPECT_EQ(hindsight({"run", folder_.string()}).status, 1);
  const Outcome import = hindsight(
      {"run", file("import.wat", R"((module (import "moon" "phase" (func)) (func (export "_start"))))")});
  EXPECT_EQ(import.status, 1);
  EXPECT_THAT(import.err, HasSubstr("moon"));
}

TEST_F(Command, InitializesAReactorBeforeAnyOtherCall) {
  const std::string module = file("reactor.wat", R"((module (global $ready (mut i32) (i32.const 0))
    (func (export "_initialize") (global.set $ready (i32.const 7)))
    (func (export "ready") (result i32) (global.get $ready))))");
  EXPECT_EQ(hindsight({"run", "--invoke", "ready", module}).out, "7\n");
}

TEST_F(Command, NamesFromTheModuleCannotReachTheTerminal) {
  const std::string module = file("evil.wat", R"((module (func $f (export "\1b[31mred") unreachable)))");
  const Outcome outcome = hindsight({"run", "--invoke", "\x1b[31mred", module});
  EXPECT_EQ(outcome.status, 134);
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(hindsight({"inspect", module}).out, Not(HasSubstr("\x1b")));
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

TEST_F(Command, InspectShowsWhatAModuleImportsAndExports) {
  const std::string echo = file("echo.wat", kEcho);
  const Outcome text = hindsight({"inspect", echo});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("wasi_snapshot_preview1.fd_write"));
  EXPECT_THAT(text.out, HasSubstr("(i32, i32, i32, i32) -> i32"));
  const auto json = nlohmann::json::parse(hindsight({"inspect", "--json", echo}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["imports"].size(), 4u);
  EXPECT_EQ(json["exports"].size(), 2u);
}

TEST_F(Command, InspectShowsWhatAModulesToolsSayOfIt) {
  using namespace std::string_literals;
  const auto custom = [](const std::string& name, const std::string& contents) {
    const std::string all = static_cast<char>(name.size()) + name + contents;
    return "\0"s + static_cast<char>(all.size()) + all;
  };
  const std::string module = file(
      "made.wasm", "\0asm\1\0\0\0"s +
                       custom("producers", "\2\x08language\1\3C11\0\x0cprocessed-by\1\5cl\033ng\00419.1"s) +
                       custom("target_features", "\1+\7simd128"s) + custom("target_features", "\7?"s));
  const Outcome text = hindsight({"inspect", module});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("language C11"));
  EXPECT_THAT(text.out, HasSubstr("19.1"));
  EXPECT_THAT(text.out, HasSubstr("features +simd128\n"));
  EXPECT_THAT(text.out, HasSubstr("custom   producers, target_features, target_features"));
  EXPECT_THAT(text.out, HasSubstr("1 malformed"));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  const auto json = nlohmann::json::parse(hindsight({"inspect", "--json", module}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["producers"].size(), 2u);
  EXPECT_EQ(json["producers"][1]["version"], "19.1");
  EXPECT_EQ(json["target_features"][0], "+simd128");
  EXPECT_EQ(json["malformed"], 1u);
}

TEST_F(Command, LwpInfoSpeaksToPeopleAndPrograms) {
  const Outcome text = hindsight({"lwp", "info"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("clock"));
  EXPECT_TRUE(nlohmann::json::parse(hindsight({"lwp", "info", "--json"}).out, nullptr, false).is_object());
}

// Marks three phases and samples five values.
constexpr const char* kMarker = R"((module $marker
  (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
  (import "hindsight_lwp" "value_sample" (func $value (param i64 i32 i32)))
  (import "hindsight_lwp" "name_flags" (func $name (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "build")
  (func $phases
    (drop (call $insert (i64.const 100) (i32.const 1) (i32.const 11)))
    (drop (call $insert (i64.const 200) (i32.const 2) (i32.const 11)))
    (drop (call $insert (i64.const 300) (i32.const 3) (i32.const 12))))
  (func (export "_start") (local $i i32)
    (call $name (i32.const 11) (i32.const 0) (i32.const 5))
    (call $phases)
    (loop $again
      (call $value (i64.const 4096) (i32.const 0) (i32.const 20))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 5)))))))";

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

TEST_F(Command, RefusesTracesThatCannotBe) {
  const std::string marker = file("marker.wat", kMarker);
  EXPECT_EQ(hindsight({"run", "--trace", path("t.txt"), marker}).status, 2);
  EXPECT_EQ(hindsight({"run", "--trace", path("none/t.json"), marker}).status, 2);
  const Outcome unwatched =
      hindsight({"run", "--tier", "baseline", "--unit", "none", "--trace", path("t.json"), marker});
  EXPECT_EQ(unwatched.status, 2);
  EXPECT_THAT(unwatched.err, HasSubstr("without a unit"));
}

TEST_F(Command, LwpRecordsReadsDumpsAndSaysWhatIsWrongWithOthers) {
  // One record of event 4 in the final numbering: flags 0x6000 | 0x1000, latency 250, address, data address.
  std::string record(32, '\0');
  record[0] = 4;
  record[3] = 0x70;
  record[4] = static_cast<char>(250);
  record[8] = 0x10;
  record[16] = 0x40;
  EXPECT_THAT(hindsight({"lwp", "records", file("one", record + record)}).out,
              HasSubstr("2 records: 2 DCache miss"));
  // The same miss was event 3 in 2007.
  record[0] = 3;
  EXPECT_THAT(hindsight({"lwp", "records", "--layout", "2007", file("old", record)}).out,
              HasSubstr("1 DCache miss"));
  const auto refused = [&](const std::string& name, const std::string& bytes, const std::string& words) {
    const Outcome outcome = hindsight({"lwp", "records", file(name, bytes)});
    EXPECT_EQ(outcome.status, 1) << name;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << name;
  };
  refused("empty", "", "empty");
  refused("short", record.substr(0, 20), "cut off: 20 of 32");
  refused("tail", record + record.substr(0, 7), "cut off: 7 of 32");
  refused("garbage", std::string(100, 'x'), "EventId 120");
  refused("later", record + std::string(32, 'y'), "record 1 has EventId 121");
  refused("json", "{\"a\":1}\n", "no trace of");
  refused("notjson", "{oops\n", "no JSON object");
  refused("chrome", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", "Perfetto");
  const std::string head = "{\"hindsight_trace\":1,\"program\":\"p\",\"start_ns\":1}\n";
  refused("cut", head + "{\"ns\":1,\"id\":255}\n{\"ns\":2,\"i", "line 3");
  refused("noend", head + "{\"ns\":1,\"id\":255}\n", "its last line");
  refused("noid", head + "{\"ns\":1}\n", "no record");
  refused("longline", head + std::string(200'000, '{'), "longer than");
  refused("types", head + "[1]\n", "no JSON object");
  const Outcome hostile =
      hindsight({"lwp", "records",
                 file("hostile", head + "{\"ns\":-5,\"id\":\"0xzz\",\"function\":\"\\u001b[31m\",\"flags\":"
                                        "1e99,\"thread\":null}\n{\"end\":true}\n")});
  EXPECT_EQ(hostile.status, 0) << hostile.err;
  EXPECT_THAT(hostile.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(hindsight({"lwp", "records", path("nowhere")}).status, 1);
  EXPECT_EQ(hindsight({"lwp", "records", "--layout", "1999", path("one")}).status, 2);
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
  for (const char* mode : {"baseline", "optimized", "feedback"}) {
    EXPECT_EQ(workload["modes"][mode]["runs"], 2) << mode;
    EXPECT_GT(workload["modes"][mode]["median_s"].get<double>(), 0) << mode;
    EXPECT_LE(workload["modes"][mode]["min_s"], workload["modes"][mode]["max_s"]) << mode;
  }
  EXPECT_GT(workload["speedup"]["feedback_vs_optimized"]["median"].get<double>(), 0);
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

TEST_F(Command, BenchListsAndRefusesUnknownWords) {
  file("echo.wat", kEcho);
  const std::string manifest = file(
      "manifest.json",
      R"({"workloads": [{"name": "e", "suite": "s", "wasm": "echo.wat", "args": [], "expected": "", "description": "says so"}]})");
  EXPECT_THAT(hindsight({"bench", "--manifest", manifest, "--list"}).out, HasSubstr("says so"));
  const Outcome unknown = hindsight({"bench", "--manifest", manifest, "memroy"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'memroy' is no suite"));
  EXPECT_EQ(hindsight({"bench", "--manifest", path("none.json")}).status, 2);
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

TEST_F(Command, GivesNoGuestADirectoryAroundWhatIsKept) {
  const std::string module = file("functions.wat", kFunctions);
  fs::create_directory(path("home"));
  const auto run = [&](const std::string& directory, std::vector<std::string> more) {
    std::vector<std::string> words = {"run", "--tier", "optimized", "--dir", directory};
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& word :
         {std::string("--invoke"), std::string("add"), module, std::string("3"), std::string("4")})
      words.push_back(word);
    return hindsight(std::move(words));
  };
  const std::string code = path("home/.cache/code");
  for (int round = 0; round < 2; ++round) {  // before it is there, and then
    const Outcome refused = run(path("home"), {"--code-cache", code});
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_EQ(refused.out, "");
    for (const std::string& word : {path("home") + ": ", "contains the code cache (" + code + ")",
                                    std::string("--no-code-cache"), std::string("--code-cache DIR")})
      EXPECT_THAT(refused.err, HasSubstr(word));
    EXPECT_THAT(run(path("home"), {"--profile-dir", path("home/profiles")}).err,
                HasSubstr("contains the kept profiles"));
    EXPECT_EQ(run(path("home"), {"--no-code-cache"}).out, "7\n");
    EXPECT_EQ(run(path("home"), {"--code-cache", path("elsewhere")}).out, "7\n");
    fs::create_directories(path("home/narrower"));
    EXPECT_EQ(run(path("home/narrower"), {"--code-cache", code}).out, "7\n");
    EXPECT_THAT(run(path(".key"), {"--code-cache", code}).err, HasSubstr("the key of both"));
  }
}

TEST_F(Command, ClearsNoFolderThatIsNotItsOwn) {
  fs::create_directories(path("mine/sub"));
  file("mine/notes.code", "text");
  for (const char* what : {"cache", "profile"}) {
    const std::string option = std::string(what) == "cache" ? "--code-cache" : "--profile-dir";
    for (const std::string& folder : {std::string("/"), std::string("/etc"), path("mine"), path("mine/sub"),
                                      path("mine/notes.code"), path("none")}) {
      const Outcome outcome = hindsight({what, "clear", option, folder});
      EXPECT_NE(outcome.status, 0) << folder;
      EXPECT_EQ(outcome.out, "") << folder;
      EXPECT_THAT(outcome.err, HasSubstr(folder)) << folder;
    }
  }
  EXPECT_TRUE(fs::exists(path("mine/notes.code")));
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
  for (const char* suite : {"compute", "vector", "simd", "branch", "memory", "call", "traps", "shifts"})
    EXPECT_THAT(outcome.out, HasSubstr(suite));
}

TEST_F(Command, AStartFunctionThatTrapsHasABacktrace) {
  const Outcome run = hindsight({"run", file("f.wat", R"((module
    (func $inner unreachable) (func $begin (call $inner)) (start $begin)))")});
  EXPECT_EQ(run.status, 134);
  EXPECT_THAT(run.err, HasSubstr("unreachable"));
  EXPECT_THAT(run.err, HasSubstr("#0   inner at 0x"));
  EXPECT_THAT(run.err, HasSubstr("#1   begin at 0x"));
  // And where there is an entry after it.
  const Outcome with_entry = hindsight({"run", file("g.wat", R"((module
    (func $inner unreachable) (func $begin (call $inner)) (start $begin) (func (export "_start"))))")});
  EXPECT_EQ(with_entry.status, 134);
  EXPECT_THAT(with_entry.err, HasSubstr("#1   begin at 0x"));
}

TEST_F(Command, EndsAProgramThatNeedsMoreCodeThanItsLimit) {
  const std::string module = file("f.wat", R"((module (func $program (export "_start"))))");
  EXPECT_EQ(hindsight({"run", "--limit", "code-bytes=100000", module}).status, 0);
  const Outcome run = hindsight({"run", "--limit", "code-bytes=16", module});
  EXPECT_EQ(run.status, 134);
  EXPECT_THAT(run.err, HasSubstr("function program would take "));
  EXPECT_THAT(run.err, HasSubstr("the limit code-bytes allows 16"));
}

}  // namespace
