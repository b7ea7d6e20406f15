// What the validator notes of a body for those who compile it, what it bounds, and how its work grows. Its verdicts on modules
// are in verdicts/validator.txt.
#include <gtest/gtest.h>

#include <string>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;

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
  EXPECT_EQ(check({{}, {}}, nested(kMaxControlDepth + 1)),
            "too many nested blocks: 50001, the implementation limit is 50000 (in function 0)");

  Bytes high;
  for (uint32_t i = 0; i <= kMaxOperands; ++i) high.insert(high.end(), {0x41, 0});
  EXPECT_EQ(check({{}, {}}, high),
            "too many operands on the stack: 100001, the implementation limit is 100000 (in function 0)");

  const Bytes table = Bytes{0x41, 0, 0x0e} + leb(kMaxBrTableTargets + 1) + Bytes(kMaxBrTableTargets + 2, 0);
  EXPECT_EQ(check({{}, {}}, table),
            "too many br_table targets: 65521, the implementation limit is 65520 (in function 0)");
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
