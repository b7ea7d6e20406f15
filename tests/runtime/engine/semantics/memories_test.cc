// Several memories, and memories with 64-bit addresses, on every tier, beyond what the official tests ask.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "jit/wasm/module.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::HasSubstr;

class Memories : public testing::TestWithParam<Mode> {
 protected:
  std::shared_ptr<Instance> make(std::string_view wat) {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    return instantiate(linker, *engine_, wat);
  }
  int64_t number(Instance& guest, std::string_view function, std::vector<Value> args) {
    auto result = guest.call(function, args);
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result && !result->empty() ? (*result)[0].as_i64() : -1;
  }
  std::shared_ptr<Engine> engine_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Memories, kEveryMode, mode_name);

constexpr std::string_view kThree = R"((module
  (memory $a (export "a") 1 4)
  (memory $b (export "b") 2 3)
  (memory $c (export "c") i64 1 5)
  (data (memory $b) (i32.const 65536) "of b")
  (data (memory $c) (i64.const 8) "of c")
  (data $late "passive")
  (func (export "sum") (param i32) (result i64) (local i64)
    (loop (result i64)
      (local.set 1 (i64.add (local.get 1) (i64.add
        (i64.load8_u $a (local.get 0))
        (i64.add (i64.load8_u $b offset=1 (local.get 0)) (i64.load8_u $c offset=2 (i64.extend_i32_u (local.get 0)))))))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))
      (local.get 1)))
  (func (export "store") (param i32 i32)
    (i32.store8 $a (local.get 0) (local.get 1))
    (i32.store8 $b offset=1 (local.get 0) (i32.add (local.get 1) (i32.const 1)))
    (i32.store8 $c offset=2 (i64.extend_i32_u (local.get 0)) (i32.add (local.get 1) (i32.const 2))))
  (func (export "load_a") (param i32) (result i32) (i32.load $a (local.get 0)))
  (func (export "load_b") (param i32) (result i32) (i32.load $b (local.get 0)))
  (func (export "load_c") (param i64) (result i32) (i32.load $c (local.get 0)))
  (func (export "sizes") (result i64)
    (i64.add (i64.extend_i32_u (i32.add (i32.mul (memory.size $a) (i32.const 100))
                                        (i32.mul (memory.size $b) (i32.const 10))))
             (memory.size $c)))
  (func (export "grow_b") (param i32) (result i32) (memory.grow $b (local.get 0)))
  (func (export "grow_c") (param i64) (result i64) (memory.grow $c (local.get 0)))
  (func (export "b_to_c") (param i64 i32 i32) (memory.copy $c $b (local.get 0) (local.get 1) (local.get 2)))
  (func (export "fill_c") (param i64 i32 i64) (memory.fill $c (local.get 0) (local.get 1) (local.get 2)))
  (func (export "init_b") (param i32) (memory.init $b $late (local.get 0) (i32.const 1) (i32.const 4))))
)";

TEST_P(Memories, AreApart) {
  auto guest = make(kThree);
  ASSERT_NE(guest, nullptr);
  int64_t expected = 0;
  for (int32_t i = 1; i < 100; ++i) {
    ASSERT_TRUE(guest->call("store", std::vector{Value::i32(i), Value::i32(i)}));
    expected += 3 * i + 3;
  }
  EXPECT_EQ(number(*guest, "sum", {Value::i32(99)}), expected);
  EXPECT_EQ(static_cast<int>(guest->memory("a").value()[5]), 5);
  EXPECT_EQ(static_cast<int>(guest->memory("b").value()[6]), 6);
  EXPECT_EQ(static_cast<int>(guest->memory("c").value()[7]), 7);
  EXPECT_EQ(0, std::memcmp(guest->memory("b").value().data() + 65536, "of b", 4));
}

