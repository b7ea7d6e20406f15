// The standardised form of exceptions (try_table, throw_ref, exnref) on every tier. The modules are built
// byte by byte.
#include <gmock/gmock.h>

#include "runtime/engine/handles.h"
#include "tests/jit/wasm/exception_bytes.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace wasm::testing;
using testing::ElementsAre;
using testing::HasSubstr;

enum Type : uint8_t {
  kVoid,
  kI,
  kItoI,
  kToI,
  kI32I64,
  kI32I64Ref,
  kRef,
  kRefToVoid,
  kRefToI,
  kToF64,
  kF64Type,
  kToI32Ref
};
enum Tag : uint8_t { kNumber, kEmptyTag, kPair, kDouble, kCarrier };
// Functions, in order.
enum Function : uint8_t {
  kThrowNumber,  // (i32): throws kNumber if it is not 0
  kThrowAny,     // (i32): kNumber 100, kEmptyTag, kPair (7, 8), kDouble 2.5; nothing for others
  kClassify,     // (i32) -> i32: which clause took it
  kValues,       // () -> i32
  kReference,    // (i32) -> i32: catches with a reference, throws it again, catches it outside
  kToFunction,   // () -> f64: the clause's label is the function
  kToLoop,       // (i32) -> i32: the clause's label is a loop
  kNull,         // throw_ref of null
  kKeep,         // (i32): puts an exception into table, global and another exception
  kThrowKept,    // (i32) -> i32: throws what is kept, from table (0), global (1), exception (2)
  kNested,       // (i32) -> i32
  kUncaught,     // (i32): through a try_table that does not take it
  kMany,         // (i32) -> i32: throws and catches so many with references
  kLast = kMany,
};

Bytes get_global(uint8_t g) {
  return {0x23, g};
}
Bytes set_global(uint8_t g) {
  return {0x24, g};
}
Bytes get_table(uint8_t t) {
  return {0x25, t};
}
Bytes set_table(uint8_t t) {
  return {0x26, t};
}
const Bytes kI32Eq = {0x46};
const Bytes kReturn = {0x0f};
const Bytes kSub = {0x6b};

Bytes throw_if(int32_t which, const Bytes& values, uint8_t tag) {
  return local_get(0) + i32_const(which) + kI32Eq + when(kNoResult, values + throw_tag(tag));
}

