// Typed function references on every tier: calls through them, null, across instances, and what the embedder
// hands in.
#include <gmock/gmock.h>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kGuest = R"((module
  (type $unary (func (param i64) (result i64)))
  (type $pair (func (param i64 f64) (result f64 i64)))
  (type $many (func (param i32 i64 i32 i64 i32 i64 i32 f64) (result i64)))
  (type $maker (func (param i32) (result (ref null $unary))))
  (import "host" "half" (func $half (type $unary)))
  (elem declare func $double $half $swap $weigh $choose $step $down)
  (global $doubler (ref $unary) (ref.func $double))
  (global $current (mut (ref null $unary)) (ref.null $unary))
  (table $units 4 8 (ref $unary) (ref.func $double))
  (table $maybe 3 (ref null $unary))
  (elem (table $units) (i32.const 1) (ref $unary) (ref.func $half))
  (elem $loose (ref null $unary) (ref.func $double) (ref.null $unary))

  (func $double (param i64) (result i64) (i64.mul (local.get 0) (i64.const 2)))
  (func $swap (param i64 f64) (result f64 i64) (local.get 1) (local.get 0))
  (func $weigh (type $many) (i64.add (i64.mul (local.get 5) (i64.const 100))
    (i64.add (i64.extend_i32_s (local.get 6)) (i64.trunc_f64_s (local.get 7)))))
  (func $choose (export "choose") (param i32) (result (ref null $unary))
    (if (i32.eqz (local.get 0)) (then (return (ref.null $unary))))
    (select (result (ref $unary)) (ref.func $double) (ref.func $half) (i32.eq (local.get 0) (i32.const 1))))

  (func (export "apply") (param i32 i64) (result i64)
    (call_ref $unary (local.get 1) (call $choose (local.get 0))))
  (func (export "twice") (param i32 i64) (result i64) (local $f (ref $unary))
    (local.set $f (ref.as_non_null (call $choose (local.get 0))))
    (call_ref $unary (call_ref $unary (local.get 1) (local.get $f)) (local.get $f)))
  (func (export "by_maker") (param i32 i64) (result i64)
    (call_ref $unary (local.get 1) (call_ref $maker (local.get 0) (ref.func $choose))))
  (func (export "global") (param i64) (result i64) (call_ref $unary (local.get 0) (global.get $doubler)))
  (func (export "set") (param i32) (global.set $current (call $choose (local.get 0))))
  (func (export "current") (param i64) (result i64) (call_ref $unary (local.get 0) (global.get $current)))
  (func (export "two") (param i64 f64) (result f64 i64) (call_ref $pair (local.get 0) (local.get 1) (ref.func $swap)))
  (func (export "many") (param i64 i32 f64) (result i64)
    (call_ref $many (i32.const 1) (i64.const 2) (i32.const 3) (i64.const 4) (i32.const 5) (local.get 0) (local.get 1)
      (local.get 2) (ref.func $weigh)))
  (func (export "by_table") (param i32 i64) (result i64)
    (call_ref $unary (local.get 1) (table.get $units (local.get 0))))
  (func (export "indirect") (param i32 i64) (result i64)
    (call_indirect $units (type $unary) (local.get 1) (local.get 0)))
  (func (export "of_maybe") (param i32 i64) (result i64)
    (table.init $maybe 2 (i32.const 0) (i32.const 0) (i32.const 2))
    (call_ref $unary (local.get 1) (table.get $maybe (local.get 0))))
  (func (export "grow") (result i32) (table.grow $units (ref.func $half) (i32.const 2)))

  ;; 7 if null, else what the function makes of the number.
  (func (export "or_seven") (param i32 i64) (result i64)
    (block $null
      (return (call_ref $unary (local.get 1) (br_on_null $null (call $choose (local.get 0))))))
    (i64.const 7))
  ;; The number itself goes along to the label.
  (func (export "or_itself") (param i32 i64) (result i64)
    (block $null (result i64)
      (return (call_ref $unary (br_on_null $null (local.get 1) (call $choose (local.get 0)))))))
  (func (export "non_null") (param i32 i64) (result i64)
    (call_ref $unary (block $some (result i64 (ref $unary))
      (br_on_non_null $some (local.get 1) (call $choose (local.get 0)))
      (drop) (return (i64.const -1)))))
  ;; Operands below the label's: they have to move.
  (func (export "moved") (param i32 i64) (result i64)
    (i64.add (i64.const 1000)
      (call_ref $unary (block $some (result i64 (ref $unary))
        (i64.const 5) (i64.const 6)
        (br_on_non_null $some (local.get 1) (call $choose (local.get 0)))
        (drop) (drop) (drop) (return (i64.const -1))))))
  (func (export "moved_null") (param i32 i64) (result i64)
    (block $null (result i64)
      (i64.const 5)
      (call_ref $unary (br_on_null $null (local.get 1) (call $choose (local.get 0))))
      (return (i64.add))))
  (func (export "of_local") (param i32 i64) (result i64) (local $f (ref null $unary))
    (local.set $f (call $choose (local.get 0)))
    (block $null
      (drop (br_on_null $null (local.get $f)))
      (call_ref $unary (local.get 1) (block $some (result (ref $unary)) (br_on_non_null $some (local.get $f)) (unreachable)))
      (return))
    (i64.const 7))
  (func (export "return_if") (param i32) (result (ref null $unary))
    (br_on_non_null 0 (call $choose (local.get 0)))
    (ref.func $double))
  (func (export "as_non_null") (param i32) (drop (ref.as_non_null (call $choose (local.get 0)))))
  (func (export "sure") (result i64) (call_ref $unary (i64.const 21) (ref.as_non_null (ref.func $double))))

  ;; Loops: one that calls by a reference in a local, one that ends when a reference is null.
  (func (export "loop") (param i32 i64) (result i64) (local $f (ref $unary)) (local $sum i64)
    (local.set $f (ref.as_non_null (call $choose (local.get 0))))
    (loop $again
      (local.set $sum (i64.add (local.get $sum) (call_ref $unary (local.get 1) (local.get $f))))
      (local.set 1 (i64.sub (local.get 1) (i64.const 1)))
      (br_if $again (i64.ne (local.get 1) (i64.const 0))))
    (local.get $sum))
  (func (export "carried") (param i32 i64) (result i64) (local $sum i64)
    (ref.as_non_null (call $choose (local.get 0)))
    (loop $again (param (ref $unary)) (result (ref $unary))
      (drop)
      (local.set $sum (i64.add (local.get $sum) (local.get 1)))
      (local.set 1 (i64.sub (local.get 1) (i64.const 1)))
      (br_on_non_null $again (select (result (ref null $unary)) (ref.null $unary) (ref.func $double)
        (i64.eqz (local.get 1))))
      (ref.func $half))
    (drop)
    (local.get $sum))

  ;; Tail calls.
  (global $stepper (ref $unary) (ref.func $step))
  (global $downer (ref $many) (ref.func $down))
  (func $step (export "step") (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 42))))
    (return_call_ref $unary (i64.sub (local.get 0) (i64.const 1)) (global.get $stepper)))
  (func $down (export "down") (type $many)
    (if (i64.eqz (local.get 5)) (then (return (i64.trunc_f64_s (local.get 7)))))
    (return_call_ref $many (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)
      (i64.sub (local.get 5) (i64.const 1)) (local.get 6) (f64.add (local.get 7) (f64.const 1)) (global.get $downer)))
  (func (export "to_many") (param i64) (result i64)
    (return_call_ref $many (i32.const 0) (i64.const 0) (i32.const 0) (i64.const 0) (i32.const 0) (local.get 0)
      (i32.const 0) (f64.const 0) (global.get $downer)))
  (func (export "tail") (param i32 i64) (result i64)
    (return_call_ref $unary (local.get 1) (call $choose (local.get 0))))
  (func $gone (param i32) (result (ref null $unary)) (return_call_ref $maker (local.get 0) (ref.func $boom)))
  (func $boom (param i32) (result (ref null $unary)) (unreachable))
  (elem declare func $boom)
  (func (export "backtrace") (drop (call $gone (i32.const 1))))
  (func (export "spin") (param i64) (result i64) (return_call_ref $unary (local.get 0) (ref.func $endless)))
  (elem declare func $endless)
  (func $endless (param i64) (result i64) (return_call_ref $unary (local.get 0) (ref.func $endless)))

  (func (export "take") (param (ref $unary)) (result i64) (call_ref $unary (i64.const 8) (local.get 0)))
  (func (export "take_maybe") (param (ref null $unary)) (result i32) (ref.is_null (local.get 0)))
  (func (export "take_any") (param (ref func)) (result i32) (i32.const 1))
  (func (export "take_handle") (param (ref extern)) (result (ref extern)) (local.get 0))
  (func (export "wrong_type") (param i32 i32) (result i32) (local.get 0))
  (func (export "get_wrong") (result funcref) (ref.func $swap))
  (export "the_global" (global $current))
))";

