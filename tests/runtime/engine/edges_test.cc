// What an embedder may do wrong, and gets an answer.
#include <gmock/gmock.h>

#include <thread>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::HasSubstr;

constexpr std::string_view kReferences = R"((module
  (import "host" "give" (func $give (result funcref)))
  (table $t 1 funcref)
  (type $void (func))
  (global (export "g") (mut funcref) (ref.null func))
  (func $f (export "f"))
  (elem declare func $f)
  (func (export "own") (result funcref) (ref.func $f))
  (func (export "run") (param funcref)
    (table.set $t (i32.const 0) (local.get 0)) (call_indirect $t (type $void) (i32.const 0)))
  (func (export "take") (table.set $t (i32.const 0) (call $give)) (call_indirect $t (type $void) (i32.const 0)))))";

TEST(MadeUpFunctions, AreRefusedWhereverTheyComeIn) {
  const auto engine = make_engine();
  Linker linker(*engine), other(*engine);
  Value given{ValueKind::kFuncRef, 0x1000};
  for (Linker* l : {&linker, &other})
    l->define_host("host", "give", {{}, {ValueKind::kFuncRef}},
                   [&](Caller&, std::span<const Value>, std::span<Value> results) -> Status {
                     results[0] = given;
                     return {};
                   });
  const auto guest = instantiate(linker, *engine, kReferences);
  const auto stranger = instantiate(other, *engine, kReferences);
  const Value own = (*guest->call("own", {}))[0];
  EXPECT_TRUE(guest->call("run", std::vector{own}));
  const Value foreign = (*stranger->call("own", {}))[0];
  for (const uint64_t bits :
       {uint64_t{1}, uint64_t{0x1000}, own.bits + 8, own.bits - 1, foreign.bits, ~uint64_t{0}}) {
    given = {ValueKind::kFuncRef, bits};
    const auto called = guest->call("run", std::vector{given});
    ASSERT_FALSE(called);
    EXPECT_EQ(called.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(guest->set_global("g", given).error().kind, ErrorKind::kUsage);
    uint64_t slot = bits;
    EXPECT_EQ(guest->call_raw(*guest->find_function("run"), {&slot, 1}).error().kind, ErrorKind::kUsage);
    EXPECT_THAT(trap_of(*guest, "take"), HasSubstr("not its caller's store's"));
  }
  given = own;
  EXPECT_TRUE(guest->call("take", {}));
}

TEST(HandlesThatGoInsideAHostCall, LeaveWhatRunsAlone) {
  auto engine = make_engine();
  auto linker = std::make_unique<Linker>(*engine);
  std::shared_ptr<Instance> guest;
  linker->define_function("host", "drop", [&] {
    guest.reset();
    linker.reset();
    engine.reset();
  });
  guest = instantiate(*linker, *engine, R"((module (import "host" "drop" (func $drop)) (memory 1)
    (func (export "f") (result i32) (call $drop) (i32.store (i32.const 0) (i32.const 7)) (i32.load (i32.const 0)))))");
  Instance* const raw = guest.get();
  const auto results = raw->call("f", {});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].as_i32(), 7);
}

TEST(HandlesThatGoInsideAHostCall, OfAStartFunctionDoSoToo) {
  auto engine = make_engine();
  auto linker = std::make_unique<Linker>(*engine);
  linker->define_function("host", "drop", [&] { linker.reset(); });
  const auto module = load(*engine, R"((module (import "host" "drop" (func $drop)) (memory 1)
    (func $s (call $drop)) (start $s) (func (export "f") (result i32) (i32.const 7))))");
  auto guest = linker->instantiate(module);
  ASSERT_TRUE(guest);
  EXPECT_TRUE((*guest)->call("f", {}));
}

TEST(ASecondThread, IsToldThatTheStoreIsInUse) {
  const auto engine = make_engine();
  Linker linker(*engine);
  std::shared_ptr<Instance> guest;
  const auto module = load(*engine, "(module)");
  int checked = 0;
  linker.define_function("host", "inside", [&] {
    std::thread([&] {
      const auto called = guest->call("nothing", {});
      ASSERT_FALSE(called);
      EXPECT_EQ(called.error().kind, ErrorKind::kUsage);
      EXPECT_THAT(called.error().message, HasSubstr("another thread is using"));
      EXPECT_EQ(guest->set_global("g", Value::i32(1)).error().kind, ErrorKind::kUsage);
      EXPECT_EQ(linker.instantiate(module).error().kind, ErrorKind::kUsage);
      ++checked;
    }).join();
    EXPECT_TRUE(guest->call("nothing", {}));  // nested, the same thread
  });
  guest = instantiate(linker, *engine, R"((module (import "host" "inside" (func $inside))
    (global (export "g") (mut i32) (i32.const 0)) (func (export "nothing")) (func (export "f") (call $inside))))");
  EXPECT_TRUE(guest->call("f", {}));
  EXPECT_EQ(checked, 1);
  // One after the other is fine.
  std::thread([&] { EXPECT_TRUE(guest->call("nothing", {})); }).join();
}

