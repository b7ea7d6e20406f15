// Programs that spawn threads through "wasi" "thread-spawn", on every tier.
#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// What a thread does depends on its argument's high bits; the low bits are its own. Memory: 0 threads that
// are done, 4 sum of arguments, 8 how many began, 12 a place to wait at, 64.. thread ids by low bits of the
// argument.
constexpr std::string_view kProgram = R"((module
  (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "host" "meet" (func $meet (param i32)))
  (import "host" "hold" (func $hold))
  (import "env" "memory" (memory 2 4 shared))
  (global $own (mut i32) (i32.const 0))
  (table $functions 1 funcref)
  (data $text "line\n")
  (export "memory" (memory 0))
  (func (export "wasi_thread_start") (param $id i32) (param $argument i32)
    (drop (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))
    (drop (memory.atomic.notify (i32.const 8) (i32.const -1)))
    (block $done
      (block $writes (block $spawns (block $meets (block $sleeps (block $exits (block $spins (block $waits (block $traps (block $adds
        (br_table $adds $traps $waits $spins $exits $sleeps $meets $spawns $writes
          (i32.shr_u (local.get $argument) (i32.const 16))))
      ;; adds: in a global of its own first, so that a shared one would show
      (global.set $own (i32.add (global.get $own) (local.get $argument)))
      (drop (i32.atomic.rmw.add (i32.const 4) (global.get $own)))
      (i32.atomic.store (i32.add (i32.const 64) (i32.shl (local.get $argument) (i32.const 2))) (local.get $id))
      (br $done))
      (call $hold)
      (unreachable))
      (drop (memory.atomic.wait32 (i32.const 12) (i32.const 0) (i64.const -1)))
      (br $done))
      (loop (br 0)))
      (call $exit (i32.const 7)))
      ;; poll_oneoff on a clock, one hour from now
      (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 3600000000000))
      (drop (call $poll (i32.const 1024) (i32.const 1100) (i32.const 1) (i32.const 1200)))
      (br $done))
      (call $meet (local.get $id))
      (br $done))
      (drop (call $spawn (i32.and (local.get $argument) (i32.const 0xffff))))
      (br $done))
      (call $write_line (i32.add (i32.const 4096)
        (i32.shl (i32.and (local.get $argument) (i32.const 0xffff)) (i32.const 6)))))
    (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
    (drop (memory.atomic.notify (i32.const 0) (i32.const -1))))
  (func $write_line (param $at i32)
    (memory.init $text (local.get $at) (i32.const 0) (i32.const 5))
    (i32.store (i32.add (local.get $at) (i32.const 8)) (local.get $at))
    (i32.store (i32.add (local.get $at) (i32.const 12)) (i32.const 5))
    (drop (call $write (i32.const 1) (i32.add (local.get $at) (i32.const 8)) (i32.const 1)
      (i32.add (local.get $at) (i32.const 16)))))
  (func $spawn_one (export "spawn") (param i32) (result i32) (call $spawn (local.get 0)))
  ;; Until the word has this value.
  (func $await (export "await") (param $at i32) (param $value i32) (local i32)
    (loop
      (local.set 2 (i32.atomic.load (local.get $at)))
      (if (i32.ne (local.get 2) (local.get $value))
        (then (drop (memory.atomic.wait32 (local.get $at) (local.get 2) (i64.const -1))) (br 1)))))
  (func $many (export "many") (param $count i32)
    (local $i i32)
    (loop
      (if (i32.le_s (call $spawn (local.get $i)) (i32.const 0)) (then (unreachable)))
      (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $count))))
    (call $await (i32.const 0) (local.get $count)))
  (func (export "get") (param i32) (result i32) (i32.atomic.load (local.get 0)))
  (func (export "own") (result i32) (global.get $own))
  (func (export "spin") (loop (br 0)))
  (func (export "spawn_and_wait") (param i32) (drop (call $spawn (local.get 0)))
    (drop (memory.atomic.wait32 (i32.const 12) (i32.const 0) (i64.const -1))))
  (func (export "spawn_and_trap") (param i32) (drop (call $spawn (local.get 0)))
    (call $await (i32.const 8) (i32.const 1)) (unreachable))
  (func (export "_start") (drop (call $spawn (i32.const 0x20000)))
    (call $await (i32.const 8) (i32.const 1)))))";

