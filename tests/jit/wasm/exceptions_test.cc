// Decoding and typing of tags, try_table, and the form with try and catch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/exception_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// Types: 0 the function's, 1 (i32 i64), 2 (), 3 (i32) -> (i32), 4 () -> (i32 i64), 5 () -> (i32 i64 exnref),
// 6 () -> (exnref). Tag 0 is of type 1, tag 1 of type 2.
Bytes around(const Bytes& params, const Bytes& results, const Bytes& code) {
  return module({section(1, vec({func_type(params, results), func_type({kI32, kI64}, {}), func_type({}, {}),
                                 func_type({kI32}, {kI32}), func_type({}, {kI32, kI64}),
                                 func_type({}, {kI32, kI64, kExnRef}), func_type({}, {kExnRef})})),
                 section(3, vec({{0}})), section(13, vec({{0, 1}, {0, 2}})), section(10, vec({body(code)}))});
}

std::string check(const Bytes& params, const Bytes& results, const Bytes& code) {
  const auto result = decode_module(around(params, results, code), "m");
  return result ? "ok" : result.error().message;
}

const Bytes kValues = i32_const(1) + Bytes{0x42, 2};

TEST(ExceptionTyping, ChecksTheValuesOfAThrow) {
  EXPECT_EQ(check({}, {}, kValues + throw_tag(0)), "ok");
  EXPECT_EQ(check({}, {kF32}, throw_tag(1)), "ok") << "what follows is dead";
  EXPECT_THAT(check({}, {}, i32_const(1) + throw_tag(0)),
              HasSubstr("type mismatch: expected i64, found i32"));
  EXPECT_THAT(check({}, {}, throw_tag(2)), HasSubstr("unknown tag 2"));
  EXPECT_EQ(check({kExnRef}, {}, local_get(0) + kThrowRef), "ok");
  EXPECT_THAT(check({kExternRef}, {}, local_get(0) + kThrowRef),
              HasSubstr("type mismatch: expected exnref, found externref"));
}

TEST(ExceptionTyping, ComparesClausesWithTheLabelsOutsideOfTheBlock) {
  EXPECT_EQ(check({}, {kI32, kI64}, try_table(kNoResult, {catch_tag(0, 0)}, {}) + kValues), "ok");
  EXPECT_EQ(check({}, {kI32, kI64}, block(4, try_table(kNoResult, {catch_tag(0, 0)}, {}) + kUnreachable)),
            "ok");
  EXPECT_EQ(
      check({}, {},
            block(5, try_table(kNoResult, {catch_ref(0, 0), catch_tag(1, 1), catch_all(1)}, {}) + br(1)) +
                kThrowRef),
      "ok");
  EXPECT_EQ(
      check({}, {},
            block(6, try_table(kNoResult, {catch_ref(1, 0), catch_all_ref(0)}, {}) + br(1)) + kThrowRef),
      "ok");
  EXPECT_EQ(check({}, {kI32}, i32_const(1) + try_table(3, {}, i32_const(1) + kI32Add)), "ok");
  EXPECT_THAT(check({}, {kI32}, try_table(kNoResult, {catch_tag(0, 0)}, {}) + i32_const(1)),
              HasSubstr("takes other values than the tag has"));
  EXPECT_THAT(check({}, {}, try_table(kNoResult, {catch_all_ref(0)}, {})),
              HasSubstr("must take an exnref last"));
  EXPECT_THAT(check({}, {}, try_table(kNoResult, {catch_tag(0, 1)}, {})), HasSubstr("unknown label 1"));
  EXPECT_THAT(check({}, {}, try_table(kNoResult, {catch_tag(7, 0)}, {})), HasSubstr("unknown tag 7"));
  EXPECT_THAT(check({}, {}, try_table(kNoResult, {{4, 0, 0}}, {})),
              HasSubstr("malformed catch clause: kind 0x04"));
  EXPECT_THAT(check({}, {}, {0x1f, 0x40, 0x80, 0x80, 4}), HasSubstr("the catch clauses do not fit"));
  EXPECT_THAT(check({}, {kI32}, try_table(kI32, {}, {})), HasSubstr("expected i32, found nothing"));
}

TEST(ExceptionTyping, KnowsTheFormWithTryAndCatch) {
  const auto legacy = [](uint8_t type, const Bytes& inner) {
    return Bytes{0x06, type} + inner + Bytes{0x0b};
  };
  const Bytes rethrow = {0x09, 0}, any = {0x19};
  EXPECT_EQ(check({}, {}, legacy(kNoResult, Bytes{0x07, 0} + kDrop + kDrop + any + rethrow)), "ok");
  EXPECT_EQ(check({}, {kI32}, legacy(kI32, i32_const(1) + Bytes{0x07, 0} + kDrop)), "ok");
  EXPECT_EQ(check({}, {}, legacy(kNoResult, throw_tag(1))), "ok") << "a try without a catch";
  EXPECT_EQ(check({}, {}, Bytes{0x06, kNoResult} + throw_tag(1) + Bytes{0x18, 0}), "ok");
  EXPECT_THAT(check({}, {}, Bytes{0x06, kNoResult, 0x18, 1}), HasSubstr("unknown label 1"));
  EXPECT_THAT(check({}, {}, Bytes{0x02, kNoResult, 0x18, 0}), HasSubstr("unexpected delegate"));
  EXPECT_THAT(check({}, {}, legacy(kNoResult, Bytes{0x07, 0})), HasSubstr("values remain on the stack"));
  EXPECT_THAT(check({}, {}, legacy(kNoResult, any + Bytes{0x07, 1})), HasSubstr("unexpected catch"));
  EXPECT_THAT(check({}, {}, legacy(kNoResult, any + any)), HasSubstr("unexpected catch_all"));
  EXPECT_THAT(check({}, {}, block(kNoResult, any)), HasSubstr("unexpected catch_all"));
  EXPECT_THAT(check({}, {}, legacy(kNoResult, rethrow)), HasSubstr("invalid rethrow label"));
  EXPECT_THAT(check({}, {}, legacy(kNoResult, any + block(kNoResult, rethrow))),
              HasSubstr("invalid rethrow label"));
  EXPECT_THAT(check({}, {kI32}, legacy(kI32, any)), HasSubstr("expected i32, found nothing"));
}

