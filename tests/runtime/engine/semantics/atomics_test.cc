// Atomic instructions on every tier. Each is tried in every width, on memories of every kind. They are
// contended by threads of the embedder that share a memory, which also wait and notify.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int64_t number(Instance& guest, std::string_view function, std::vector<Value> args) {
  auto result = guest.call(function, args);
  EXPECT_TRUE(result) << function << ": " << result.error().describe();
  return result && !result->empty() ? (*result)[0].as_i64() : -1;
}

struct Shape {
  const char* type;   // of the values
  const char* width;  // in the name
  uint32_t bytes;
  const char* suffix() const { return *width ? "_u" : ""; }
  bool wide() const { return type[1] == '6'; }
  Value value(uint64_t bits) const {
    return wide() ? Value::i64(static_cast<int64_t>(bits)) : Value::i32(static_cast<int32_t>(bits));
  }
  uint64_t mask() const { return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1; }
};
constexpr Shape kShapes[] = {{"i32", "", 4},  {"i64", "", 8},   {"i32", "8", 1}, {"i32", "16", 2},
                             {"i64", "8", 1}, {"i64", "16", 2}, {"i64", "32", 4}};

struct Operator {
  const char* name;
  uint64_t (*apply)(uint64_t old, uint64_t value);
};
constexpr Operator kOperators[] = {{"add", [](uint64_t a, uint64_t b) { return a + b; }},
                                   {"sub", [](uint64_t a, uint64_t b) { return a - b; }},
                                   {"and", [](uint64_t a, uint64_t b) { return a & b; }},
                                   {"or", [](uint64_t a, uint64_t b) { return a | b; }},
                                   {"xor", [](uint64_t a, uint64_t b) { return a ^ b; }},
                                   {"xchg", [](uint64_t, uint64_t b) { return b; }}};

// Functions named after the instructions, on memory 1 with these
// addresses. "drop_..." do not want the old value; "const_..." have a constant operand, address and offset.
std::string every_instruction(std::string_view memory, std::string_view address) {
  std::string text = fmt::format("(module (memory $other 1 2) {}\n", memory);
  for (const Shape& s : kShapes) {
    text += fmt::format(
        "(func (export \"{0}.load{1}\") (param {2}) (result {0}) ({0}.atomic.load{1}{3} 1 offset=16 "
        "(local.get 0)))\n"
        "(func (export \"{0}.store{1}\") (param {2} {0}) ({0}.atomic.store{1} 1 offset=16 (local.get 0) "
        "(local.get 1)))\n"
        "(func (export \"{0}.cmpxchg{1}\") (param {2} {0} {0}) (result {0})"
        " ({0}.atomic.rmw{1}.cmpxchg{3} 1 offset=16 (local.get 0) (local.get 1) (local.get 2)))\n",
        s.type, s.width, address, s.suffix());
    for (const Operator& o : kOperators)
      text += fmt::format(
          "(func (export \"{0}.{4}{1}\") (param {2} {0}) (result {0})"
          " ({0}.atomic.rmw{1}.{4}{3} 1 offset=16 (local.get 0) (local.get 1)))\n"
          "(func (export \"drop_{0}.{4}{1}\") (param {2} {0})"
          " (drop ({0}.atomic.rmw{1}.{4}{3} 1 offset=16 (local.get 0) (local.get 1))))\n"
          "(func (export \"const_{0}.{4}{1}\") (result {0})"
          " ({0}.atomic.rmw{1}.{4}{3} 1 offset=16 ({2}.const 8) ({0}.const -7)))\n",
          s.type, s.width, address, s.suffix(), o.name);
  }
  return text + ")";
}