TEST_P(Memories, HaveBoundsOfTheirOwn) {
  auto guest = make(kThree);
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(trap_of(*guest, "load_a", {Value::i32(65533)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "load_a", {Value::i32(-1)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "load_b", {Value::i32(65533)}), "no trap");
  EXPECT_EQ(trap_of(*guest, "load_b", {Value::i32(131069)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "load_c", {Value::i64(65532)}), "no trap");
  for (const uint64_t address : {uint64_t{65533}, uint64_t{1} << 32, uint64_t{1} << 35, uint64_t{1} << 47,
                                 ~uint64_t{0}, ~uint64_t{0} - 2, uint64_t{1} << 63})
    EXPECT_EQ(trap_of(*guest, "load_c", {Value::i64(static_cast<int64_t>(address))}),
              "out of bounds memory access")
        << std::hex << address;
}

TEST_P(Memories, GrowApartEachToItsMaximum) {
  auto guest = make(kThree);
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(number(*guest, "sizes", {}), 121);
  EXPECT_EQ((*guest->call("grow_b", std::vector{Value::i32(2)}))[0].as_i32(), -1);
  EXPECT_EQ((*guest->call("grow_b", std::vector{Value::i32(1)}))[0].as_i32(), 2);
  EXPECT_EQ(number(*guest, "grow_c", {Value::i64(5)}), -1);
  EXPECT_EQ(number(*guest, "grow_c", {Value::i64(int64_t{1} << 48)}), -1);
  EXPECT_EQ(number(*guest, "grow_c", {Value::i64(-1)}), -1);
  EXPECT_EQ(number(*guest, "grow_c", {Value::i64(4)}), 1);
  EXPECT_EQ(number(*guest, "sizes", {}), 135);
  EXPECT_EQ(trap_of(*guest, "load_c", {Value::i64(5 * 65536 - 4)}), "no trap");
  EXPECT_EQ(trap_of(*guest, "load_c", {Value::i64(5 * 65536 - 3)}), "out of bounds memory access");
}

TEST_P(Memories, AreCopiedFilledAndInitialized) {
  auto guest = make(kThree);
  ASSERT_NE(guest, nullptr);
  ASSERT_TRUE(guest->call("b_to_c", std::vector{Value::i64(100), Value::i32(65536), Value::i32(4)}));
  EXPECT_EQ(0, std::memcmp(guest->memory("c").value().data() + 100, "of b", 4));
  EXPECT_EQ(trap_of(*guest, "b_to_c", {Value::i64(65533), Value::i32(0), Value::i32(4)}),
            "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest, "b_to_c", {Value::i64(int64_t{1} << 32), Value::i32(0), Value::i32(0)}),
            "out of bounds memory access");
  ASSERT_TRUE(guest->call("fill_c", std::vector{Value::i64(65530), Value::i32(0x177), Value::i64(6)}));
  EXPECT_EQ(static_cast<int>(guest->memory("c").value()[65535]), 0x77);
  EXPECT_EQ(trap_of(*guest, "fill_c", {Value::i64(-4), Value::i32(0), Value::i64(8)}),
            "out of bounds memory access");
  ASSERT_TRUE(guest->call("init_b", std::vector{Value::i32(70000)}));
  EXPECT_EQ(0, std::memcmp(guest->memory("b").value().data() + 70000, "assi", 4));
}

// The same memory under two indices: what is stored through one is loaded through the other.
TEST_P(Memories, MayBeOne) {
  engine_ = make_engine(GetParam());
  Linker linker(*engine_);
  auto owner = instantiate(linker, *engine_, R"((module (memory (export "m") 1)))");
  linker.define_instance("owner", owner);
  auto guest = instantiate(linker, *engine_, R"((module
    (import "owner" "m" (memory $x 1)) (import "owner" "m" (memory $y 1))
    (func (export "f") (param i32) (result i32)
      (i32.store $x (local.get 0) (i32.const 1))
      (i32.store $y (local.get 0) (i32.const 2))
      (i32.load $x (local.get 0)))
    (func (export "copy") (memory.copy $x $y (i32.const 1) (i32.const 0) (i32.const 8)))))");
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ((*guest->call("f", std::vector{Value::i32(16)}))[0].as_i32(), 2);
  std::memcpy(owner->memory("m").value().data(), "abcdefgh", 8);
  ASSERT_TRUE(guest->call("copy", {}));
  EXPECT_EQ(0, std::memcmp(owner->memory("m").value().data(), "aabcdefgh", 9));
}

constexpr std::string_view kLarge = R"((module
  (memory (export "memory") i64 1)
  (func (export "grow") (param i64) (result i64) (memory.grow (local.get 0)))
  (func (export "store") (param i64 i64) (i64.store (local.get 0) (local.get 1)))
  (func (export "load") (param i64) (result i64) (i64.load (local.get 0)))
  (func (export "load_far") (param i64) (result i64) (i64.load offset=0x100000000 (local.get 0)))
  (func (export "load_2g") (param i64) (result i64) (i64.load offset=0x7ffffff8 (local.get 0)))
  (func (export "load_constant") (result i64) (i64.load offset=8 (i64.const 0x100000000)))
  (func (export "load_low") (result i64) (i64.load offset=8 (i64.const 65521))))
)";

