#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

struct Typing {
  Bytes params;
  Bytes results;
};

std::string check(const Typing& type, const Bytes& code) {
  const auto result = decode_module(module_around(type.params, type.results, code), "m");
  return result.has_value() ? "ok" : result.error().message;
}

FunctionBody body_of(const Typing& type, const Bytes& code) {
  const auto result = decode_module(module_around(type.params, type.results, code), "m");
  if (!result) {
    ADD_FAILURE() << result.error().describe();
    return {};
  }
  return (*result)->bodies[0];
}

constexpr uint8_t kEmpty = 0x40;
constexpr uint8_t kEnd = 0x0b;

TEST(Validator, TypesStraightCode) {
  EXPECT_EQ(check({{kI32, kI32}, {kI32}}, {0x20, 0, 0x20, 1, 0x6a}), "ok");
  EXPECT_THAT(check({{kI32, kI64}, {kI32}}, {0x20, 0, 0x20, 1, 0x6a}),
              HasSubstr("type mismatch: expected i32, found i64"));
  EXPECT_THAT(check({{}, {kI32}}, {}), HasSubstr("type mismatch: expected i32, found nothing"));
  EXPECT_THAT(check({{}, {}}, {0x41, 0}), HasSubstr("type mismatch: values remain"));
  EXPECT_THAT(check({{}, {}}, {0x20, 0, 0x1a}), HasSubstr("unknown local 0"));
  EXPECT_THAT(check({{}, {}}, {0x10, 1}), HasSubstr("unknown function 1"));
  EXPECT_THAT(check({{}, {}}, {0x0c, 1}), HasSubstr("unknown label 1"));
  EXPECT_THAT(check({{}, {}}, {0x23, 9, 0x1a}), HasSubstr("unknown global 9"));
  EXPECT_THAT(check({{}, {}}, {0x41, 0, 0x24, 0}), HasSubstr("global is immutable"));
  EXPECT_EQ(check({{}, {}}, {0x42, 0, 0x24, 1}), "ok");
}

TEST(Validator, LetsDeadCodeTakeOperandsOfAnyTypeFromTheEmptyStack) {
  EXPECT_EQ(check({{}, {kI32}}, {0x00}), "ok");
  EXPECT_EQ(check({{}, {kI32}}, {0x00, 0x6a}), "ok");
  EXPECT_EQ(check({{}, {kI64}}, {0x00, 0x1b}), "ok") << "select of two unknown operands is unknown";
  EXPECT_EQ(check({{}, {}}, {0x0c, 0, 0x1a, 0x1a}), "ok");
  EXPECT_EQ(check({{}, {kI32}}, {0x00, 0xd1}), "ok") << "ref.is_null of an unknown operand";
  EXPECT_THAT(check({{}, {kI32}}, {0x00, 0x42, 0}), HasSubstr("expected i32, found i64"))
      << "known types still count";
  EXPECT_THAT(check({{}, {}}, {0x00, 0x41, 0}), HasSubstr("values remain"));
  EXPECT_THAT(check({{}, {kI32}}, {0x00, 0x42, 0, 0x41, 0, 0x6a}), HasSubstr("expected i32, found i64"));
}

TEST(Validator, KeepsDeadCodeInsideItsBlock) {
  EXPECT_THAT(check({{}, {kI32}}, {0x02, kEmpty, 0x00, kEnd}), HasSubstr("found nothing"));
  EXPECT_THAT(check({{}, {}}, {0x00, 0x02, kEmpty, 0x1a, kEnd}), HasSubstr("found nothing"))
      << "a block in dead code starts with a stack of its own";
}