class Atomics : public testing::TestWithParam<Mode> {
 protected:
  // All instructions on one memory, against what C++ says.
  void expect_right(std::string_view memory, bool is64) {
    auto engine = make_engine(GetParam());
    Linker linker(*engine);
    auto guest = instantiate(linker, *engine, every_instruction(memory, is64 ? "i64" : "i32"));
    ASSERT_NE(guest, nullptr);
    std::byte* const bytes = guest->memory("m").value().data() + 16;
    const auto address = [is64](uint64_t at) {
      return is64 ? Value::i64(static_cast<int64_t>(at)) : Value::i32(static_cast<int32_t>(at));
    };
    std::mt19937_64 random(7);
    for (const Shape& s : kShapes) {
      const auto call = [&](const std::string& name, std::vector<Value> args) {
        auto result = guest->call(name, args);
        EXPECT_TRUE(result) << name << ": " << result.error().describe();
        if (!result || result->empty()) return uint64_t{0};
        return s.wide() ? static_cast<uint64_t>((*result)[0].as_i64())
                        : uint64_t{static_cast<uint32_t>((*result)[0].as_i32())};
      };
      const auto in_memory = [&](uint64_t at) {
        uint64_t bits = 0;
        std::memcpy(&bits, bytes + at, s.bytes);
        return bits;
      };
      // Whatever is next to the value stays.
      const auto fill = [&](uint64_t at, uint64_t bits) {
        std::memset(bytes + at - 8, 0xa5, 24);
        std::memcpy(bytes + at, &bits, s.bytes);
      };
      const auto untouched = [&](uint64_t at) {
        for (uint64_t i = at - 8; i < at + 16; i++)
          if ((i < at || i >= at + s.bytes) && bytes[i] != std::byte{0xa5}) return false;
        return true;
      };
      const std::string dot = std::string(s.type) + ".";
      for (int round = 0; round < 8; round++) {
        const uint64_t at = 8 + s.bytes * (random() % 64) + 8 * 64;
        const uint64_t old = random() & s.mask();
        const uint64_t value = random();
        fill(at, old);
        EXPECT_EQ(call(dot + "load" + s.width, {address(at)}), old) << dot << s.width;
        call(dot + "store" + s.width, {address(at), s.value(value)});
        EXPECT_EQ(in_memory(at), value & s.mask()) << dot << s.width;
        EXPECT_TRUE(untouched(at));
        for (const Operator& o : kOperators) {
          fill(at, old);
          EXPECT_EQ(call(dot + o.name + s.width, {address(at), s.value(value)}), old)
              << dot << o.name << s.width;
          EXPECT_EQ(in_memory(at), o.apply(old, value) & s.mask()) << dot << o.name << s.width;
          fill(at, old);
          call("drop_" + dot + o.name + s.width, {address(at), s.value(value)});
          EXPECT_EQ(in_memory(at), o.apply(old, value) & s.mask()) << "drop " << dot << o.name << s.width;
          EXPECT_TRUE(untouched(at)) << o.name;
          fill(8, old);
          EXPECT_EQ(call("const_" + dot + o.name + s.width, {}), old) << dot << o.name << s.width;
          EXPECT_EQ(in_memory(8), o.apply(old, uint64_t{0} - 7) & s.mask()) << "const " << dot << o.name;
        }
        fill(at, old);
        EXPECT_EQ(call(dot + "cmpxchg" + s.width, {address(at), s.value(old), s.value(value)}), old);
        EXPECT_EQ(in_memory(at), value & s.mask()) << dot << "cmpxchg" << s.width;
        EXPECT_EQ(
            call(dot + "cmpxchg" + s.width, {address(at), s.value((value + 1) & s.mask()), s.value(old)}),
            value & s.mask());
        EXPECT_EQ(in_memory(at), value & s.mask()) << dot << "cmpxchg" << s.width;
        EXPECT_TRUE(untouched(at));
      }
      for (const char* name : {"load", "store", "add", "cmpxchg"}) {
        for (uint64_t off = 1; off < s.bytes; off++) {
          std::vector<Value> args{address(64 + off)};
          if (std::string_view(name) != "load") args.push_back(s.value(1));
          if (std::string_view(name) == "cmpxchg") args.push_back(s.value(1));
          EXPECT_EQ(trap_of(*guest, dot + name + s.width, args), "unaligned atomic") << dot << name << off;
        }
        std::vector<Value> args{address(65536 - 16)};
        if (std::string_view(name) != "load") args.push_back(s.value(1));
        if (std::string_view(name) == "cmpxchg") args.push_back(s.value(1));
        EXPECT_EQ(trap_of(*guest, dot + name + s.width, args), "out of bounds memory access") << dot << name;
        args[0] = address(is64 ? ~uint64_t{7} : uint64_t{0xfffffff8});
        EXPECT_EQ(trap_of(*guest, dot + name + s.width, args), "out of bounds memory access") << dot << name;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Atomics, kEveryMode, mode_name);

TEST_P(Atomics, AreRightInEveryWidth) {
  expect_right(R"((memory $m (export "m") 1 1 shared))", false);
}
TEST_P(Atomics, AreRightOnAMemoryThatIsNotShared) {
  expect_right(R"((memory $m (export "m") 1))", false);
}
TEST_P(Atomics, AreRightOnAMemoryOfSixtyFourBits) {
  expect_right(R"((memory $m (export "m") i64 1 1 shared))", true);
}

constexpr std::string_view kOddConstants = R"((module (memory 1 1 shared)
  (func (export "load") (result i32) (i32.atomic.load offset=2 (i32.const 4)))
  (func (export "odd_offset") (param i32) (result i32) (i32.atomic.load offset=3 (local.get 0)))
  (func (export "notify") (param i32) (result i32) (memory.atomic.notify offset=4 (local.get 0) (i32.const 1)))
  (func (export "wait32") (param i32) (result i32)
    (memory.atomic.wait32 offset=4 (local.get 0) (i32.const 1) (i64.const 0)))
  (func (export "wait64") (param i32) (result i32)
    (memory.atomic.wait64 offset=8 (local.get 0) (i64.const 1) (i64.const 0)))
  (func (export "fence") (param i32) (result i32) (atomic.fence) (local.get 0))))";

TEST_P(Atomics, TrapAtAddressesThatAreNotAligned) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  auto guest = instantiate(linker, *engine, kOddConstants);
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(trap_of(*guest, "load"), "unaligned atomic");
  EXPECT_EQ(trap_of(*guest, "odd_offset", {Value::i32(4)}), "unaligned atomic");
  EXPECT_EQ(trap_of(*guest, "odd_offset", {Value::i32(1)}), "no trap");
  EXPECT_EQ(trap_of(*guest, "odd_offset", {Value::i32(-3)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "notify", {Value::i32(2)}), "unaligned atomic");
  EXPECT_EQ(trap_of(*guest, "wait32", {Value::i32(2)}), "unaligned atomic");
  EXPECT_EQ(trap_of(*guest, "wait64", {Value::i32(4)}), "unaligned atomic");
  EXPECT_EQ(trap_of(*guest, "notify", {Value::i32(65532)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "wait32", {Value::i32(-4)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "wait64", {Value::i32(65528)}), "out of bounds memory access");
  EXPECT_EQ(number(*guest, "wait64", {Value::i32(65520)}), 1);
  EXPECT_EQ(number(*guest, "fence", {Value::i32(5)}), 5);
}

TEST_P(Atomics, OfAMemoryThatIsNotSharedWakeNobodyAndTrapWhereTheyWouldWait) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  auto guest = instantiate(linker, *engine, R"((module (memory 1 1)
    (func (export "notify") (result i32) (memory.atomic.notify (i32.const 0) (i32.const 1)))
    (func (export "wait32") (result i32) (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 0)))
    (func (export "wait64") (result i32) (memory.atomic.wait64 (i32.const 0) (i64.const 0) (i64.const 0)))))");
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(number(*guest, "notify", {}), 0);
  EXPECT_EQ(trap_of(*guest, "wait32"), "expected shared memory");
  EXPECT_EQ(trap_of(*guest, "wait64"), "expected shared memory");
}