TEST(ANullException, LeavesTheGuestAndComesBack) {
  const auto engine = make_engine();
  Linker linker(*engine);
  Value seen = Value::i32(0);
  linker.define_host("host", "pass", {{ValueKind::kExnRef}, {ValueKind::kExnRef}},
                     [&](Caller&, std::span<const Value> args, std::span<Value> results) -> Status {
                       seen = args[0];
                       results[0] = args[0];
                       return {};
                     });
  // (type 0 (func (param exnref) (result exnref))): passes its argument to the host, and returns what that gives.
  const uint8_t bytes[] = {0, 'a', 's', 'm', 1,   0,   0,  0,   1,   6,   1,   0x60, 1, 0x69, 1, 0x69, 2, 13,
                           1, 4,   'h', 'o', 's', 't', 4,  'p', 'a', 's', 's', 0,    0, 3,    2, 1,    0, 7,
                           5, 1,   1,   'f', 0,   1,   10, 8,   1,   6,   0,   0x20, 0, 0x10, 0, 0x0b};
  auto module = engine->load(std::as_bytes(std::span(bytes)), "exn");
  ASSERT_TRUE(module) << module.error().describe();
  auto guest = linker.instantiate(*module);
  ASSERT_TRUE(guest) << guest.error().describe();
  const auto results = (*guest)->call("f", std::vector{Value{ValueKind::kExnRef, 0}});
  ASSERT_TRUE(results) << results.error().describe();
  EXPECT_EQ(seen.kind, ValueKind::kExnRef);
  EXPECT_EQ((*results)[0].kind, ValueKind::kExnRef);
  EXPECT_EQ((*results)[0].bits, 0u);
  EXPECT_FALSE((*guest)->call("f", std::vector{Value{ValueKind::kExnRef, 16}}));
}

TEST(ConstantExpressions, ReadEarlierGlobalsOfTheModule) {
  const auto engine = make_engine();
  Linker linker(*engine);
  // (global i32 5) (global i32 (global.get 0) + 3) (memory 1) (data (offset global.get 1) "x"); export the second as "g", the memory as "m".
  const uint8_t bytes[] = {0, 'a',  's', 'm',  1,    0, 0,    0, 5,    3, 1,    0,    1,    6, 14, 2, 0x7f,
                           0, 0x41, 5,   0x0b, 0x7f, 0, 0x23, 0, 0x41, 3, 0x6a, 0x0b, 7,    9, 2,  1, 'g',
                           3, 1,    1,   'm',  2,    0, 11,   7, 1,    0, 0x23, 1,    0x0b, 1, 'x'};
  auto module = engine->load(std::as_bytes(std::span(bytes)), "globals");
  ASSERT_TRUE(module) << module.error().describe();
  auto guest = linker.instantiate(*module);
  ASSERT_TRUE(guest) << guest.error().describe();
  EXPECT_EQ((*guest)->global("g")->as_i32(), 8);
  EXPECT_EQ((*guest)->memory()->data()[8], std::byte{'x'});
}

TEST(AThreadedModule, ThatSpawnsNothingGetsItsSharedMemory) {
  const auto engine = make_engine();
  Linker linker(*engine);
  constexpr std::string_view kShared = R"((module (import "env" "memory" (memory 1 2 shared))
    (func (export "f") (result i32) (memory.size))))";
  EXPECT_FALSE(linker.instantiate(load(*engine, kShared)));  // nobody's convention without WASI
  ASSERT_TRUE(linker.define_wasi({}));
  auto guest = linker.instantiate(load(*engine, kShared));
  ASSERT_TRUE(guest) << guest.error().describe();
  EXPECT_EQ((*(*guest)->call("f", {}))[0].as_i32(), 1);
}

}  // namespace
}  // namespace hindsight
