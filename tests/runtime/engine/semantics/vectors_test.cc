// Vectors where they meet the rest of the language, on every tier. That is arguments that have no
// register, tail calls, host functions, several memories, 64-bit addresses, bounds.
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

V128 words(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  V128 vector;
  const uint32_t lanes[] = {a, b, c, d};
  std::memcpy(vector.bytes.data(), lanes, sizeof lanes);
  return vector;
}

class Vectors : public testing::TestWithParam<Mode> {
 protected:
  std::shared_ptr<Instance> make(std::string_view wat) {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    linker.define_function("host", "reverse",
                           [](V128 a, V128 b, V128 c, V128 d, V128 e, V128 f, V128 g, V128 h, float s, V128 i,
                              int32_t n, V128 j) {
                             for (const V128& v : {b, c, d, e, f, g, h}) EXPECT_EQ(v, a);
                             EXPECT_EQ(s, 0.25f);
                             EXPECT_EQ(n, 9);
                             return std::tuple<V128, V128>(j, i);
                           });
    linker.define_function(
        "host", "last",
        [](int32_t, V128, V128, V128, V128, V128, V128, V128, V128, V128 last) { return last; });
    return instantiate(linker, *engine_, wat);
  }
  std::vector<Value> call(Instance& guest, std::string_view function, std::vector<Value> args) {
    auto results = guest.call(function, args);
    EXPECT_TRUE(results) << function << ": " << results.error().describe();
    return results ? *results : std::vector<Value>(1);
  }
  std::shared_ptr<Engine> engine_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Vectors, kEveryMode, mode_name);

// Ten vectors: two have no register, nor have the scalars among them.
constexpr std::string_view kCalls = R"((module
  (import "host" "reverse" (func $reverse
    (param v128 v128 v128 v128 v128 v128 v128 v128 f32 v128 i32 v128) (result v128 v128)))
  (import "host" "last" (func $last (param i32 v128 v128 v128 v128 v128 v128 v128 v128 v128) (result v128)))
  (type $step (func (param i32 v128 v128 v128 v128 v128 v128 v128 v128 f64 v128 i64 i64 i64 i64 i64 v128)
    (result v128 v128 f64)))
  (table funcref (elem $turn $step))
  (func $turn (type $step)
    (if (i32.eqz (local.get 0)) (then (return (local.get 10) (local.get 16) (local.get 9))))
    (i32.sub (local.get 0) (i32.const 1))
    (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 7) (local.get 8) (local.get 10)
    (f64.add (local.get 9) (f64.const 1))
    (local.get 16) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (local.get 15)
    (i32x4.add (local.get 1) (i32x4.splat (i32.wrap_i64 (local.get 15))))
    (return_call_indirect (type $step) (i32.and (local.get 0) (i32.const 1))))
  (func $step (type $step)
    (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 7)
    (local.get 8) (local.get 9) (local.get 10) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8) (local.get 15)
    (local.get 16)
    (return_call $turn))
  (func (export "turn") (param i32 v128) (result v128 v128 f64) (local v128)
    (local.get 0) (local.get 1)
    (local.tee 2 (i32x4.add (local.get 1) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (f64.const 0.5)
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 100)
    (local.tee 2 (i32x4.add (local.get 2) (v128.const i32x4 10 10 10 10)))
    (call $step))
  (func (export "reverse") (param v128 v128 v128) (result v128 v128)
    (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)
    (f32.const 0.25) (local.get 1) (i32.const 9) (local.get 2)
    (call $reverse))
  (func (export "last") (param v128 v128) (result v128)
    (i32.const 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)
    (local.get 0) (local.get 1)
    (return_call $last))))";