// ---- threads of the embedder, which share a memory ------------------------------------------------------

constexpr std::string_view kOwner = R"((module (memory (export "m") 1 64 shared)))";
constexpr std::string_view kWorker = R"((module
  (import "shared" "m" (memory 1 64 shared))
  ;; A barrier: counts down the word at 4, and spins until it is 0.
  (func $meet (drop (i32.atomic.rmw.sub (i32.const 4) (i32.const 1)))
    (loop (br_if 0 (i32.gt_s (i32.atomic.load (i32.const 4)) (i32.const 0)))))
  (func (export "add") (param i32)
    (call $meet)
    (loop
      (drop (i32.atomic.rmw.add (i32.const 64) (i32.const 1)))
      (i64.atomic.store (i32.const 256) (i64.add (i64.const 3) (i64.atomic.rmw.add (i32.const 128) (i64.const 3))))
      (drop (i32.atomic.rmw16.sub_u (i32.const 192) (i32.const 1)))
      (drop (i32.atomic.rmw8.add_u (i32.const 195) (i32.const 1)))
      (drop (i32.atomic.rmw.xor (i32.const 320) (local.get 0)))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  ;; Adds by compare and exchange.
  (func (export "exchange") (param i32) (local i32)
    (call $meet)
    (loop $next
      (loop $again
        (local.set 1 (i32.atomic.load (i32.const 64)))
        (br_if $again (i32.ne (local.get 1)
          (i32.atomic.rmw.cmpxchg (i32.const 64) (local.get 1) (i32.add (local.get 1) (i32.const 1))))))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  ;; What a lock protects is plain.
  (func (export "locked") (param i32)
    (call $meet)
    (loop $next
      (loop $again (br_if $again (i32.atomic.rmw.xchg (i32.const 8) (i32.const 1))))
      (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
      (i32.atomic.store (i32.const 8) (i32.const 0))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "wait") (param i32 i32 i64) (result i32)
    (drop (i32.atomic.rmw.add (i32.const 12) (i32.const 1)))
    (memory.atomic.wait32 (local.get 0) (local.get 1) (local.get 2)))
  (func (export "wait64") (param i32 i64 i64) (result i32)
    (drop (i32.atomic.rmw.add (i32.const 12) (i32.const 1)))
    (memory.atomic.wait64 (local.get 0) (local.get 1) (local.get 2)))
  (func (export "notify") (param i32 i32) (result i32) (memory.atomic.notify (local.get 0) (local.get 1)))
  (func (export "set") (param i32 i32) (i32.atomic.store (local.get 0) (local.get 1)))
  (func (export "get") (param i32) (result i32) (i32.atomic.load (local.get 0)))
  (func (export "size") (result i32) (memory.size))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  ;; Touches the last word of the memory for as long as it grows; how often the size was less than before.
  (func (export "touch") (result i32) (local $size i32) (local $next i32) (local $shrunk i32)
    (call $meet)
    (loop
      (local.set $next (memory.size))
      (local.set $shrunk (i32.add (local.get $shrunk) (i32.lt_u (local.get $next) (local.get $size))))
      (local.set $size (local.get $next))
      (i32.store (i32.sub (i32.shl (local.get $size) (i32.const 16)) (i32.const 4)) (i32.const 1))
      (drop (i32.load (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4))))
      (br_if 0 (i32.lt_u (local.get $size) (i32.const 64))))
    (local.get $shrunk))))";

class SharedMemory : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    owner_ = instantiate(linker, *engine_, kOwner);
    ASSERT_NE(owner_, nullptr);
    module_ = load(*engine_, kWorker);
  }
  // An instance in a store of its own.
  std::shared_ptr<Instance> worker() {
    Linker linker(*engine_);
    EXPECT_TRUE(linker.define_shared_memory("shared", "m", *owner_, "m"));
    auto instance = linker.instantiate(module_);
    EXPECT_TRUE(instance) << instance.error().describe();
    return instance ? *instance : nullptr;
  }
  int32_t word(uint32_t at) {
    auto* place = reinterpret_cast<int32_t*>(owner_->memory("m").value().data() + at);
    return std::atomic_ref(*place).load();
  }
  void set_word(uint32_t at, int32_t value) {
    auto* place = reinterpret_cast<int32_t*>(owner_->memory("m").value().data() + at);
    std::atomic_ref(*place).store(value);
  }
  // The function in `count` instances at once.
  void together(int count, const std::function<void(Instance&)>& body) {
    std::vector<std::shared_ptr<Instance>> workers;
    for (int i = 0; i < count; i++) workers.push_back(worker());
    set_word(4, count);
    std::vector<std::thread> threads;
    for (const auto& instance : workers) threads.emplace_back([&body, instance] { body(*instance); });
    for (std::thread& thread : threads) thread.join();
  }
  void await_waiters(int32_t count) {
    while (word(12) < count) std::this_thread::yield();
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Instance> owner_;
  std::shared_ptr<const Module> module_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, SharedMemory, kEveryMode, mode_name);

TEST_P(SharedMemory, CountsExactlyWhatThreadsAddAtOnce) {
  constexpr int32_t kThreads = 4, kRounds = 20'000;
  together(kThreads,
           [](Instance& guest) { ASSERT_TRUE(guest.call("add", std::array{Value::i32(kRounds)})); });
  EXPECT_EQ(word(64), kThreads * kRounds);
  EXPECT_EQ(word(128), 3 * kThreads * kRounds);
  EXPECT_EQ(word(192), static_cast<int32_t>((0x10000u - (kThreads * kRounds & 0xffff)) & 0xffff) |
                           static_cast<int32_t>((kThreads * kRounds & 0xffu) << 24));
  EXPECT_EQ(word(320), 0);  // an even number of each
  EXPECT_GE(word(256), 3 * kRounds);
  together(kThreads,
           [](Instance& guest) { ASSERT_TRUE(guest.call("exchange", std::array{Value::i32(kRounds)})); });
  EXPECT_EQ(word(64), 2 * kThreads * kRounds);
}

TEST_P(SharedMemory, OrdersPlainAccessesByALockOfAtomics) {
  constexpr int32_t kThreads = 2, kRounds = 5'000;
  together(kThreads,
           [](Instance& guest) { ASSERT_TRUE(guest.call("locked", std::array{Value::i32(kRounds)})); });
  EXPECT_EQ(word(64), kThreads * kRounds);
}

TEST_P(SharedMemory, GrowsBesideThreadsThatUseIt) {
  std::atomic<int> in_order{0};
  constexpr int kReaders = 2;
  std::vector<std::shared_ptr<Instance>> readers{worker(), worker()};
  auto grower = worker();
  set_word(4, kReaders + 1);
  std::vector<std::thread> threads;
  for (const auto& reader : readers)
    threads.emplace_back([&, reader] { in_order += number(*reader, "touch", {}) == 0; });
  std::byte* const base = owner_->memory("m").value().data();
  auto* meeting = reinterpret_cast<int32_t*>(base + 4);
  std::atomic_ref(*meeting).fetch_sub(1);
  for (int32_t pages = 1; pages < 64; pages++) EXPECT_EQ(number(*grower, "grow", {Value::i32(1)}), pages);
  EXPECT_EQ(number(*grower, "grow", {Value::i32(1)}), static_cast<uint32_t>(-1));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in_order, kReaders);
  EXPECT_EQ(owner_->memory("m").value().data(), base);
  EXPECT_EQ(owner_->memory("m").value().size(), 64u * 65536);
}