std::shared_ptr<Instance> make(Linker& linker, Engine& engine, std::string_view wat) {
  return instantiate(linker, engine, wat);
}

class TypedReferences : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    linker_.emplace(*engine_);
    linker_->define_function("host", "half", [](int64_t n) -> int64_t { return n / 2; });
    guest_ = make(*linker_, *engine_, kGuest);
    ASSERT_NE(guest_, nullptr);
  }
  int64_t number(std::string_view function, std::vector<Value> args) {
    auto result = guest_->call(function, args);
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result && !result->empty() ? (*result)[0].as_i64() : -1;
  }
  Value reference(int32_t which) {
    auto result = guest_->call("choose", std::vector{Value::i32(which)});
    return result ? (*result)[0] : Value{};
  }
  std::shared_ptr<Engine> engine_;
  std::optional<Linker> linker_;
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, TypedReferences, kEveryMode, mode_name);

constexpr int32_t kNull = 0, kDouble = 1, kHalf = 2;

TEST_P(TypedReferences, AreCalled) {
  for (const char* function :
       {"apply", "by_maker", "or_seven", "or_itself", "non_null", "tail", "of_local"}) {
    EXPECT_EQ(number(function, {Value::i32(kDouble), Value::i64(21)}), 42) << function;
    EXPECT_EQ(number(function, {Value::i32(kHalf), Value::i64(21)}), 10) << function;
  }
  EXPECT_EQ(number("twice", {Value::i32(kDouble), Value::i64(3)}), 12);
  EXPECT_EQ(number("twice", {Value::i32(kHalf), Value::i64(12)}), 3);
  EXPECT_EQ(number("global", {Value::i64(4)}), 8);
  EXPECT_EQ(number("many", {Value::i64(7), Value::i32(-3), Value::f64(20)}), 717);
  EXPECT_EQ(number("sure", {}), 42);
  auto two = guest_->call("two", std::vector{Value::i64(3), Value::f64(0.5)});
  ASSERT_TRUE(two) << two.error().describe();
  EXPECT_EQ((*two)[0].as_f64(), 0.5);
  EXPECT_EQ((*two)[1].as_i64(), 3);
}