TEST(Validator, PassesSeveralValuesThroughBlocks) {
  // Type 1 is (i32 i64) -> (i64 i32).
  const Typing type{{kI32, kI64}, {kI64, kI32}};
  const Bytes swap = {0x20, 1, 0x20, 0};
  EXPECT_EQ(check(type, Bytes{0x20, 0, 0x20, 1, 0x02, 1, 0x1a, 0x1a} + swap + Bytes{kEnd}), "ok");
  EXPECT_EQ(check(type, Bytes{0x20, 0, 0x20, 1, 0x03, 1, 0x0c, 0, kEnd}), "ok")
      << "a loop's label takes its parameters";
  EXPECT_THAT(check(type, Bytes{0x20, 0, 0x20, 1, 0x02, 1, 0x0c, 0, kEnd}),
              HasSubstr("expected i32, found i64"))
      << "a block's label takes its results";
  EXPECT_THAT(check(type, Bytes{0x20, 1, 0x02, 1, 0x00, kEnd}), HasSubstr("type mismatch"));
  EXPECT_THAT(check(type, Bytes{0x02, 9, kEnd}), HasSubstr("unknown type 9"));
}

TEST(Validator, WantsAnIfWithoutElseToReturnItsParameters) {
  EXPECT_EQ(check({{kI32}, {kI32}}, {0x20, 0, 0x20, 0, 0x04, 3, kEnd}), "ok");
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0x04, kI32, 0x41, 0, kEnd}), HasSubstr("if without else"));
  EXPECT_EQ(check({{kI32}, {kI32}}, {0x20, 0, 0x04, kI32, 0x41, 0, 0x05, 0x41, 1, kEnd}), "ok");
  EXPECT_THAT(check({{}, {}}, {0x05}), HasSubstr("unexpected else"));
  EXPECT_THAT(check({{kI32}, {}}, {0x20, 0, 0x04, kEmpty, 0x05, 0x05, kEnd}), HasSubstr("unexpected else"));
}

TEST(Validator, WantsAllTargetsOfABranchTableToAgree) {
  EXPECT_EQ(check({{kI32}, {}}, {0x02, kEmpty, 0x20, 0, 0x0e, 2, 0, 1, 0, kEnd}), "ok");
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x02, kEmpty, 0x41, 0, 0x20, 0, 0x0e, 1, 0, 1, kEnd, 0x00}),
              HasSubstr("br_table targets take 0 and 1 values"));
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x02, kI64, 0x42, 0, 0x20, 0, 0x0e, 1, 0, 1, kEnd, 0x00}),
              HasSubstr("expected i32, found i64"));
  EXPECT_EQ(check({{kI32}, {kI32}}, {0x02, kI64, 0x00, 0x0e, 1, 0, 1, kEnd, 0x00}), "ok")
      << "unknown operands fit labels of different types";
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x02, kEmpty, 0x00, 0x0e, 1, 0, 1, kEnd, 0x00}),
              HasSubstr("br_table targets"))
      << "but not of different arity";
  EXPECT_THAT(check({{kI32}, {}}, {0x20, 0, 0x0e, 1, 0, 7}), HasSubstr("unknown label 7"));
}

TEST(Validator, ChecksAlignmentAndMemoryIndices) {
  EXPECT_EQ(check({{kI32}, {kI32}}, {0x20, 0, 0x28, 2, 0}), "ok");
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0x28, 3, 0}),
              HasSubstr("alignment must not be larger than natural"));
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0x40, 1}), HasSubstr("unknown memory 1"));
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0x28, 0x80, 1, 0}), HasSubstr("malformed memop flags"));
  const Bytes no_memory = module({section(1, vec({func_type({}, {kI32})})), section(3, vec({{0}})),
                                  section(10, vec({body({0x3f, 0})}))});
  EXPECT_THAT(decode_module(no_memory, "m").error().message, HasSubstr("unknown memory 0"));
}

