#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

class Calls : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(EveryMode, Calls, kEveryMode, mode_name);

constexpr std::string_view kCallsGuest = R"((module
  (import "host" "mix" (func $mix (param i32 i64 f32 f64) (result f64)))
  (import "host" "pair" (func $pair (param i32) (result i32 i64)))
  (memory (export "memory") 1)
  (global (export "counter") (mut i64) (i64.const 5))
  (global (export "constant") i32 (i32.const 9))
  (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
  (func (export "mix") (result f64) i32.const -1 i64.const -2 f32.const 0.5 f64.const 0.25 call $mix)
  (func (export "pair") (param i32) (result i32 i64) local.get 0 call $pair)
  (func (export "many") (param i32 i64 f32 f64 i32 i64 f32 f64 i32 i64) (result i64)
    local.get 9 local.get 8 i64.extend_i32_s i64.sub)
  (func (export "nothing"))))";

void define_host(Linker& linker) {
  linker.define_function("host", "mix", [](int32_t a, int64_t b, float c, double d) -> double {
    return static_cast<double>(a) + static_cast<double>(b) + c + d;
  });
  linker.define_function("host", "pair",
                         [](int32_t v) { return std::tuple<int32_t, int64_t>(v + 1, int64_t{v} << 33); });
}

TEST_P(Calls, PassEveryKindOfValueBothWays) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  define_host(linker);
  auto guest = instantiate(linker, *engine, kCallsGuest);
  auto add = guest->typed_function<int32_t(int32_t, int32_t)>("add");
  ASSERT_TRUE(add);
  EXPECT_EQ((*add)(40, 2), 42);
  EXPECT_EQ((*add)(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(guest->typed_function<double()>("mix").value()(), -2.25);
  auto pair = guest->typed_function<std::tuple<int32_t, int64_t>(int32_t)>("pair");
  ASSERT_TRUE(pair);
  EXPECT_EQ((*pair)(-3), (std::tuple<int32_t, int64_t>(-2, int64_t{-3} * (int64_t{1} << 33))));
  auto many = guest->typed_function<int64_t(int32_t, int64_t, float, double, int32_t, int64_t, float, double,
                                            int32_t, int64_t)>("many");
  ASSERT_TRUE(many);
  EXPECT_EQ((*many)(0, 0, 0, 0, 0, 0, 0, 0, -5, 100), 105);
  EXPECT_TRUE(guest->typed_function<void()>("nothing").value()());
}

// Callers pass on their own context where that is the callee's. Each function here tells what its own instance's memory holds.
TEST_P(Calls, ThroughTablesAndReferencesUseWhatIsTheCallees) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  linker.define_function("host", "f", [](int32_t n) { return 300 + n; });
  const auto make = [&](const std::string& table, int memory, int slot) {
    return instantiate(linker, *engine,
                       fmt::format(R"((module (type $f (func (param i32) (result i32)))
      (import "host" "f" (func $host (type $f))) (table {0} 3 (ref null $f)) (memory 1)
      (data (i32.const 0) "\{1:02x}") (elem (table 0) (i32.const {2}) (ref null $f) (ref.func $f))
      (elem (table 0) (i32.const 2) (ref null $f) (ref.func $host))
      (func $mine (result i32) (i32.load8_u (i32.const 0)))
      (func $f (type $f) (i32.add (i32.mul (call $mine) (i32.const 100)) (local.get 0)))
      (func (export "indirect") (param i32 i32) (result i32)
        (i32.add (call_indirect (type $f) (local.get 1) (local.get 0)) (call $mine)))
      (func (export "reference") (param i32 i32) (result i32)
        (i32.add (call_ref $f (local.get 1) (table.get 0 (local.get 0))) (call $mine)))
      (func (export "tail_indirect") (param i32 i32) (result i32)
        (return_call_indirect (type $f) (local.get 1) (local.get 0)))
      (func (export "tail_reference") (param i32 i32) (result i32)
        (return_call_ref $f (local.get 1) (table.get 0 (local.get 0))))))",
                                   table, memory, slot));
  };
  auto first = make("(export \"table\")", 1, 0);
  linker.define_instance("first", first);
  auto second = make("(import \"first\" \"table\")", 2, 1);
  for (int round = 0; round < 3; ++round) {
    for (const auto& [guest, mine] : {std::pair(first.get(), 1), std::pair(second.get(), 2)}) {
      for (int32_t slot = 0; slot < 3; ++slot) {
        const auto call = [&](std::string_view name) {
          const Value arguments[] = {Value::i32(slot), Value::i32(7)};
          auto result = guest->call(name, arguments);
          EXPECT_TRUE(result) << result.error().describe();
          return result ? (*result)[0].as_i32() : -1;
        };
        const int32_t theirs = 100 * (slot + 1) + 7;
        EXPECT_EQ(call("indirect"), theirs + mine) << mine << " " << slot;
        EXPECT_EQ(call("reference"), theirs + mine) << mine << " " << slot;
        EXPECT_EQ(call("tail_indirect"), theirs) << mine << " " << slot;
        EXPECT_EQ(call("tail_reference"), theirs) << mine << " " << slot;
      }
    }
  }
}