TEST_P(TypedReferences, TrapWhereTheyAreNull) {
  for (const char* function : {"apply", "by_maker", "tail"}) {
    EXPECT_EQ(trap_of(*guest_, function, {Value::i32(kNull), Value::i64(1)}), "null function reference");
    EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre(function));
  }
  EXPECT_EQ(trap_of(*guest_, "current", {Value::i64(1)}), "null function reference");
  EXPECT_EQ(trap_of(*guest_, "as_non_null", {Value::i32(kNull)}), "null reference");
  EXPECT_EQ(trap_of(*guest_, "twice", {Value::i32(kNull), Value::i64(1)}), "null reference");
  EXPECT_EQ(trap_of(*guest_, "as_non_null", {Value::i32(kHalf)}), "no trap");
}

TEST_P(TypedReferences, LeadBranches) {
  EXPECT_EQ(number("or_seven", {Value::i32(kNull), Value::i64(1)}), 7);
  EXPECT_EQ(number("or_itself", {Value::i32(kNull), Value::i64(5)}), 5);
  EXPECT_EQ(number("non_null", {Value::i32(kNull), Value::i64(5)}), -1);
  EXPECT_EQ(number("of_local", {Value::i32(kNull), Value::i64(5)}), 7);
  EXPECT_EQ(number("moved", {Value::i32(kDouble), Value::i64(5)}), 1010);
  EXPECT_EQ(number("moved", {Value::i32(kNull), Value::i64(5)}), -1);
  EXPECT_EQ(number("moved_null", {Value::i32(kDouble), Value::i64(5)}), 15);
  EXPECT_EQ(number("moved_null", {Value::i32(kNull), Value::i64(9)}), 9);
  EXPECT_EQ((*guest_->call("return_if", std::vector{Value::i32(kHalf)}))[0].bits, reference(kHalf).bits);
  EXPECT_EQ((*guest_->call("return_if", std::vector{Value::i32(kNull)}))[0].bits, reference(kDouble).bits);
}

