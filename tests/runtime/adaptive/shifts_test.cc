// A program that becomes another while it is in one call: the code that its loop runs in is replaced under
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/runtime/engine/guest_frames.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

// The host says before each batch of calls through which element of the table they go; below zero: enough.
constexpr const char* kGuest = R"((module
  (type $op (func (param i32 i32) (result i32)))
  (import "host" "next" (func $next (result i32)))
  (table 3 funcref) (elem (i32.const 0) $a $b $c)
  (func $a (type $op) (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 1)))
  (func $b (type $op) (i32.xor (i32.rotl (local.get 0) (i32.const 5)) (local.get 1)))
  (func $c (type $op) (i32.sub (i32.mul (local.get 0) (i32.const 7)) (local.get 1)))
  (func (export "run") (param $calls i32) (result i32) (local $i i32) (local $kind i32) (local $r i32)
    (loop $batches
      (local.set $kind (call $next))
      (if (i32.lt_s (local.get $kind) (i32.const 0)) (then (return (local.get $r))))
      (local.set $i (i32.const 0))
      (loop $l
        (local.set $r (call_indirect (type $op) (local.get $r) (local.get $i) (local.get $kind)))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $calls))))
      (br $batches))
    (unreachable))))";
constexpr uint32_t kCalls = 100'000;
// Samples a second of CPU time. What is seen fades by the clock, and a guest on a busy machine has little of the one in
// much of the other.
constexpr uint32_t kSamplingHz = 4000;

uint32_t batch(uint32_t r, int32_t kind) {
  for (uint32_t i = 0; i < kCalls; ++i)
    r = kind == 0 ? r * 3 + i : kind == 1 ? ((r << 5 | r >> 27) ^ i) : r * 7 - i;
  return r;
}

struct ShiftedRun {
  std::vector<int32_t> kinds;  // of the batches that ran
  // The running loop got code that was made for the calls of late. Where nobody follows: it left the code that it was in.
  bool followed = false;
  uint32_t result = 0;
  std::string log;
  std::string explained;  // by the profile
};

// Batches through element 0 until the running loop is in optimized code, then through element 1 until it is in other
// optimized code.
ShiftedRun run(std::vector<std::string> without = {}) {
  const Patience patience;
  constexpr int kBatchesToTell = 4'000;
  LogLines lines;
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  config.sampling_hz = kSamplingHz;
  const bool expected = without.empty();
  config.disabled_decisions = std::move(without);
  config.log = lines.sink();
  const auto engine = std::static_pointer_cast<rt::EngineHandle>(Engine::create(std::move(config)).value());
  Linker linker(*engine);
  ShiftedRun run;
  int32_t kind = 0;
  int second = 0;
  // The inner loop may have code of its own, which calls nobody: the log tells of it.
  const auto compiled = [&](std::string_view why) {
    return std::ranges::any_of(lines.lines(), [&](const std::string& line) {
      return line.find("run: ") != std::string::npos &&
             line.find(" bytes of code in ") != std::string::npos && line.find(why) != std::string::npos;
    });
  };
  // What calls the host is in one piece of optimized code, and then in another.
  std::optional<uint64_t> first_version;
  const auto left_its_code = [&] {
    const auto caller = rt::caller_of_the_host(*engine).value().version;
    if (caller->tier != jit::Tier::kOptimized) return false;
    if (!first_version) first_version = caller->id.value;
    return caller->id.value != *first_version;
  };
  linker.define_function("host", "next", [&]() -> int32_t {
    if (kind == 0 && run.kinds.size() > 200 && compiled("")) kind = 1;
    if (kind == 1) {
      ++second;
      run.followed |=
          expected ? compiled("records of calls to targets that are not inlined") : left_its_code();
      if (expected ? run.followed : second > kBatchesToTell) return -1;
    }
    if (!patience.lasts()) return -1;
    run.kinds.push_back(kind);
    return kind;
  });
  auto instance = linker.instantiate(load(*engine, kGuest)).value();
  run.result = static_cast<uint32_t>(
      instance->call("run", std::array{Value::i32(static_cast<int32_t>(kCalls))}).value()[0].as_i32());
  run.log = lines.text();
  const std::string profile = testing::TempDir() + "/shifts_" + std::to_string(getpid()) + ".profile";
  EXPECT_TRUE(engine->save_profile(profile));
  run.explained = explain_profile({.path = profile}).value_or("");
  std::filesystem::remove(profile);
  return run;
}

