// Loops that spend nearly all of their time in long fills and copies, also in those that the optimizing tier made of an
// inner loop. The signal hardly ever finds the thread in generated code, so its mark has to be looked at.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kBuiltinsGuest = R"((module
  (memory 128)
  (memory $other 128)
  (tag $none)
  (func (export "filled") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 8000000)) br 0))
  (func (export "copied") (loop (memory.copy (i32.const 1) (i32.const 0) (i32.const 8000000)) br 0))
  (func (export "copied_across") (loop (memory.copy 0 1 (i32.const 1) (i32.const 0) (i32.const 8000000)) br 0))
  (func (export "thrown")
    (loop (block $caught (result exnref)
        (try_table (catch_all_ref $caught) (throw $none))
        (unreachable))
      drop (br 0)))
  (func (export "stored_bytes") (local $i i32)
    (loop $again
      (local.set $i (i32.const 0))
      (loop $next
        (i32.store8 (local.get $i) (i32.const 0))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8000000))))
      (br $again)))
  (func (export "copied_bytes") (local $i i32)
    (loop $again
      (local.set $i (i32.const 0))
      (loop $next
        (i32.store8 (local.get $i) (i32.load8_u $other (local.get $i)))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8000000))))
      (br $again)))
  (func (export "fine") (result i32) (i32.const 42))))";

using InterruptedLongCalls = testing::TestWithParam<Mode>;
INSTANTIATE_TEST_SUITE_P(EveryMode, InterruptedLongCalls, kEveryMode, mode_name);

TEST_P(InterruptedLongCalls, EndTheLoopsAroundThem) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  const auto engine = make_engine(GetParam());
  Linker linker(*engine);
  const auto guest = instantiate(linker, *engine, kBuiltinsGuest);
  ASSERT_NE(guest, nullptr);
  for (const char* const function :
       {"filled", "copied", "copied_across", "thrown", "stored_bytes", "copied_bytes"}) {
    guest->set_timeout(20ms);
    EXPECT_EQ(trap_of(*guest, function), "timed out") << function;
    EXPECT_EQ(functions_of(guest->last_trap()), std::vector<std::string>{function});
    guest->set_timeout(0ms);
    EXPECT_EQ(guest->call("fine", {})->at(0).as_i32(), 42);
  }
}

// The pieces that it is made in are put together again, upwards and downwards, at any distance.
TEST(LongCopies, AreWhatOnePieceWouldBe) {
  constexpr int32_t kBytes = 200'000'000, kFrom = 1000;
  const auto engine = make_engine();
  Linker linker(*engine);
  const auto guest = instantiate(linker, *engine, R"((module
    (memory (export "memory") 4000)
    (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
    (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))))");
  ASSERT_NE(guest, nullptr);
  auto* const bytes = reinterpret_cast<uint8_t*>(guest->memory().value().data());
  const auto value = [](int64_t i) { return static_cast<uint8_t>(i * 7 + (i >> 13)); };
  for (const int32_t distance : {-999, 1, 70'000'000}) {
    for (int32_t i = 0; i < kBytes; ++i) bytes[kFrom + i] = value(i);
    ASSERT_TRUE(guest->call("copy", std::array{Value::i32(kFrom + distance), Value::i32(kFrom),
                                               Value::i32(kBytes - 70'000'000)}));
    int64_t wrong = 0;
    for (int32_t i = 0; i < kBytes - 70'000'000; ++i) wrong += bytes[kFrom + distance + i] != value(i);
    EXPECT_EQ(wrong, 0) << distance;
  }
  ASSERT_TRUE(guest->call("fill", std::array{Value::i32(5), Value::i32(9), Value::i32(kBytes)}));
  EXPECT_EQ(
      std::count(bytes, bytes + kBytes + 10, 9),
      kBytes + std::count(bytes, bytes + 5, 9) + std::count(bytes + 5 + kBytes, bytes + kBytes + 10, 9));
}

}  // namespace
}  // namespace hindsight