constexpr int32_t kThreadTraps = 1 << 16, kWaits = 2 << 16, kSpins = 3 << 16, kExits = 4 << 16,
                  kSleeps = 5 << 16, kMeets = 6 << 16, kSpawns = 7 << 16, kWrites = 8 << 16;

class GuestThreads : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    WasiConfig wasi;
    wasi.stdout_sink = [this](std::string_view text) { written_ += text; };
    ASSERT_TRUE(linker.define_wasi(std::move(wasi)));
    linker.define_function("host", "meet", [this](Caller& caller, int32_t id) { meet(caller, id); });
    linker.define_function("host", "hold", [this](Caller&) { held_.wait(true); });
    guest_ = instantiate(linker, *engine_, kProgram);
    ASSERT_NE(guest_, nullptr);
  }
  void meet(Caller& caller, int32_t id) {
    const std::lock_guard lock(mutex_);
    native_.insert(std::this_thread::get_id());
    ids_.insert(id);
    // What the caller's instance does runs on the caller's thread, in its own store.
    const auto own = caller.instance().call("own", {});
    if (own) own_ += (*own)[0].as_i32() + 1;
  }
  int32_t number(std::string_view function, std::vector<Value> args = {}) {
    auto result = guest_->call(function, args);
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result && !result->empty() ? (*result)[0].as_i32() : -1;
  }
  int32_t spawn(int32_t argument) { return number("spawn", {Value::i32(argument)}); }
  void await(int32_t at, int32_t value) {
    const auto result = guest_->call("await", std::array{Value::i32(at), Value::i32(value)});
    EXPECT_TRUE(result) << result.error().describe();
  }

  std::shared_ptr<Engine> engine_;
  std::atomic<bool> held_{false};  // threads that are to trap wait
  std::string written_;
  std::mutex mutex_;
  std::set<std::thread::id> native_;
  std::set<int32_t> ids_;
  int32_t own_ = 0;
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, GuestThreads, kEveryMode, mode_name);

TEST_P(GuestThreads, RunSixtyFourAtOnceEachWithGlobalsOfItsOwn) {
  ASSERT_TRUE(guest_->call("many", std::array{Value::i32(64)}));
  EXPECT_EQ(number("get", {Value::i32(4)}), 63 * 64 / 2);
  std::set<int32_t> ids;
  for (int32_t i = 0; i < 64; i++) ids.insert(number("get", {Value::i32(64 + 4 * i)}));
  EXPECT_EQ(ids.size(), 64u);
  EXPECT_GE(*ids.begin(), 1);
  EXPECT_LT(*ids.rbegin(), 1 << 29);
  EXPECT_EQ(number("own"), 0);
  // Those that have ended make room, and none is ended by a call that returns.
  for (int round = 2; round < 5; round++) {
    for (int32_t i = 0; i < 64; i++) EXPECT_GT(spawn(0), 0);
    await(0, 64 * round);
  }
}

TEST_P(GuestThreads, AreNativeThreadsThatMayCallTheEmbedderAndSpawnMore) {
  for (int i = 0; i < 3; i++) EXPECT_GT(spawn(kMeets), 0);
  await(0, 3);
  EXPECT_GT(spawn(kSpawns | 41), 0);
  await(0, 5);
  EXPECT_EQ(number("get", {Value::i32(4)}), 41);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(ids_.size(), 3u);
  EXPECT_EQ(native_.count(std::this_thread::get_id()), 0u);
  EXPECT_EQ(own_, 3);
}