Bytes guest_module() {
  const Bytes types =
      vec({func_type({}, {}), func_type({kI32}, {}), func_type({kI32}, {kI32}), func_type({}, {kI32}),
           func_type({}, {kI32, kI64}), func_type({}, {kI32, kI64, kExnRef}), func_type({}, {kExnRef}),
           func_type({kExnRef}, {}), func_type({kExnRef}, {kI32}), func_type({}, {kF64}),
           func_type({kF64}, {}), func_type({}, {kI32, kExnRef}), func_type({kI32, kI64}, {})});
  const Bytes f64_2_5 = {0x44, 0, 0, 0, 0, 0, 0, 0x04, 0x40};
  const std::pair<uint8_t, Bytes> functions[] = {
      {kI, body(local_get(0) + when(kNoResult, local_get(0) + throw_tag(kNumber)))},
      {kI, body(throw_if(0, i32_const(100), kNumber) + throw_if(1, {}, kEmptyTag) +
                throw_if(2, i32_const(7) + Bytes{0x42, 8}, kPair) + throw_if(3, f64_2_5, kDouble))},
      {kItoI,
       body(block(kNoResult,               // 3: any
                  block(kToF64,            // 2: double
                        block(kI32I64,     // 1: pair
                              block(kI32,  // 0: number
                                    try_table(kNoResult,
                                              {catch_tag(kNumber, 0), catch_tag(kPair, 1),
                                               catch_tag(kNumber, 0), catch_tag(kDouble, 2), catch_all(3)},
                                              local_get(0) + call(kThrowAny)) +
                                        i32_const(-1) + kReturn) +
                                  kReturn) +
                            kDrop + i32_const(10) + kI32Add + kReturn) +
                      Bytes{0xaa} /* i32.trunc_f64_s */ + kReturn) +
            i32_const(99))},
      // Operands below the try and a local that changes in it.
      {kToI,
       body_with({{1, kI32}}, i32_const(1000) +
                                  block(kI32, i32_const(55) + local_set(0) +
                                                  try_table(kI32, {catch_tag(kNumber, 0)},
                                                            i32_const(66) + local_set(0) + i32_const(5) +
                                                                call(kThrowNumber) + i32_const(77) +
                                                                local_set(0) + i32_const(1))) +
                                  kI32Add + local_get(0) + kI32Add)},
      {kItoI, body(block(kToI32Ref, try_table(kNoResult, {catch_ref(kNumber, 0)},
                                              block(kToI32Ref, try_table(kNoResult, {catch_ref(kNumber, 0)},
                                                                         local_get(0) + call(kThrowNumber)) +
                                                                   i32_const(-1) + kReturn) +
                                                  kThrowRef) +
                                        kUnreachable) +
                   kDrop)},
      {kToF64,
       body(try_table(kNoResult, {catch_tag(kDouble, 0)}, i32_const(3) + call(kThrowAny)) + kUnreachable)},
      {kItoI,
       body_with({{1, kI32}}, i32_const(0) + loop(kItoI,  // adds what was thrown until it is 0
                                                  local_get(1) + kI32Add + local_set(1) +
                                                      try_table(kNoResult, {catch_tag(kNumber, 0)},
                                                                local_get(0) + i32_const(1) + kSub +
                                                                    Bytes{0x22, 0} + call(kThrowNumber)) +
                                                      local_get(1)))},
      {kVoid, body(Bytes{0xd0, kExnRef} + kThrowRef)},
      {kI,
       body_with(
           {{1, kExnRef}},
           block(kToI32Ref,
                 try_table(kNoResult, {catch_ref(kNumber, 0)}, local_get(0) + call(kThrowNumber)) + kReturn) +
               local_set(1) + kDrop + i32_const(0) + local_get(1) + set_table(0) + local_get(1) +
               set_global(0) +
               block(kRef,
                     try_table(kNoResult, {catch_all_ref(0)}, local_get(1) + throw_tag(kCarrier)) + kReturn) +
               set_global(1))},
      {kItoI, body(block(kI32, try_table(kNoResult, {catch_tag(kNumber, 0)},
                                         local_get(0) + i32_const(0) + kI32Eq +
                                             when(kNoResult, i32_const(0) + get_table(0) + kThrowRef) +
                                             local_get(0) + i32_const(1) + kI32Eq +
                                             when(kNoResult, get_global(0) + kThrowRef) +
                                             block(kRef, try_table(kNoResult, {catch_tag(kCarrier, 0)},
                                                                   get_global(1) + kThrowRef) +
                                                             kUnreachable) +
                                             kThrowRef) +
                                   kUnreachable))},
      // What an inner clause's label does is under the outer handler again.
      {kItoI, body(block(kNoResult, try_table(kNoResult, {catch_all(0)},
                                              block(kI32, try_table(kNoResult, {catch_tag(kNumber, 0)},
                                                                    local_get(0) + call(kThrowAny)) +
                                                              i32_const(-1) + kReturn) +
                                                  kDrop + i32_const(1) + call(kThrowNumber)) +
                                        i32_const(-2) + kReturn) +
                   i32_const(5))},
      {kI, body(block(kF64, try_table(kNoResult, {catch_tag(kDouble, 0)}, local_get(0) + call(kThrowAny)) +
                                kReturn) +
                kDrop)},
      {kItoI, body_with({{1, kI32}, {1, kExnRef}},
                        loop(kNoResult, block(kToI32Ref, try_table(kNoResult, {catch_ref(kNumber, 0)},
                                                                   local_get(0) + call(kThrowNumber)) +
                                                             local_get(1) + kReturn) +
                                            local_set(2) + local_get(1) + kI32Add + local_set(1) +
                                            local_get(0) + i32_const(1) + kSub + local_set(0) + br(0)) +
                            kUnreachable)},
  };
  Bytes declared = leb(std::size(functions)), code = declared;
  for (const auto& [type, bytes] : functions) {
    declared.push_back(type);
    code = code + bytes;
  }
  return module(
      {section(1, types), section(3, declared), section(4, vec({{kExnRef, 0, 1}})),
       section(13, vec({{0, kI}, {0, kVoid}, {0, 12}, {0, kF64Type}, {0, kRefToVoid}})),
       section(6, vec({{kExnRef, 1, 0xd0, kExnRef, 0x0b}, {kExnRef, 1, 0xd0, kExnRef, 0x0b}})),
       section(7, vec({exported("throw_number", kThrowNumber), exported("classify", kClassify),
                       exported("values", kValues), exported("reference", kReference),
                       exported("to_function", kToFunction), exported("to_loop", kToLoop),
                       exported("null", kNull), exported("keep", kKeep), exported("throw_kept", kThrowKept),
                       exported("nested", kNested), exported("uncaught", kUncaught), exported("many", kMany),
                       text("g") + Bytes{3, 0}})),
       section(10, code)});
}