TEST_P(Vectors, ArePassedBeyondTheRegistersAndAtTheTail) {
  auto guest = make(kCalls);
  ASSERT_NE(guest, nullptr);
  // Each turn moves the ten vectors one place down and adds 100 to the one that goes to the end.
  const Value start = Value::v128(words(0, 1, 2, 3));
  const auto turned = [](uint32_t turns, uint32_t place) {
    const uint32_t n = (place + turns) % 10;
    const uint32_t base = 10 * n + 100 * ((place + turns) / 10);
    return words(base, base + 1, base + 2, base + 3);
  };
  for (const uint32_t turns : {0u, 1u, 3u, 10u, 23u}) {
    const auto results = call(*guest, "turn", {Value::i32(static_cast<int32_t>(turns)), start});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].as_v128(), turned(turns, 8)) << turns;
    EXPECT_EQ(results[1].as_v128(), turned(turns, 9)) << turns;
    EXPECT_EQ(results[2].as_f64(), 0.5 + turns);
  }
  call(*guest, "turn", {Value::i32(1'000'000), start});  // no frame remains
}

TEST_P(Vectors, AreGivenToHostFunctionsAndTakenFromThem) {
  auto guest = make(kCalls);
  ASSERT_NE(guest, nullptr);
  const V128 a = words(1, 2, 3, 4), b = words(5, 6, 7, 8), c = words(9, 10, 11, 0x80000000);
  const auto reversed = call(*guest, "reverse", {Value::v128(a), Value::v128(b), Value::v128(c)});
  ASSERT_EQ(reversed.size(), 2u);
  EXPECT_EQ(reversed[0].as_v128(), c);
  EXPECT_EQ(reversed[1].as_v128(), b);
  EXPECT_EQ(call(*guest, "last", {Value::v128(a), Value::v128(b)})[0].as_v128(), b);
}

TEST_P(Vectors, AsLocalsBeginAsZerosHoweverMany) {
  for (const int count : {3, 16, 17, 40}) {
    std::string locals, dirt, sum;
    for (int i = 0; i < count; ++i) {
      locals += i % 3 == 2 ? " i64" : " v128";
      const std::string index = std::to_string(i + 1);
      dirt += i % 3 == 2 ? " (local.set " + index + " (i64.const -1))"
                         : " (local.set " + index + " (v128.const i64x2 -1 -1))";
      sum += " (v128.or " +
             (i % 3 == 2 ? "(i64x2.splat (local.get " + index + "))" : "(local.get " + index + ")") + ")";
    }
    auto guest =
        make("(module (func $fresh (export \"fresh\") (param v128) (result v128) (local" + locals +
             ") (local.get 0)" + sum + ") (func $dirty (export \"dirty\") (param i32) (result i32) (local" +
             locals + ") (loop " + dirt + R"(
                        (if (v128.any_true (call $fresh (v128.const i64x2 0 0))) (then (return (i32.const 1))))
                        (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                      (i32.add (i32.const 2) (v128.any_true (local.get 1))))))");
    ASSERT_NE(guest, nullptr);
    EXPECT_EQ(call(*guest, "dirty", {Value::i32(3)})[0].as_i32(), 3);
    EXPECT_EQ(call(*guest, "fresh", {Value::v128(words(0, 5, 0, 0))})[0].as_v128(), words(0, 5, 0, 0));
  }
}

constexpr std::string_view kMemories = R"((module
  (memory $a 1) (memory $b (export "b") 1) (memory $c (export "c") i64 1)
  (func (export "store_b") (param i32 v128) (v128.store $b offset=4 (local.get 0) (local.get 1)))
  (func (export "load_b") (param i32) (result v128) (v128.load $b offset=4 (local.get 0)))
  (func (export "store_c") (param i64 v128) (v128.store $c offset=4 (local.get 0) (local.get 1)))
  (func (export "load_c") (param i64) (result v128) (v128.load $c offset=4 (local.get 0)))
  (func (export "far_c") (param i64) (result v128) (v128.load $c offset=0x7ffffff8 (local.get 0)))
  (func (export "a") (param i32) (result i32) (i32x4.extract_lane 0 (v128.load $a (local.get 0))))
  (func (export "lanes_b") (param i32 v128) (result v128)
    (v128.store16_lane $b offset=2 6 (local.get 0) (local.get 1))
    (v128.load32_lane $b offset=1 3 (local.get 0) (local.get 1)))
  (func (export "lanes_c") (param i64 v128) (result v128)
    (v128.store64_lane $c offset=2 1 (local.get 0) (local.get 1))
    (v128.load8_lane $c offset=3 15 (local.get 0) (local.get 1)))
  (func (export "splat_c") (param i64) (result v128) (v128.load32_splat $c (local.get 0)))
  (func (export "widen_b") (param i32) (result v128) (v128.load8x8_s $b (local.get 0)))))";