TEST(Shifts, ARunningLoopGoesOnInCodeThatKnowsWhereItsCallsGoByNow) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const ShiftedRun r = run();
  EXPECT_TRUE(r.followed) << r.log;
  EXPECT_THAT(r.log, testing::HasSubstr("records of calls to targets that are not inlined"));
  EXPECT_THAT(r.explained, testing::HasSubstr("OSR exits of its optimized code: 0x"));
  uint32_t expected = 0;
  for (const int32_t kind : r.kinds) expected = batch(expected, kind);
  EXPECT_EQ(r.result, expected);
}

// Nearly all values of a batch lie below the limit that the host says, then half of them.
constexpr const char* kFilter = R"((module
  (import "host" "next" (func $next (result i32)))
  (func (export "run") (param $values i32) (result i32) (local $limit i32) (local $i i32) (local $v i32) (local $r i32)
    (loop $batches
      (local.set $limit (call $next))
      (if (i32.eqz (local.get $limit)) (then (return (local.get $r))))
      (local.set $i (i32.const 0))
      (loop $l
        (local.set $v (i32.mul (i32.xor (local.get $i) (i32.shr_u (local.get $r) (i32.const 7))) (i32.const -1640531535)))
        (if (i32.lt_u (local.get $v) (local.get $limit))
          (then (local.set $r (i32.mul (i32.xor (local.get $r) (local.get $v)) (i32.const 31))))
          (else (local.set $r (i32.add (i32.div_u (local.get $r) (i32.or (local.get $v) (i32.const 1))) (i32.const 77)))))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $values))))
      (br $batches))
    (unreachable))))";

uint32_t filter(uint32_t r, uint32_t limit) {
  for (uint32_t i = 0; i < kCalls; ++i) {
    const uint32_t v = (i ^ r >> 7) * 0x9e3779b1u;
    r = v < limit ? (r ^ v) * 31 : r / (v | 1) + 77;
  }
  return r;
}

TEST(Shifts, ARunningLoopIsSeenAgainInBaselineCodeWhenItsBranchesGoElsewhere) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const Patience patience;
  constexpr uint32_t kNearlyAll = 0xfd000000u, kHalf = 0x80000000u;
  LogLines lines;
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  config.sampling_hz = kSamplingHz;
  config.log = lines.sink();
  auto engine = Engine::create(std::move(config)).value();
  Linker linker(*engine);
  std::vector<uint32_t> limits;
  size_t compiles_when_seen = 0;
  linker.define_function("host", "next", [&]() -> int32_t {
    const size_t compiles = lines.count(" bytes of code");  // of the function or of its loops
    const bool seen_again = lines.count("observe run:") > 0;
    if (seen_again && compiles_when_seen == 0) compiles_when_seen = compiles;
    // Long enough in optimized code for its samples to be known. And back again, in case the loop around it was compiled only
    // after it went elsewhere, for what it is like there.
    constexpr size_t kBefore = 3000, kPhase = 8000;
    const bool shifted =
        compiles > 0 && limits.size() > kBefore && (limits.size() - kBefore) / kPhase % 2 == 0;
    if ((seen_again && compiles > compiles_when_seen) || !patience.lasts()) return 0;
    limits.push_back(shifted ? kHalf : kNearlyAll);
    return static_cast<int32_t>(limits.back());
  });
  auto instance = linker.instantiate(load(*engine, kFilter)).value();
  const auto result = static_cast<uint32_t>(
      instance->call("run", std::array{Value::i32(static_cast<int32_t>(kCalls))}).value()[0].as_i32());
  EXPECT_GE(lines.count("observe run:"), 1u) << lines.text();
  EXPECT_GE(lines.count("are where the first ones in this code were not"), 1u) << lines.text();
  uint32_t expected = 0;
  for (const uint32_t limit : limits) expected = filter(expected, limit);
  EXPECT_EQ(result, expected);
}

TEST(Shifts, ARunningLoopStaysWhereItIsIfNobodyIsToFollow) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const ShiftedRun r = run({"follow-shifts"});
  EXPECT_THAT(r.log, testing::HasSubstr(", 0 OSR exits"));
  EXPECT_THAT(r.log, testing::Not(testing::HasSubstr(", 1 OSR exits")));
  EXPECT_FALSE(r.followed) << r.log;
  uint32_t expected = 0;
  for (const int32_t kind : r.kinds) expected = batch(expected, kind);
  EXPECT_EQ(r.result, expected);
}

}  // namespace
}  // namespace hindsight