TEST_P(TypedReferences, LieInGlobalsAndTables) {
  ASSERT_TRUE(guest_->call("set", std::vector{Value::i32(kHalf)}));
  EXPECT_EQ(number("current", {Value::i64(9)}), 4);
  for (const char* function : {"by_table", "indirect"}) {
    EXPECT_EQ(number(function, {Value::i32(0), Value::i64(9)}), 18) << function;
    EXPECT_EQ(number(function, {Value::i32(1), Value::i64(9)}), 4) << function;
    EXPECT_EQ(number(function, {Value::i32(3), Value::i64(9)}), 18) << function;
  }
  EXPECT_EQ(trap_of(*guest_, "by_table", {Value::i32(4), Value::i64(1)}), "out of bounds table access");
  EXPECT_EQ(trap_of(*guest_, "indirect", {Value::i32(4), Value::i64(1)}), "undefined element");
  EXPECT_EQ((*guest_->call("grow", {}))[0].as_i32(), 4);
  EXPECT_EQ(number("by_table", {Value::i32(5), Value::i64(9)}), 4);
  EXPECT_EQ(number("of_maybe", {Value::i32(0), Value::i64(9)}), 18);
  EXPECT_EQ(trap_of(*guest_, "of_maybe", {Value::i32(1), Value::i64(1)}), "null function reference");
}

TEST_P(TypedReferences, GoRoundInLoopsThroughEveryTier) {
  EXPECT_EQ(number("loop", {Value::i32(kDouble), Value::i64(3'000'000)}), 3'000'000ll * 3'000'001);
  EXPECT_EQ(number("carried", {Value::i32(kHalf), Value::i64(3'000'000)}), 3'000'000ll * 3'000'001 / 2);
}

TEST_P(TypedReferences, CalledAtTheTailTakeNoStack) {
  EXPECT_EQ(number("step", {Value::i64(3'000'000)}), 42);
  EXPECT_EQ(number("to_many", {Value::i64(2'000'000)}), 2'000'000);
  EXPECT_EQ(trap_of(*guest_, "backtrace"), "unreachable");
  // The one that left is there only where it was put in place of its call.
  const std::vector<std::string> names = functions_of(guest_->last_trap());
  EXPECT_EQ(names.back(), "backtrace");
  EXPECT_LE(names.size(), GetParam().tier == TierMode::kBaseline ? 2u : 3u);
}

TEST_P(TypedReferences, CalledAtTheTailWithoutEndCanBeInterrupted) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  guest_->set_timeout(30ms);
  EXPECT_EQ(trap_of(*guest_, "spin", {Value::i64(1)}), "timed out");
  guest_->set_timeout(0ms);
}