TEST_P(Vectors, AreLoadedAndStoredInEveryMemory) {
  auto guest = make(kMemories);
  ASSERT_NE(guest, nullptr);
  const V128 v = words(0x03020100, 0x07060504, 0x8b8a8988, 0x8f8e8d8c);
  call(*guest, "store_b", {Value::i32(65516), Value::v128(v)});
  call(*guest, "store_c", {Value::i64(65516), Value::v128(v)});
  EXPECT_EQ(call(*guest, "load_b", {Value::i32(65516)})[0].as_v128(), v);
  EXPECT_EQ(call(*guest, "load_c", {Value::i64(65516)})[0].as_v128(), v);
  EXPECT_EQ(call(*guest, "a", {Value::i32(65520)})[0].as_i32(), 0);
  EXPECT_EQ(call(*guest, "widen_b", {Value::i32(65524)})[0].as_v128(),
            words(0x00050004, 0x00070006, 0xff89ff88, 0xff8bff8a));
  EXPECT_EQ(call(*guest, "splat_c", {Value::i64(65532)})[0].as_v128(),
            words(0x8f8e8d8c, 0x8f8e8d8c, 0x8f8e8d8c, 0x8f8e8d8c));
  EXPECT_EQ(call(*guest, "lanes_b", {Value::i32(0), Value::v128(v)})[0].as_v128(),
            words(0x03020100, 0x07060504, 0x8b8a8988, 0x008d8c00));
  EXPECT_EQ(call(*guest, "lanes_c", {Value::i64(0), Value::v128(v)})[0].as_v128(),
            words(0x03020100, 0x07060504, 0x8b8a8988, 0x898e8d8c));
}

TEST_P(Vectors, ThatReachBeyondAMemoryTrapAndStoreNothing) {
  auto guest = make(kMemories);
  ASSERT_NE(guest, nullptr);
  const char* out = "out of bounds memory access";
  const Value v = Value::v128(words(~0u, ~0u, ~0u, ~0u));
  for (const int32_t at : {65517, 65535, 65536, -1, -4, -20}) {
    EXPECT_EQ(trap_of(*guest, "store_b", {Value::i32(at), v}), out) << at;
    EXPECT_EQ(trap_of(*guest, "load_b", {Value::i32(at)}), out) << at;
    EXPECT_EQ(trap_of(*guest, "store_c", {Value::i64(at), v}), out) << at;
    EXPECT_EQ(trap_of(*guest, "load_c", {Value::i64(at)}), out) << at;
  }
  EXPECT_EQ(trap_of(*guest, "far_c", {Value::i64(0)}), out);
  EXPECT_EQ(trap_of(*guest, "far_c", {Value::i64(-0x7ffffff8)}), out);
  EXPECT_EQ(trap_of(*guest, "lanes_b", {Value::i32(65533), v}), out);
  EXPECT_EQ(trap_of(*guest, "lanes_c", {Value::i64(65527), v}), out);
  EXPECT_EQ(trap_of(*guest, "lanes_c", {Value::i64(-2), v}), out);
  for (const char* memory : {"b", "c"}) {
    const auto bytes = guest->memory(memory).value();
    for (size_t i = bytes.size() - 16; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0}) << i;
  }
}

}  // namespace
}  // namespace hindsight