TEST_P(GuestThreads, ShareTheirWasiAndItsSinksAreCalledOneAtATime) {
  constexpr int32_t kThreads = 16;
  for (int32_t i = 0; i < kThreads; i++) EXPECT_GT(spawn(kWrites | i), 0);
  await(0, kThreads);
  std::string expected;
  for (int32_t i = 0; i < kThreads; i++) expected += "line\n";
  EXPECT_EQ(written_, expected);
}

TEST_P(GuestThreads, ATrapInOneEndsAll) {
  for (const int32_t other : {kWaits, kSleeps}) {
    EXPECT_GT(spawn(other), 0);
    EXPECT_EQ(trap_of(*guest_, "spawn_and_wait", {Value::i32(kThreadTraps)}), "unreachable");
    ASSERT_NE(guest_->last_trap(), nullptr);
    EXPECT_THAT(guest_->last_trap()->detail, HasSubstr("in thread "));
    EXPECT_EQ(functions_of(guest_->last_trap()), std::vector<std::string>{"wasi_thread_start"});
  }
  EXPECT_EQ(number("get", {Value::i32(0)}), 0);  // none came to its end
  // The next call starts anew.
  EXPECT_GT(spawn(3), 0);
  await(0, 1);
}

TEST_P(GuestThreads, ATrapBetweenTwoCallsIsWhatTheNextOneEndsWith) {
  held_ = true;  // until the first call is over: it would be the one that ends
  EXPECT_GT(spawn(kThreadTraps), 0);
  held_ = false;
  held_.notify_all();
  EXPECT_EQ(trap_of(*guest_, "await", {Value::i32(12), Value::i32(1)}), "unreachable");
  EXPECT_EQ(trap_of(*guest_, "get", {Value::i32(0)}), "no trap");
}

TEST_P(GuestThreads, ExitOfOneIsTheExitOfTheProgram) {
  EXPECT_GT(spawn(kWaits), 0);
  auto result = guest_->call("spawn_and_wait", std::array{Value::i32(kExits)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kExit);
  EXPECT_EQ(guest_->exit_code(), 7u);
}

TEST_P(GuestThreads, EndWithTheTrapOfTheFirstThread) {
  EXPECT_EQ(trap_of(*guest_, "spawn_and_trap", {Value::i32(kWaits)}), "unreachable");
  EXPECT_EQ(functions_of(guest_->last_trap()), std::vector<std::string>{"spawn_and_trap"});
  EXPECT_EQ(number("get", {Value::i32(0)}), 0);
}

TEST_P(GuestThreads, EndWhenStartReturns) {
  EXPECT_TRUE(guest_->call("_start", {}));
  EXPECT_EQ(number("get", {Value::i32(8)}), 1);
  EXPECT_EQ(number("get", {Value::i32(0)}), 0);
}

TEST_P(GuestThreads, EndWhenTheProgramIsInterrupted) {
  for (const int32_t other : {kWaits, kSleeps, kSpins}) {
    if (other == kSpins && kThreadSanitizer) continue;  // delays signals
    guest_->set_timeout(30ms);
    EXPECT_EQ(trap_of(*guest_, "spawn_and_wait", {Value::i32(other)}), "timed out") << other;
  }
  guest_->set_timeout(0ms);
  EXPECT_EQ(number("get", {Value::i32(0)}), 0);
}

TEST_P(GuestThreads, EndWithTheInstance) {
  EXPECT_GT(spawn(kWaits), 0);
  EXPECT_GT(spawn(kSleeps), 0);
  if (!kThreadSanitizer) {
    EXPECT_GT(spawn(kSpins), 0);
  }
  guest_.reset();  // returns
}

TEST(GuestThreadsLinking, SaysWhatIsMissing) {
  auto engine = make_engine();
  const auto error_of = [&](std::string_view wat) {
    Linker linker(*engine);
    EXPECT_TRUE(linker.define_wasi({}));
    auto other = instantiate(linker, *engine, R"((module (global (export "g") (mut i32) (i32.const 0))
      (table (export "t") 1 funcref) (func (export "f")) (memory (export "m") 1)))");
    linker.define_instance("other", other);
    auto result = linker.instantiate(load(*engine, wat));
    if (result) return std::string("none");
    EXPECT_EQ(result.error().kind, ErrorKind::kLink) << result.error().describe();
    return result.error().message;
  };
  constexpr std::string_view kSpawn =
      R"((module (import "wasi" "thread-spawn" (func (param i32) (result i32)))
    )";
  const std::string spawn(kSpawn), start = R"((func (export "wasi_thread_start") (param i32 i32)))",
                                   memory = R"((import "env" "memory" (memory 1 1 shared)))";
  EXPECT_EQ(error_of(spawn + memory + start + ")"), "none");
  EXPECT_THAT(error_of(spawn + memory + ")"), HasSubstr("must export wasi_thread_start"));
  EXPECT_THAT(error_of(spawn + "(memory 1 1 shared)" + start + ")"), HasSubstr("--import-memory"));
  for (const auto& [import, what] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"((import "other" "g" (global (mut i32))))", "a mutable global"},
           {R"((import "other" "t" (table 1 funcref)))", "a table"},
           {R"((import "other" "f" (func)))", "a function of another instance"},
           {R"((import "other" "m" (memory 1)))", "a memory that is not shared"}})
    EXPECT_THAT(error_of(spawn + import + memory + start + ")"), HasSubstr(what));
}