TEST_P(Calls, PassVectorsBothWays) {
  auto engine = make_engine(GetParam());
  Linker linker(*engine);
  linker.define_function("host", "swap", [](int32_t n, const V128& a, V128 b, float f) {
    a.bytes[0] == 1 ? ++b.bytes[15] : 0;
    return std::tuple<V128, float, V128>(b, f + static_cast<float>(n), a);
  });
  auto guest = instantiate(linker, *engine, R"((module
    (import "host" "swap" (func $swap (param i32 v128 v128 f32) (result v128 f32 v128)))
    (global (export "vector") (mut v128) (v128.const i32x4 1 2 3 4))
    (func (export "swap") (param v128 v128) (result v128 f32 v128)
      i32.const 2 local.get 0 local.get 1 f32.const 0.5 call $swap)
    (func (export "add") (param v128 v128) (result v128) local.get 0 local.get 1 i8x16.add)
    (func (export "hot") (param i32) (result v128) (local v128)
      (loop (result v128)
        (local.set 1 (i32x4.add (local.get 1) (i32x4.splat (local.get 0))))
        local.get 1
        (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))))");
  V128 ones, counting;
  for (uint8_t i = 0; i < 16; ++i) ones.bytes[i] = 1, counting.bytes[i] = i;
  auto add = guest->typed_function<V128(V128, V128)>("add");
  ASSERT_TRUE(add);
  V128 sum = (*add)(ones, counting).value();
  for (uint8_t i = 0; i < 16; ++i) EXPECT_EQ(sum.bytes[i], i + 1);
  const auto results = guest->call("swap", std::array{Value::v128(ones), Value::v128(counting)}).value();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].as_v128().bytes[15], 16);
  EXPECT_EQ(results[1].as_f32(), 2.5f);
  EXPECT_EQ(results[2].as_v128(), ones);
  EXPECT_EQ(guest->global("vector").value().as_v128().bytes[12], 4);
  EXPECT_TRUE(guest->set_global("vector", Value::v128(counting)));
  EXPECT_EQ(guest->global("vector").value().as_v128(), counting);
  EXPECT_FALSE(guest->set_global("vector", Value::i32(1)));
  // Long enough to be replaced while it runs, where the mode does that.
  const Value hot = guest->call("hot", std::array{Value::i32(3'000'000)}).value()[0];
  const auto wanted = static_cast<uint32_t>(uint64_t{3'000'000} * 3'000'001 / 2);
  EXPECT_EQ(hot.bits, uint64_t{wanted} << 32 | wanted);
  EXPECT_EQ(hot.high, hot.bits);
}

TEST(CallErrors, SayWhatIsWrongWithTheCall) {
  auto engine = make_engine();
  Linker linker(*engine);
  define_host(linker);
  auto guest = instantiate(linker, *engine, kCallsGuest);
  auto missing = guest->call("absent", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(guest->call("add", std::vector{Value::i32(1)}));
  EXPECT_FALSE(guest->call("add", std::vector{Value::i32(1), Value::f32(2)}));
  EXPECT_FALSE(guest->call("memory", {}));
  EXPECT_FALSE(guest->typed_function<int64_t(int32_t, int32_t)>("add"));
  uint64_t slot = 0;
  EXPECT_FALSE(guest->call_raw(guest->find_function("add").value(), std::span(&slot, 1)));
}

TEST(Exports, CanBeReadAndWritten) {
  auto engine = make_engine();
  Linker linker(*engine);
  define_host(linker);
  auto guest = instantiate(linker, *engine, kCallsGuest);
  EXPECT_EQ(guest->global("counter").value().as_i64(), 5);
  EXPECT_TRUE(guest->set_global("counter", Value::i64(-6)));
  EXPECT_EQ(guest->global("counter").value().as_i64(), -6);
  EXPECT_FALSE(guest->set_global("counter", Value::i32(1)));
  EXPECT_FALSE(guest->set_global("constant", Value::i32(1)));
  EXPECT_EQ(guest->memory("memory").value().size(), 65536u);
  EXPECT_EQ(guest->memory().value().data(), guest->memory("memory").value().data());
  EXPECT_EQ(guest->module()->exports().size(), 8u);
  EXPECT_EQ(guest->module()->imports()[0].function->params.size(), 4u);
}

TEST(Lifetimes, AnInstanceKeepsItsModuleAndEngineAlive) {
  std::shared_ptr<Instance> guest;
  {
    auto engine = make_engine();
    Linker linker(*engine);
    define_host(linker);
    guest = instantiate(linker, *engine, kCallsGuest);
  }
  EXPECT_EQ(guest->typed_function<double()>("mix").value()(), -2.25);
}

TEST_P(Calls, RunInDifferentStoresAtTheSameTime) {
  auto engine = make_engine(GetParam());
  auto module = load(*engine, R"((module (memory 1)
    (func $fib (export "fib") (param i32) (result i32)
      (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
        (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                       (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
    (func (export "trap") (drop (i32.load (i32.const -1))))))");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      Linker linker(*engine);
      auto guest = linker.instantiate(module).value();
      for (int i = 0; i < 20; i++) {
        right += guest->call("fib", std::vector{Value::i32(15)}).value()[0].as_i32() == 610;
        right += trap_of(*guest, "trap") == "out of bounds memory access";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
}

TEST(Wasi, RunsACommandAndReportsItsExitStatus) {
  auto engine = make_engine();
  Linker linker(*engine);
  std::string output;
  WasiConfig wasi;
  wasi.args = {"guest"};
  wasi.stdout_sink = [&](std::string_view text) { output += text; };
  ASSERT_TRUE(linker.define_wasi(wasi));
  auto guest = instantiate(linker, *engine, R"((module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\08\00\00\00\06\00\00\00hello\n")
    (func (export "_start")
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
      (call $exit (i32.const 3)))))");
  auto result = guest->call("_start", {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kExit);
  EXPECT_EQ(guest->exit_code(), 3u);
  EXPECT_EQ(output, "hello\n");
}

}  // namespace
}  // namespace hindsight
