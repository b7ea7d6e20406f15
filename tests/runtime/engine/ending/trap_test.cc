#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kTraps = R"((module
  (import "host" "again" (func $again (param i32) (result i32)))
  (memory 1 2)
  (table 3 funcref)
  (elem (i32.const 0) $nothing)
  (type $binary (func (param i32 i32) (result i32)))
  (func $nothing)
  (func $boom unreachable)
  (func $middle call $boom)
  (func (export "unreachable") call $middle)
  (func (export "load") (param i32) (result i32) local.get 0 i32.load offset=4294967295)
  (func (export "store") (param i32) local.get 0 i32.const 1 i32.store)
  (func (export "divide") (param i32 i32) (result i32) local.get 0 local.get 1 i32.div_s)
  (func (export "convert") (param f32) (result i32) local.get 0 i32.trunc_f32_s)
  (func (export "indirect") (param i32) local.get 0 call_indirect)
  (func (export "wrong_type") (result i32) i32.const 1 i32.const 1 i32.const 0 call_indirect (type $binary))
  (func (export "fill") (param i32) local.get 0 i32.const 1 i32.const 65537 memory.fill)
  (func $deep (export "deep") (param i32) (result i32) local.get 0 i32.const 1 i32.add call $deep i32.const 1 i32.add)
  (func $inner (export "inner") (param i32) (result i32) local.get 0 i32.load)
  (func $outer (export "outer") (param i32) (result i32) local.get 0 call $again)
  (func (export "grow") (param i32) (result i32) local.get 0 memory.grow)
  (func (export "fine") (result i32) i32.const 42)))";

class Traps : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    linker.define_function("host", "again", [this](Caller& caller, int32_t v) -> Result<int32_t> {
      auto result = caller.instance().call("inner", std::vector{Value::i32(v)});
      nested_calls_++;
      if (!result) return std::unexpected(result.error());
      return (*result)[0].as_i32();
    });
    guest_ = instantiate(linker, *engine_, kTraps);
    ASSERT_NE(guest_, nullptr);
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Instance> guest_;
  int nested_calls_ = 0;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Traps, kEveryMode, mode_name);

TEST_P(Traps, HaveTheNamesOfTheSpecification) {
  EXPECT_EQ(trap_of(*guest_, "unreachable"), "unreachable");
  EXPECT_EQ(trap_of(*guest_, "load", {Value::i32(-1)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest_, "store", {Value::i32(65533)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest_, "divide", {Value::i32(1), Value::i32(0)}), "integer divide by zero");
  EXPECT_EQ(trap_of(*guest_, "divide", {Value::i32(INT32_MIN), Value::i32(-1)}), "integer overflow");
  EXPECT_EQ(trap_of(*guest_, "convert", {Value::f32(NAN)}), "invalid conversion to integer");
  EXPECT_EQ(trap_of(*guest_, "indirect", {Value::i32(1)}), "uninitialized element");
  EXPECT_EQ(trap_of(*guest_, "indirect", {Value::i32(3)}), "undefined element");
  EXPECT_EQ(trap_of(*guest_, "wrong_type"), "indirect call type mismatch");
  EXPECT_EQ(trap_of(*guest_, "fill", {Value::i32(0)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest_, "deep", {Value::i32(0)}), "call stack exhausted");
  auto fine = guest_->call("fine", {});
  ASSERT_TRUE(fine);
  EXPECT_EQ((*fine)[0].as_i32(), 42);
  EXPECT_EQ(guest_->last_trap(), nullptr);
}

TEST_P(Traps, ShowEveryFunctionOnTheWayInlinedOnesToo) {
  trap_of(*guest_, "unreachable");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("boom", "middle", "unreachable"));
  EXPECT_TRUE(guest_->last_trap()->backtrace[0].wasm_offset);
  EXPECT_FALSE(guest_->last_trap()->backtrace[2].inlined);
  EXPECT_THAT(guest_->last_trap()->to_string(), HasSubstr("#1   middle at 0x"));
}

TEST_P(Traps, ShowTheFramesOfNestedEntries) {
  EXPECT_EQ(trap_of(*guest_, "outer", {Value::i32(-8)}), "out of bounds memory access");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("inner", "outer"));
  EXPECT_EQ(nested_calls_, 1);
  auto fine = guest_->call("outer", std::vector{Value::i32(16)});
  ASSERT_TRUE(fine);
  EXPECT_EQ((*fine)[0].as_i32(), 0);
}

TEST_P(Traps, OfFaultsNameTheAddress) {
  if (!GetParam().guard_pages) GTEST_SKIP() << "explicit checks do not know the address";
  trap_of(*guest_, "store", {Value::i32(0x20000)});
  ASSERT_NE(guest_->last_trap(), nullptr);
  EXPECT_THAT(guest_->last_trap()->detail, HasSubstr("0x20000"));
}

TEST_P(Traps, OfEndlessRecursionKeepTheInnermostFramesAndCountTheRest) {
  trap_of(*guest_, "deep", {Value::i32(0)});
  ASSERT_NE(guest_->last_trap(), nullptr);
  EXPECT_EQ(guest_->last_trap()->backtrace.size(), 100u);
  EXPECT_GT(guest_->last_trap()->frames_left_out, 1000u);
}

TEST_P(Traps, WorkOnASecondThreadWithASmallStack) {
  std::string name;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#ifdef HINDSIGHT_SANITIZED
  pthread_attr_setstacksize(&attributes, size_t{4} << 20);
#else
  // The optimizing tier compiles on the guest's stack.
  pthread_attr_setstacksize(&attributes, GetParam().tier == TierMode::kBaseline ? 512 << 10 : 2 << 20);
#endif
  auto body = [&] { name = trap_of(*guest_, "deep", {Value::i32(0)}); };
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* f) -> void* {
                  (*static_cast<decltype(body)*>(f))();
                  return nullptr;
                },
                &body),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(name, "call stack exhausted");
}