TEST_P(SharedMemory, OfTwoGrowersEachGetsItsOwnPages) {
  std::atomic<uint64_t> seen{0};
  together(2, [&](Instance& guest) {
    for (int i = 0; i < 31; i++) seen |= uint64_t{1} << number(guest, "grow", {Value::i32(1)});
  });
  EXPECT_EQ(seen, (~uint64_t{0} >> 1) & ~uint64_t{1});  // every size from 1 to 62
  EXPECT_EQ(owner_->memory("m").value().size(), 63u * 65536);
}

TEST_P(SharedMemory, WakesAsManyWaitersAsAreNotified) {
  constexpr int32_t kWaiters = 4;
  std::vector<std::shared_ptr<Instance>> waiters;
  for (int i = 0; i < kWaiters; i++) waiters.push_back(worker());
  auto notifier = worker();
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (const auto& waiter : waiters)
    threads.emplace_back([&, waiter] {
      const bool half = waiter == waiters[0];
      const Value timeout = Value::i64(-1);
      woken += half ? number(*waiter, "wait64", {Value::i32(1024), Value::i64(0), timeout}) == 0
                    : number(*waiter, "wait", {Value::i32(1024), Value::i32(0), timeout}) == 0;
    });
  await_waiters(kWaiters);
  EXPECT_EQ(number(*notifier, "notify", {Value::i32(1028), Value::i32(9)}), 0);  // another place
  EXPECT_EQ(number(*notifier, "notify", {Value::i32(1024), Value::i32(0)}), 0);
  int64_t notified = 0;
  while (notified < 1) notified += number(*notifier, "notify", {Value::i32(1024), Value::i32(1)});
  EXPECT_EQ(notified, 1);
  // One may have said that it is about to wait and not do so yet.
  while (notified < kWaiters) notified += number(*notifier, "notify", {Value::i32(1024), Value::i32(-1)});
  EXPECT_EQ(notified, kWaiters);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, kWaiters);
  EXPECT_EQ(number(*notifier, "notify", {Value::i32(1024), Value::i32(-1)}), 0);
}