class TryTable : public testing::TestWithParam<Mode> {
 protected:
  TryTable() {
    const Bytes bytes = guest_module();
    auto module = engine_->load(std::as_bytes(std::span(bytes)), "guest");
    EXPECT_TRUE(module) << module.error().describe();
    if (module) guest_ = linker_.instantiate(*module).value();
  }
  int32_t number(std::string_view name, std::vector<Value> args = {}) {
    auto result = guest_->call(name, args);
    EXPECT_TRUE(result) << name << ": " << result.error().describe();
    return result ? (*result)[0].as_i32() : -1;
  }
  rt::ExceptionHeap& heap() { return static_cast<rt::InstanceHandle&>(*guest_).state()->store->exceptions(); }
  std::shared_ptr<Engine> engine_ = make_engine(GetParam());
  Linker linker_{*engine_};
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(Everywhere, TryTable, kEveryMode, mode_name);

TEST_P(TryTable, TakesExceptionsByTheFirstClauseThatFits) {
  EXPECT_EQ(number("classify", {Value::i32(0)}), 100);
  EXPECT_EQ(number("classify", {Value::i32(1)}), 99);
  EXPECT_EQ(number("classify", {Value::i32(2)}), 17);
  EXPECT_EQ(number("classify", {Value::i32(3)}), 2);
  EXPECT_EQ(number("classify", {Value::i32(4)}), -1);
}

TEST_P(TryTable, LeavesOperandsAndLocalsAsTheyAre) {
  EXPECT_EQ(number("values"), 1000 + 5 + 66);
}

TEST_P(TryTable, LeadsToAnyLabel) {
  EXPECT_EQ(guest_->call("to_function", {}).value()[0].as_f64(), 2.5);
  EXPECT_EQ(number("to_loop", {Value::i32(5)}), 4 + 3 + 2 + 1);
  EXPECT_EQ(number("nested", {Value::i32(0)}), 5);
  EXPECT_EQ(number("nested", {Value::i32(1)}), 5);
  EXPECT_EQ(number("nested", {Value::i32(9)}), -1);
}

TEST_P(TryTable, HandsOutReferencesThatCanBeThrownAgain) {
  EXPECT_EQ(number("reference", {Value::i32(31)}), 31);
  EXPECT_EQ(number("reference", {Value::i32(0)}), -1);
  EXPECT_EQ(trap_of(*guest_, "null"), "null exception reference");
}

TEST_P(TryTable, KeepsWhatTablesGlobalsAndOtherExceptionsReferTo) {
  ASSERT_TRUE(guest_->call("keep", std::vector{Value::i32(77)}));
  const uint64_t before = heap().collections();
  EXPECT_EQ(number("many", {Value::i32(20'000)}), 20'000 * 20'001 / 2);
  EXPECT_GT(heap().collections(), before + 2);
  EXPECT_EQ(number("throw_kept", {Value::i32(0)}), 77);
  EXPECT_EQ(number("throw_kept", {Value::i32(1)}), 77);
  EXPECT_EQ(number("throw_kept", {Value::i32(2)}), 77);
}

TEST_P(TryTable, HoldsBoundedMemoryHoweverManyAreThrown) {
  const int32_t n = kAddressSanitizer || kThreadSanitizer ? 20'000 : 1'000'000;
  EXPECT_EQ(number("many", {Value::i32(n)}),
            static_cast<int32_t>(static_cast<uint32_t>(int64_t{n} * (n + 1) / 2)));
  EXPECT_LT(heap().bytes(), 4 * rt::ExceptionHeap::kLeastBytes);
}

TEST_P(TryTable, LetsOthersPassWithTheirBacktrace) {
  EXPECT_EQ(trap_of(*guest_, "uncaught", {Value::i32(2)}), "uncaught exception: tag[2] (i32 7, i64 8)");
  EXPECT_EQ(functions_of(guest_->last_trap()).size(), 2u);
  EXPECT_TRUE(guest_->call("uncaught", std::vector{Value::i32(3)}));
}

TEST_P(TryTable, HasReferencesThatCannotLeaveTheGuest) {
  EXPECT_TRUE(guest_->global("g")) << "null";
  ASSERT_TRUE(guest_->call("keep", std::vector{Value::i32(1)}));
  EXPECT_FALSE(guest_->global("g"));
  EXPECT_FALSE(guest_->set_global("g", {ValueKind::kExnRef, 1}));
  EXPECT_TRUE(guest_->set_global("g", {ValueKind::kExnRef, 0}));
  EXPECT_TRUE(guest_->global("g"));
  const Bytes identity =
      module({section(1, vec({func_type({kExnRef}, {kExnRef})})), section(3, vec({{0}})),
              section(7, vec({exported("id", 0)})), section(10, vec({body(local_get(0))}))});
  auto instance =
      linker_.instantiate(engine_->load(std::as_bytes(std::span(identity)), "identity").value()).value();
  const auto result = instance->call("id", std::vector<Value>{{ValueKind::kExnRef, 0}});
  ASSERT_TRUE(result) << "null may: " << result.error().describe();
  EXPECT_EQ((*result)[0].kind, ValueKind::kExnRef);
  EXPECT_EQ((*result)[0].bits, 0u);
  EXPECT_FALSE(instance->call("id", std::vector<Value>{{ValueKind::kExnRef, 1}}));
  linker_.define_host("host", "takes", {{ValueKind::kExnRef}, {}},
                      [](Caller&, std::span<const Value>, std::span<Value>) -> Status { return {}; });
  const Bytes importer = module({section(1, vec({func_type({kExnRef}, {})})),
                                 section(2, vec({text("host") + text("takes") + Bytes{0, 0}}))});
  const auto linked =
      linker_.instantiate(engine_->load(std::as_bytes(std::span(importer)), "importer").value());
  EXPECT_TRUE(linked) << "what it is called with is judged when it is: " << linked.error().describe();
}

}  // namespace
}  // namespace hindsight