TEST(GuestThreadsWatched, EachHasAUnitOfItsOwn) {
  EngineConfig config;
  std::mutex mutex;
  std::set<int32_t> threads;
  config.guest_lwp = true;
  config.on_record = [&](const LwpRecord& record) {
    const std::lock_guard lock(mutex);
    if (record.event_id == 255) threads.insert(record.thread);
  };
  auto made = Engine::create(config);
  ASSERT_TRUE(made) << made.error().describe();
  Linker linker(**made);
  ASSERT_TRUE(linker.define_wasi({}));
  auto guest = instantiate(linker, **made, R"((module
    (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
    (import "hindsight_lwp" "enabled" (func $enabled (result i32)))
    (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
    (import "env" "memory" (memory 1 1 shared))
    (func (export "wasi_thread_start") (param i32 i32)
      (drop (i32.atomic.rmw.add (i32.const 4) (call $enabled)))
      (drop (call $insert (i64.const 1) (local.get 0) (i32.const 3)))
      (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
      (drop (memory.atomic.notify (i32.const 0) (i32.const -1))))
    (func (export "run") (param i32) (result i32) (local i32)
      (drop (call $insert (i64.const 1) (i32.const 0) (i32.const 3)))
      (loop
        (drop (call $spawn (i32.const 0)))
        (local.set 1 (i32.add (local.get 1) (i32.const 1)))
        (br_if 0 (i32.lt_u (local.get 1) (local.get 0))))
      (loop
        (local.set 1 (i32.atomic.load (i32.const 0)))
        (if (i32.ne (local.get 1) (local.get 0))
          (then (drop (memory.atomic.wait32 (i32.const 0) (local.get 1) (i64.const -1))) (br 1))))
      (i32.atomic.load (i32.const 4)))))");
  ASSERT_NE(guest, nullptr);
  constexpr int32_t kThreads = 4;
  const auto watched = guest->call("run", std::array{Value::i32(kThreads)});
  ASSERT_TRUE(watched) << watched.error().describe();
  if ((*watched)[0].as_i32() == 0) GTEST_SKIP() << "no unit of this machine listens";
  EXPECT_EQ((*watched)[0].as_i32(), kThreads);
  guest.reset();
  (*made)->feedback_report();  // drains
  const std::lock_guard lock(mutex);
  EXPECT_EQ(threads.size(), kThreads + 1u);
}

}  // namespace
}  // namespace hindsight