TEST_P(Traps, MemoryGrowsUpToItsMaximumAndSaysNoBeyond) {
  EXPECT_EQ((*guest_->call("grow", std::vector{Value::i32(2)}))[0].as_i32(), -1);
  EXPECT_EQ((*guest_->call("grow", std::vector{Value::i32(1)}))[0].as_i32(), 1);
  EXPECT_EQ((*guest_->call("grow", std::vector{Value::i32(1)}))[0].as_i32(), -1);
  EXPECT_TRUE(guest_->call("store", std::vector{Value::i32(0x1fffc)}));
}

struct Usage {
  size_t mappings = 0;
  size_t descriptors = 0;
  size_t resident_pages = 0;
};
Usage usage() {
  Usage usage;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) usage.mappings++;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    usage.descriptors++;
  std::ifstream statm("/proc/self/statm");
  size_t all = 0;
  statm >> all >> usage.resident_pages;
  return usage;
}

TEST_P(Traps, TenThousandTimesLeakNothing) {
  auto cycle = [&] {
    EXPECT_EQ(trap_of(*guest_, "unreachable"), "unreachable");
    EXPECT_EQ(trap_of(*guest_, "store", {Value::i32(-1)}), "out of bounds memory access");
    EXPECT_EQ(trap_of(*guest_, "outer", {Value::i32(-8)}), "out of bounds memory access");
    EXPECT_EQ(trap_of(*guest_, "divide", {Value::i32(1), Value::i32(0)}), "integer divide by zero");
  };
  // The optimizer's libraries are some 80 mappings. They are here before the first count, so that it does not matter
  // whether and when these functions are hot.
  auto optimizing_engine = make_engine(Mode{"optimized", TierMode::kOptimized});
  Linker linker(*optimizing_engine);
  auto optimized = instantiate(linker, *optimizing_engine, R"((module (func (export "fine"))))");
  ASSERT_NE(optimized, nullptr);
  ASSERT_TRUE(optimized->call("fine", {}));
  for (int i = 0; i < 100; i++) cycle();
  engine_->wait_for_compiles();
  const Usage before = usage();
  for (int i = 0; i < 2500; i++) cycle();
  engine_->wait_for_compiles();
  const Usage after = usage();
  // The monitor opens the event counters of this thread when it gets to it, which may be only now.
  constexpr size_t kCounters = 16;
  EXPECT_LE(after.descriptors, before.descriptors + (GetParam().tier == TierMode::kAuto ? kCounters : 0));
#ifndef HINDSIGHT_SANITIZED
  // A few for what malloc and a late background compile may map.
  EXPECT_LE(after.mappings, before.mappings + (GetParam().tier == TierMode::kAuto ? 64 : 4));
  EXPECT_LE(after.resident_pages, before.resident_pages + (GetParam().tier == TierMode::kAuto ? 8192 : 512));
#endif
}

TEST(HostFailures, BecomeTrapsWithTheirOwnWords) {
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_function("host", "fail",
                         []() -> Status { return make_error(ErrorKind::kUsage, "the printer is on fire"); });
  linker.define_function("host", "throw", [] { throw std::runtime_error("thrown"); });
  linker.define_function("host", "exit", []() -> Status { return make_error(ErrorKind::kExit, "7"); });
  auto guest = instantiate(linker, *engine, R"((module
    (import "host" "fail" (func $fail)) (import "host" "throw" (func $throw)) (import "host" "exit" (func $exit))
    (func (export "fail") call $fail) (func (export "throw") call $throw) (func (export "exit") call $exit)))");
  EXPECT_EQ(trap_of(*guest, "fail"), "the printer is on fire");
  EXPECT_THAT(functions_of(guest->last_trap()), ElementsAre("fail"));
  EXPECT_THAT(trap_of(*guest, "throw"), HasSubstr("thrown"));
  auto exit = guest->call("exit", {});
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().kind, ErrorKind::kExit);
  EXPECT_EQ(guest->exit_code(), 7u);
  EXPECT_EQ(guest->last_trap(), nullptr);
}

// A fault that is not the guest's goes to the handler that was there before ours.
int status_of_host_fault() {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = [](int) { _exit(33); };
    sigaction(SIGSEGV, &action, nullptr);
    auto engine = make_engine();
    Linker linker(*engine);
    // The address is read at run time, so that the compiler does not see through the crash.
    static volatile uintptr_t nowhere = 16;
    linker.define_function("host", "crash", [] { *reinterpret_cast<volatile int*>(nowhere) = 1; });
    auto guest = instantiate(linker, *engine,
                             R"((module (import "host" "crash" (func $c)) (func (export "f") call $c)))");
    (void)guest->call("f", {});
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(HostFaults, AreNotTakenForTheGuests) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "the sanitizer's own handler reports the fault";
#endif
  EXPECT_EQ(status_of_host_fault(), 33);
}

}  // namespace
}  // namespace hindsight