TEST_P(SharedMemory, AnswersWhatAWaitCameTo) {
  auto guest = worker();
  set_word(1024, 5);
  EXPECT_EQ(number(*guest, "wait", {Value::i32(1024), Value::i32(4), Value::i64(-1)}), 1);
  EXPECT_EQ(number(*guest, "wait64", {Value::i32(1024), Value::i64(4), Value::i64(-1)}), 1);
  EXPECT_EQ(number(*guest, "wait", {Value::i32(1024), Value::i32(5), Value::i64(0)}), 2);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(number(*guest, "wait", {Value::i32(1024), Value::i32(5), Value::i64(2'000'000)}), 2);
  EXPECT_EQ(number(*guest, "wait64", {Value::i32(1024), Value::i64(5), Value::i64(2'000'000)}), 2);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 4ms);
}

TEST_P(SharedMemory, AThreadThatWaitsCanBeInterrupted) {
  auto guest = worker();
  guest->set_timeout(20ms);
  EXPECT_EQ(trap_of(*guest, "wait", {Value::i32(1024), Value::i32(0), Value::i64(-1)}), "timed out");
  guest->set_timeout(0ms);
  ASSERT_NE(guest->last_trap(), nullptr);
  EXPECT_EQ(functions_of(guest->last_trap()).size(), 1u);
  set_word(12, 0);
  std::thread other([&] {
    await_waiters(1);
    guest->interrupt();
  });
  EXPECT_EQ(trap_of(*guest, "wait64", {Value::i32(1024), Value::i64(0), Value::i64(-1)}), "interrupted");
  other.join();
  // Nothing of it is left, and nobody is in the queue.
  EXPECT_EQ(number(*guest, "wait", {Value::i32(1024), Value::i32(0), Value::i64(0)}), 2);
  EXPECT_EQ(number(*guest, "notify", {Value::i32(1024), Value::i32(-1)}), 0);
}

