// What is noted of tags, try_table, and the form with try and catch. Verdicts on them are in verdicts/exceptions.txt.
#include <gtest/gtest.h>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/exception_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;

// Types: 0 the function's, 1 (i32 i64), 2 (), 3 (i32) -> (i32), 4 () -> (i32 i64), 5 () -> (i32 i64 exnref),
// 6 () -> (exnref). Tag 0 is of type 1, tag 1 of type 2.
Bytes around(const Bytes& params, const Bytes& results, const Bytes& code) {
  return module({section(1, vec({func_type(params, results), func_type({kI32, kI64}, {}), func_type({}, {}),
                                 func_type({kI32}, {kI32}), func_type({}, {kI32, kI64}),
                                 func_type({}, {kI32, kI64, kExnRef}), func_type({}, {kExnRef})})),
                 section(3, vec({{0}})), section(13, vec({{0, 1}, {0, 2}})), section(10, vec({body(code)}))});
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

}  // namespace
}  // namespace hindsight::wasm