TEST(Validator, ChecksReferencesTablesAndSegments) {
  EXPECT_THAT(check({{}, {}}, {0xd2, 0, 0x1a}), HasSubstr("undeclared function reference 0"));
  EXPECT_EQ(check({{kFuncRef}, {kI32}}, {0x20, 0, 0xd1}), "ok");
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0xd1}), HasSubstr("expected a reference"));
  EXPECT_THAT(check({{kI32}, {}}, {0x20, 0, 0x25, 2, 0x1a}), HasSubstr("unknown table 2"));
  EXPECT_EQ(check({{kI32}, {kExternRef}}, {0x20, 0, 0x25, 1}), "ok");
  EXPECT_THAT(check({{kI32}, {}}, {0x20, 0, 0x11, 0, 1}), HasSubstr("expected a table of funcref"));
  const Bytes three = {0x41, 0, 0x41, 0, 0x41, 0};
  EXPECT_THAT(check({{}, {}}, three + Bytes{0xfc, 0x0c, 0, 1}), HasSubstr("type mismatch"));
  EXPECT_EQ(check({{}, {}}, three + Bytes{0xfc, 0x0c, 0, 0}), "ok");
  EXPECT_THAT(check({{}, {}}, three + Bytes{0xfc, 0x0e, 0, 1}), HasSubstr("type mismatch"));
  EXPECT_THAT(check({{}, {}}, three + Bytes{0xfc, 0x08, 1, 0}), HasSubstr("unknown data segment 1"));
  EXPECT_THAT(check({{kFuncRef, kFuncRef, kI32}, {kFuncRef}}, {0x20, 0, 0x20, 1, 0x20, 2, 0x1b}),
              HasSubstr("select without a type"));
  EXPECT_EQ(check({{kFuncRef, kFuncRef, kI32}, {kFuncRef}}, {0x20, 0, 0x20, 1, 0x20, 2, 0x1c, 1, kFuncRef}),
            "ok");
  EXPECT_THAT(check({{kFuncRef, kFuncRef, kI32}, {kFuncRef}}, {0x20, 0, 0x20, 1, 0x20, 2, 0x1c, 0}),
              HasSubstr("invalid result arity"));
}

TEST(Validator, NeedsTheDataCountSectionForDataInstructions) {
  const Bytes bytes =
      module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})), section(5, vec({{0, 1}})),
              section(10, vec({body({0xfc, 0x09, 0})})), section(11, vec({{1, 0}}))});
  EXPECT_THAT(decode_module(bytes, "m").error().message, HasSubstr("data count section required"));
}

TEST(Validator, NamesTheFeatureOfEachLaterInstruction) {
  const std::pair<Bytes, const char*> cases[] = {{{0xd0, 0x74}, "exception handling"},
                                                 {{0xd3}, "garbage collection"},
                                                 {{0xfb, 0, 0}, "garbage collection"},
                                                 {{0xfc, 0x13}, "wide arithmetic"},
                                                 {{0xd0, 0x6e}, "garbage collection"}};
  for (const auto& [code, feature] : cases) {
    const auto result = decode_module(module_around({}, {}, code), "m");
    ASSERT_FALSE(result.has_value()) << feature;
    EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported) << result.error().describe();
    EXPECT_THAT(result.error().message, HasSubstr(feature));
  }
  EXPECT_THAT(check({{}, {}}, {0xff}), HasSubstr("illegal opcode 0xff"));
  EXPECT_THAT(check({{}, {}}, {0xfc, 0x40}), HasSubstr("illegal opcode 0xfc 0x40"));
}