TEST(ExceptionTyping, NotesWhatCompilersWantToKnow) {
  // try / catch 0 / try catch_all loop end end / end: two caught exceptions are on the stack at the loop.
  const Bytes code = Bytes{0x06, 0x40, 0x07, 0, 0x1a, 0x1a, 0x06, 0x40, 0x19, 0x03, 0x40, 0x0b, 0x0b, 0x0b};
  const auto module = decode_module(around({}, {}, code), "m");
  ASSERT_TRUE(module) << module.error().describe();
  const FunctionBody& body = (*module)->bodies[0];
  EXPECT_TRUE(body.has_handlers);
  EXPECT_EQ(body.loops.at(0).stack_height, 2u);
  EXPECT_EQ(body.max_stack, 2u + 2u);
  EXPECT_FALSE((*decode_module(around({}, {}, throw_tag(1)), "m"))->bodies[0].has_handlers);
}

TEST(ExceptionTyping, ReadsClausesAsTheyWereChecked) {
  const auto module = decode_module(
      around({}, {},
             block(6, try_table(kNoResult, {catch_tag(1, 1), catch_all_ref(0)}, {}) + br(1)) + kThrowRef),
      "m");
  ASSERT_TRUE(module) << module.error().describe();
  InstrReader reader(**module, (*module)->bodies[0]);
  Instr instr;
  reader.next(instr);
  reader.next(instr);
  ASSERT_EQ(instr.opcode, Opcode::kTryTable);
  ASSERT_EQ(reader.catches().size(), 2u);
  EXPECT_FALSE(reader.catches()[0].catches_all() || reader.catches()[0].takes_reference());
  EXPECT_EQ(reader.catches()[0].tag, 1u);
  EXPECT_EQ(reader.catches()[0].label, 1u);
  EXPECT_TRUE(reader.catches()[1].catches_all() && reader.catches()[1].takes_reference());
  EXPECT_EQ(reader.catches()[1].label, 0u);
  for (const Opcode expected : {Opcode::kEnd, Opcode::kBr, Opcode::kEnd, Opcode::kThrowRef, Opcode::kEnd}) {
    reader.next(instr);
    EXPECT_EQ(instr.opcode, expected);
  }
  EXPECT_TRUE(reader.at_end());
}

TEST(TagSection, IsReadWithImportsExportsAndNames) {
  const auto module_bytes = module(
      {section(1, vec({func_type({kI32}, {}), func_type({}, {})})),
       section(2, vec({text("m") + text("imported") + Bytes{4, 0, 0}})),
       section(13, vec({{0, 1}, {0, 0}, {0, 1}})), section(7, vec({text("e") + Bytes{4, 1}})),
       section(0, text("name") + section(11, vec({leb(2) + text("named"), leb(9) + text("nobody")})))});
  const auto m = decode_module(module_bytes, "m");
  ASSERT_TRUE(m) << m.error().describe();
  ASSERT_EQ((*m)->tags.size(), 4u);
  EXPECT_EQ((*m)->imported_tags, 1u);
  EXPECT_EQ((*m)->type_of_tag(2).params.size(), 1u);
  EXPECT_EQ((*m)->find_export("e")->kind, ExternKind::kTag);
  EXPECT_EQ((*m)->tag_name(0), "imported");
  EXPECT_EQ((*m)->tag_name(1), "e");
  EXPECT_EQ((*m)->tag_name(2), "named");
  EXPECT_EQ((*m)->tag_name(3), "tag[3]");
  EXPECT_EQ((*m)->decode_stats.name_errors, 1u);
}

TEST(TagSection, IsRefusedWithItsDefect) {
  const auto message = [](std::initializer_list<Bytes> sections) {
    const auto result = decode_module(module(sections), "m");
    return result ? "ok" : result.error().message;
  };
  const Bytes types = section(1, vec({func_type({}, {}), func_type({}, {kI32})}));
  EXPECT_EQ(message({types, section(5, vec({{0, 1}})), section(13, vec({{0, 0}})), section(6, vec({}))}),
            "ok");
  EXPECT_THAT(message({types, section(6, vec({})), section(13, vec({{0, 0}}))}), HasSubstr("out of order"));
  EXPECT_THAT(message({types, section(13, vec({})), section(5, vec({}))}), HasSubstr("out of order"));
  EXPECT_THAT(message({types, section(13, vec({{0, 1}}))}), HasSubstr("non-empty tag result type"));
  EXPECT_THAT(message({types, section(13, vec({{0, 2}}))}), HasSubstr("unknown type 2"));
  EXPECT_THAT(message({types, section(13, vec({{1, 0}}))}), HasSubstr("malformed tag attribute 0x01"));
  EXPECT_THAT(message({types, section(2, vec({text("m") + text("n") + Bytes{4, 0, 1}}))}),
              HasSubstr("non-empty tag result type"));
  EXPECT_THAT(message({types, section(7, vec({text("e") + Bytes{4, 0}}))}), HasSubstr("unknown tag 0"));
}

}  // namespace
}  // namespace hindsight::wasm