TEST_P(SharedMemory, OutlivesTheStoreThatMadeIt) {
  auto guest = worker();
  ASSERT_TRUE(guest->call("set", std::array{Value::i32(1024), Value::i32(77)}));
  owner_.reset();
  EXPECT_EQ(number(*guest, "get", {Value::i32(1024)}), 77);
  EXPECT_EQ(number(*guest, "grow", {Value::i32(1)}), 1);
}

TEST(SharedMemories, MatchOnlyImportsThatSaySo) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto owner =
      instantiate(linker, *engine, R"((module (memory (export "s") 1 4 shared) (memory (export "u") 1 4)))");
  linker.define_instance("owner", owner);
  EXPECT_TRUE(linker.instantiate(load(*engine, R"((module (import "owner" "s" (memory 1 4 shared))))")));
  auto guest = linker.instantiate(load(*engine, R"((module (import "owner" "s" (memory 1 4))))"));
  ASSERT_FALSE(guest);
  EXPECT_THAT(guest.error().message, HasSubstr("wants a memory that is not shared"));
  guest = linker.instantiate(load(*engine, R"((module (import "owner" "u" (memory 1 4 shared))))"));
  ASSERT_FALSE(guest);
  EXPECT_THAT(guest.error().message, HasSubstr("wants a shared memory"));
  Linker other(*engine);
  EXPECT_EQ(other.define_shared_memory("a", "b", *owner, "u").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(other.define_shared_memory("a", "b", *owner, "nothing").error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace hindsight