TEST_P(TypedReferences, OfTheEmbedderAreCheckedBeforeTheyGoIn) {
  auto taken = guest_->call("take", std::vector{reference(kDouble)});
  ASSERT_TRUE(taken) << taken.error().describe();
  EXPECT_EQ((*taken)[0].as_i64(), 16);
  const Value null{ValueKind::kFuncRef, 0};
  EXPECT_THAT(trap_of(*guest_, "take", {null}), HasSubstr("argument 1 is to be (ref "));
  EXPECT_THAT(trap_of(*guest_, "take", {null}), HasSubstr("not null funcref"));
  EXPECT_EQ((*guest_->call("take_maybe", std::vector{null}))[0].as_i32(), 1);
  const Value wrong = (*guest_->call("get_wrong", {}))[0];
  for (const char* function : {"take", "take_maybe"})
    EXPECT_THAT(trap_of(*guest_, function, {wrong}), HasSubstr("argument 1 is to be (ref ")) << function;
  EXPECT_EQ((*guest_->call("take_any", std::vector{wrong}))[0].as_i32(), 1);
  EXPECT_THAT(trap_of(*guest_, "take_any", {null}), HasSubstr("argument 1 is to be (ref func)"));
  EXPECT_THAT(trap_of(*guest_, "take_handle", {{ValueKind::kExternRef, 0}}), HasSubstr("(ref extern)"));
  EXPECT_EQ((*guest_->call("take_handle", std::vector<Value>{{ValueKind::kExternRef, 9}}))[0].bits, 9u);
  EXPECT_FALSE(guest_->set_global("the_global", wrong));
  ASSERT_TRUE(guest_->set_global("the_global", reference(kDouble)));
  EXPECT_EQ(number("current", {Value::i64(2)}), 4);
}

// The second module names the same types by other indices, and through other types.
constexpr std::string_view kUser = R"((module
  (type $other (func (param f32)))
  (type $fn (func (param i64) (result i64)))
  (type $taker (func (param (ref null $fn) i64) (result i64)))
  (import "lib" "taker" (func $taker (type $taker)))
  (import "lib" "fn" (global $fn (ref $fn)))
  (import "lib" "fn" (global $as_func (ref null func)))
  (import "lib" "table" (table $table 2 (ref null $fn)))
  (elem declare func $triple)
  (func $triple (type $fn) (i64.mul (local.get 0) (i64.const 3)))
  (func (export "pass") (param i64) (result i64) (call $taker (ref.func $triple) (local.get 0)))
  (func (export "fetch") (param i64) (result i64) (call_ref $fn (local.get 0) (global.get $fn)))
  (func (export "put") (table.set $table (i32.const 1) (ref.func $triple)))
  (func (export "through") (param i32 i64) (result i64)
    (call_ref $fn (local.get 1) (table.get $table (local.get 0))))
  (func (export "is_null") (result i32) (ref.is_null (global.get $as_func)))))";

constexpr std::string_view kLibrary = R"((module
  (type $fn (func (param i64) (result i64)))
  (type $taker (func (param (ref null $fn) i64) (result i64)))
  (elem declare func $inc)
  (global (export "fn") (ref $fn) (ref.func $inc))
  (global (export "changing") (mut (ref null $fn)) (ref.func $inc))
  (table $table (export "table") 2 (ref null $fn) (ref.func $inc))
  (func $inc (type $fn) (i64.add (local.get 0) (i64.const 1)))
  (func (export "taker") (type $taker) (call_ref $fn (local.get 1) (local.get 0)))
  (func (export "through") (param i32 i64) (result i64)
    (call_ref $fn (local.get 1) (table.get $table (local.get 0))))))";

TEST_P(TypedReferences, MeanTheSameInEveryInstance) {
  auto library = make(*linker_, *engine_, kLibrary);
  linker_->define_instance("lib", library);
  auto user = make(*linker_, *engine_, kUser);
  ASSERT_NE(user, nullptr);
  const auto of = [](Instance& instance, std::string_view function, std::vector<Value> args) {
    auto result = instance.call(function, args);
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result && !result->empty() ? (*result)[0].as_i64() : -1;
  };
  EXPECT_EQ(of(*user, "pass", {Value::i64(5)}), 15);
  EXPECT_EQ(of(*user, "fetch", {Value::i64(5)}), 6);
  EXPECT_EQ(of(*user, "through", {Value::i32(1), Value::i64(5)}), 6);
  ASSERT_TRUE(user->call("put", {}));
  EXPECT_EQ(of(*library, "through", {Value::i32(1), Value::i64(5)}), 15);
  EXPECT_EQ(of(*user, "through", {Value::i32(0), Value::i64(5)}), 6);
  EXPECT_EQ((*user->call("is_null", {}))[0].as_i32(), 0);
}