TEST(Validator, ChecksAtomicInstructions) {
  EXPECT_EQ(check({{kI32}, {kI32}}, {0x20, 0, 0xfe, 0x10, 2, 0}), "ok");
  EXPECT_EQ(check({{kI32, kI64, kI64}, {kI64}}, {0x20, 0, 0x20, 1, 0x20, 2, 0xfe, 0x49, 3, 0}), "ok");
  EXPECT_EQ(check({{kI32, kI32, kI64}, {kI32}}, {0x20, 0, 0x20, 1, 0x20, 2, 0xfe, 1, 2, 0}), "ok");
  EXPECT_EQ(check({{}, {}}, {0xfe, 3, 0}), "ok");
  EXPECT_THAT(check({{}, {}}, {0xfe, 3, 1}), HasSubstr("zero byte expected"));
  for (const uint8_t align : {0, 1})
    EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0xfe, 0x10, align, 0}), HasSubstr("must be natural"));
  EXPECT_THAT(check({{kI32}, {kI32}}, {0x20, 0, 0xfe, 0x10, 3, 0}), HasSubstr("larger than natural"));
  EXPECT_THAT(check({{kI32, kI32}, {kI64}}, {0x20, 0, 0x20, 1, 0xfe, 0x1f, 3, 0}),
              HasSubstr("type mismatch"));
  for (const uint8_t sub : {0x04, 0x0f, 0x4f, 0x7f})
    EXPECT_THAT(check({{}, {}}, {0xfe, sub}), HasSubstr("illegal opcode 0xfe"));
}

TEST(Validator, ChecksVectorInstructionsTheirLanesAndTheirAlignment) {
  const Bytes zero = Bytes{0xfd, 0x0c} + Bytes(16, 0);
  EXPECT_EQ(check({{}, {}}, zero + Bytes{0x1a}), "ok");
  EXPECT_THAT(check({{}, {}}, {0xfd, 0x9a, 0x01}), HasSubstr("illegal opcode 0xfd 0x9a"));
  EXPECT_THAT(check({{}, {}}, {0xfd, 0x94, 0x02}), HasSubstr("illegal opcode 0xfd 0x114"));
  EXPECT_THAT(check({{}, {}}, {0xfd, 0x0c, 1, 2, 3}), HasSubstr("unexpected end"));
  // i8x16.extract_lane_s, i64x2.replace_lane, i8x16.shuffle
  EXPECT_EQ(check({{}, {}}, zero + Bytes{0xfd, 0x15, 15, 0x1a}), "ok");
  EXPECT_THAT(check({{}, {}}, zero + Bytes{0xfd, 0x15, 16, 0x1a}), HasSubstr("invalid lane index 16"));
  EXPECT_THAT(check({{}, {}}, zero + Bytes{0x42, 0, 0xfd, 0x1e, 2, 0x1a}), HasSubstr("invalid lane index 2"));
  EXPECT_EQ(check({{}, {}}, zero + zero + Bytes{0xfd, 0x0d} + Bytes(16, 31) + Bytes{0x1a}), "ok");
  EXPECT_THAT(check({{}, {}}, zero + zero + Bytes{0xfd, 0x0d} + Bytes(16, 32) + Bytes{0x1a}),
              HasSubstr("invalid lane index 32"));
  EXPECT_THAT(check({{}, {}}, {0x41, 0, 0xfd, 0x4d, 0x1a}), HasSubstr("expected v128, found i32"));
}

TEST(Validator, DescribesLoopsForTheCompilers) {
  // i32.const; loop (type 3: i32 -> i32) ; loop end ; end ; drop; drop -- with one value below the outer
  // loop.
  const FunctionBody body =
      body_of({{}, {}}, {0x41, 0, 0x41, 1, 0x03, 3, 0x03, kEmpty, kEnd, kEnd, 0x1a, 0x1a,  //
                         0x00, 0x03, kEmpty, kEnd});
  ASSERT_EQ(body.loops.size(), 3u);
  const uint32_t at = body.begin.value;
  EXPECT_EQ(body.loops[0].offset.value, at + 4);
  EXPECT_EQ(body.loops[0].end.value, at + 9);
  EXPECT_EQ(body.loops[0].stack_height, 1u);
  EXPECT_EQ(body.loops[0].param_count, 1u);
  EXPECT_EQ(body.loops[0].depth, 0u);
  EXPECT_FALSE(body.loops[0].parent.has_value());
  EXPECT_TRUE(body.loops[0].reachable);
  EXPECT_EQ(body.loops[1].offset.value, at + 6);
  EXPECT_EQ(body.loops[1].end.value, at + 8);
  EXPECT_EQ(body.loops[1].stack_height, 2u);
  EXPECT_EQ(body.loops[1].depth, 1u);
  EXPECT_EQ(body.loops[1].parent, LoopIndex(0));
  EXPECT_FALSE(body.loops[2].reachable);
  EXPECT_EQ(body.max_stack, 2u);
  EXPECT_EQ(body.max_control_depth, 2u);
  EXPECT_FALSE(body.has_calls);
  EXPECT_FALSE(body.has_memory_access);
}