TEST_P(Memories, OfSixtyFourBitsReachBeyondFourGigabytes) {
  auto guest = make(kLarge);
  ASSERT_NE(guest, nullptr);
  const int64_t at = (int64_t{1} << 32) + 8;
  const char* out = "out of bounds memory access";
  EXPECT_EQ(trap_of(*guest, "load_constant"), out);
  EXPECT_EQ(trap_of(*guest, "load_low"), out);
  EXPECT_EQ(trap_of(*guest, "load_far", {Value::i64(8)}), out);
  EXPECT_EQ(trap_of(*guest, "load_2g", {Value::i64(8)}), out);
  EXPECT_EQ(number(*guest, "grow", {Value::i64(65536)}), 1);  // 64 KiB more than 4 GiB, untouched
  ASSERT_TRUE(guest->call("store", std::vector{Value::i64(at), Value::i64(77)}));
  EXPECT_EQ(number(*guest, "load", {Value::i64(at)}), 77);
  EXPECT_EQ(number(*guest, "load_constant", {}), 77);
  EXPECT_EQ(number(*guest, "load_far", {Value::i64(8)}), 77);
  EXPECT_EQ(number(*guest, "load_2g", {Value::i64(at - 0x7ffffff8)}), 77);
  EXPECT_EQ(number(*guest, "load", {Value::i64(8)}), 0);
  EXPECT_EQ(guest->memory().value().size(), (uint64_t{1} << 32) + 65536);
  // Index and offset wrap to a place that exists.
  EXPECT_EQ(trap_of(*guest, "load_far", {Value::i64(-0x100000000)}), out);
  EXPECT_EQ(trap_of(*guest, "load_far", {Value::i64(-8)}), out);
  EXPECT_EQ(trap_of(*guest, "load_2g", {Value::i64(-0x7ffffff8)}), out);
  EXPECT_EQ(trap_of(*guest, "load", {Value::i64(at + 65536)}), out);
}

TEST(MemoriesOfAModule, ObeyTheCap) {
  EngineConfig config;
  config.tier = TierMode::kBaseline;
  config.profiling = false;
  config.max_memory_bytes = 4 * 65536;
  auto engine = Engine::create(config);
  ASSERT_TRUE(engine);
  Linker linker(**engine);
  auto guest = instantiate(linker, **engine, kLarge);
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ((*guest->call("grow", std::vector{Value::i64(4)}))[0].as_i64(), -1);
  EXPECT_EQ((*guest->call("grow", std::vector{Value::i64(3)}))[0].as_i64(), 1);
}

TEST(MemoriesOfAModule, WithOtherAddressesAreNoMatchForAnImport) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto owner = instantiate(linker, *engine, R"((module (memory (export "m") i64 1)))");
  linker.define_instance("owner", owner);
  auto guest = linker.instantiate(load(*engine, R"((module (import "owner" "m" (memory 1))))"));
  ASSERT_FALSE(guest);
  EXPECT_EQ(guest.error().kind, ErrorKind::kLink);
  EXPECT_THAT(guest.error().message, HasSubstr("32-bit addresses"));
}

}  // namespace
}  // namespace hindsight