TEST(TypedReferencesAtImports, MustBeOfTheTypeThatIsWanted) {
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_instance("lib", make(linker, *engine, kLibrary));
  const auto outcome = [&](std::string_view import) {
    const std::string wat =
        R"((module (type $fn (func (param i64) (result i64))) (type $no (func (param i32)))
      (type $self (func (param (ref $self)))) )" +
        std::string(import) + ")";
    auto instance = linker.instantiate(load(*engine, wat));
    return instance ? std::string("ok") : instance.error().message;
  };
  EXPECT_EQ(outcome(R"((import "lib" "fn" (global (ref $fn))))"), "ok");
  EXPECT_EQ(outcome(R"((import "lib" "fn" (global (ref null $fn))))"), "ok");
  EXPECT_EQ(outcome(R"((import "lib" "fn" (global (ref func))))"), "ok");
  EXPECT_EQ(outcome(R"((import "lib" "fn" (global funcref)))"), "ok");
  EXPECT_THAT(outcome(R"((import "lib" "fn" (global (ref $no))))"), HasSubstr("incompatible import type"));
  EXPECT_THAT(outcome(R"((import "lib" "fn" (global (ref $self))))"), HasSubstr("incompatible import type"));
  EXPECT_THAT(outcome(R"((import "lib" "fn" (global externref)))"), HasSubstr("wants a global of externref"));
  EXPECT_EQ(outcome(R"((import "lib" "changing" (global (mut (ref null $fn)))))"), "ok");
  EXPECT_THAT(outcome(R"((import "lib" "changing" (global (mut funcref))))"), HasSubstr("incompatible"));
  EXPECT_THAT(outcome(R"((import "lib" "changing" (global (ref null $fn))))"), HasSubstr("incompatible"));
  EXPECT_EQ(outcome(R"((import "lib" "table" (table 1 (ref null $fn))))"), "ok");
  EXPECT_THAT(outcome(R"((import "lib" "table" (table 1 funcref)))"), HasSubstr("wants a table of funcref"));
  EXPECT_THAT(outcome(R"((import "lib" "table" (table 1 (ref $fn))))"), HasSubstr("incompatible"));
  EXPECT_EQ(outcome(R"((import "lib" "taker" (func (param (ref null $fn) i64) (result i64))))"), "ok");
  EXPECT_THAT(outcome(R"((import "lib" "taker" (func (param (ref $fn) i64) (result i64))))"),
              HasSubstr("incompatible"));
  EXPECT_THAT(outcome(R"((import "lib" "taker" (func (param (ref null $no) i64) (result i64))))"),
              HasSubstr("incompatible"));
}

// Types that refer to themselves are the same in two modules, too, at whatever index.
TEST(TypedReferencesAtImports, MayBeOfTypesThatReferToThemselves) {
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_instance("lib", make(linker, *engine, R"((module
    (type $self (func (param (ref null $self)) (result i32)))
    (func (export "count") (type $self)
      (block $null (return (call_ref $self (local.get 0) (br_on_null $null (local.get 0))))) (i32.const 5)))
    )"));
  auto user = make(linker, *engine, R"((module (type $first (func)) (type $second (func (param (ref $first))))
    (type $mine (func (param (ref null $mine)) (result i32)))
    (import "lib" "count" (func $count (type $mine))) (elem declare func $one)
    (func $one (type $mine) (i32.const 11))
    (func (export "null") (result i32) (call $count (ref.null $mine)))
    (func (export "one") (result i32) (call $count (ref.func $one)))))");
  ASSERT_NE(user, nullptr);
  EXPECT_EQ((*user->call("null", {}))[0].as_i32(), 5);
  EXPECT_EQ((*user->call("one", {}))[0].as_i32(), 11);
}

}  // namespace
}  // namespace hindsight