TEST(Validator, NotesCallsAndMemoryAccesses) {
  EXPECT_TRUE(body_of({{}, {}}, {0x10, 0}).has_calls);
  EXPECT_TRUE(body_of({{}, {}}, {0x41, 0, 0x40, 0, 0x1a}).has_calls);
  EXPECT_TRUE(body_of({{}, {}}, {0xfc, 0x09, 0}).has_calls);
  EXPECT_TRUE(body_of({{}, {}}, {0x41, 0, 0x28, 2, 0, 0x1a}).has_memory_access);
  EXPECT_TRUE(body_of({{}, {}}, {0x41, 0, 0xfe, 0x10, 2, 0, 0x1a}).has_memory_access);
  EXPECT_FALSE(body_of({{}, {}}, {0x41, 0, 0xfe, 0x10, 2, 0, 0x1a}).has_calls);
  EXPECT_TRUE(body_of({{}, {}}, {0x41, 0, 0x41, 0, 0xfe, 0, 2, 0, 0x1a}).has_calls);
  EXPECT_FALSE(body_of({{}, {}}, {0x41, 0, 0x1a}).has_memory_access);
}

TEST(Validator, BoundsNestingOperandsAndBranchTables) {
  auto nested = [](uint32_t depth) {
    Bytes code;
    for (uint32_t i = 0; i < depth; ++i) code.insert(code.end(), {0x02, kEmpty});
    code.insert(code.end(), depth, kEnd);
    return code;
  };
  EXPECT_EQ(check({{}, {}}, nested(kMaxControlDepth)), "ok");
  EXPECT_THAT(check({{}, {}}, nested(kMaxControlDepth + 1)), HasSubstr("too many nested blocks"));

  Bytes high;
  for (uint32_t i = 0; i <= kMaxOperands; ++i) high.insert(high.end(), {0x41, 0});
  EXPECT_THAT(check({{}, {}}, high), HasSubstr("too many operands on the stack"));

  const Bytes table = Bytes{0x41, 0, 0x0e} + leb(kMaxBrTableTargets + 1) + Bytes(kMaxBrTableTargets + 2, 0);
  EXPECT_THAT(check({{}, {}}, table), HasSubstr("too many br_table targets"));
}

TEST(InstrReader, DecodesImmediates) {
  const Bytes code = Bytes{0x41, 0x7f} +                                        // i32.const -1
                     Bytes{0x42, 0x80, 0x7f, 0x1a} +                            // i64.const -128
                     Bytes{0x43, 1, 2, 3, 4, 0x1a} +                            // f32.const
                     Bytes{0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a} +                // f64.const
                     Bytes{0x28, 2, 0x80, 1} +                                  // i32.load offset=128
                     Bytes{0x02, 3, 0x0b} +                                     // block (type 3)
                     Bytes{0x02, kEmpty, 0x41, 5, 0x0e, 2, 0, 1, 0, 0x0b} +     // br_table 0 1 0
                     Bytes{0x1a, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0a, 0, 0};  // memory.copy
  const auto module = decode_module(module_around({}, {}, code), "m");
  ASSERT_TRUE(module.has_value()) << module.error().describe();
  InstrReader reader(**module, (*module)->bodies[0]);
  Instr instr;
  std::vector<Instr> all;
  std::vector<uint32_t> targets;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode == Opcode::kBrTable) targets = reader.br_table();
    all.push_back(instr);
  }
  EXPECT_EQ(all[0].bits, 0xffffffffu);
  EXPECT_EQ(all[1].bits, static_cast<uint64_t>(int64_t{-128}));
  EXPECT_EQ(all[3].bits, 0x04030201u);
  EXPECT_EQ(all[5].bits, 0x0807060504030201u);
  EXPECT_EQ(all[7].opcode, Opcode::kI32Load);
  EXPECT_EQ(all[7].bits, 128u);
  EXPECT_EQ(all[7].align_log2, 2u);
  EXPECT_EQ(all[8].block.param_count(), 1u);
  EXPECT_EQ(all[8].block.result(0), ValType::kI32);
  EXPECT_EQ(all[10].block.result_count(), 0u);
  EXPECT_EQ(targets, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(all.back().opcode, Opcode::kEnd);
  EXPECT_EQ(all[all.size() - 2].opcode, Opcode::kMemoryCopy);
  EXPECT_STREQ(find_opcode(static_cast<uint16_t>(all[7].opcode))->name, "i32.load");

  reader.seek(all[7].offset);
  reader.next(instr);
  EXPECT_EQ(instr.opcode, Opcode::kI32Load);
}

// A deterministic stand-in for time: ten times the module may not cost more than twelve times the steps.
TEST(Growth, StepsStayLinearInTheSizeOfTheModule) {
  auto steps = [](const Bytes& unit, uint32_t repeats, const Typing& type) {
    Bytes code;
    code.reserve(unit.size() * repeats);
    for (uint32_t i = 0; i < repeats; ++i) code.insert(code.end(), unit.begin(), unit.end());
    const auto module = decode_module(module_around(type.params, type.results, code), "m");
    EXPECT_TRUE(module.has_value()) << module.error().describe();
    return module.has_value() ? (*module)->decode_stats.steps : 0;
  };
  const Bytes straight = {0x20, 0, 0x20, 0, 0x6a, 0x21, 0};
  const Bytes control = {0x03, kEmpty, 0x02, kEmpty, 0x20, 0, 0x0e, 3, 0,
                         1,    2,      0,    kEnd,   0x20, 0, 0x0d, 0, kEnd};
  const Bytes nested = Bytes{0x02, kEmpty};
  for (const Bytes& unit : {straight, control}) {
    const auto small = steps(unit, 1'000, {{kI32}, {}});
    EXPECT_LE(steps(unit, 10'000, {{kI32}, {}}), 12 * small);
  }
  // Deep nesting with a branch table to every level: distinct labels, each checked once.
  auto deep = [](uint32_t depth) {
    Bytes code;
    for (uint32_t i = 0; i < depth; ++i) code.insert(code.end(), {0x02, kEmpty});
    code = code + Bytes{0x20, 0, 0x0e} + leb(depth);
    for (uint32_t i = 0; i <= depth; ++i) code = code + leb(i);
    code.insert(code.end(), depth, kEnd);
    return code;
  };
  const auto shallow = steps(deep(500), 1, {{kI32}, {}});
  EXPECT_LE(steps(deep(5'000), 1, {{kI32}, {}}), 12 * shallow);
}

TEST(Growth, ABranchTableChecksALabelOnceHoweverOftenItIsNamed) {
  // (0 params) -> 1000 i32 results; br_table with 60000 times the same label would be 60 million checks.
  Bytes results(1'000, kI32);
  Bytes code = Bytes{0x00, 0x0e} + leb(60'000) + Bytes(60'001, 0);
  const auto module = decode_module(module_around({}, results, code), "m");
  ASSERT_TRUE(module.has_value()) << module.error().describe();
  EXPECT_LT((*module)->decode_stats.steps, 100'000u);
}

}  // namespace
}  // namespace hindsight::wasm
