// Custom sections that are read: branch hints, producers, target features. None of them can make a module
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/wasm/branch_hints.h"
#include "jit/wasm/tool_sections.h"
#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;

std::shared_ptr<const Module> decode_sections(const Bytes& bytes) {
  auto result = decode_module(bytes, "test.wasm");
  if (!result) {
    ADD_FAILURE() << result.error().describe();
    return std::make_shared<Module>();
  }
  return *result;
}

constexpr uint8_t kEmptyModule = 0x40;

Bytes hints_of(uint8_t function, std::initializer_list<Bytes> hints) {
  return Bytes{function} + vec(hints);
}

// Two functions of one i32 with a local; `if` is at 5 in the body, 2 after the local declarations.
Bytes hinted(const Bytes& contents) {
  const Bytes code = {0x01, 0x01, kI32, 0x20, 0, 0x04, kEmptyModule, 0x01, 0x0b, 0x0b};
  const Bytes sized = leb(static_cast<uint32_t>(code.size())) + code;
  return module({section(1, vec({func_type({kI32}, {})})), section(3, vec({{0}, {0}})),
                 section(0, text(kBranchHintSection) + contents), section(10, vec({sized, sized}))});
}

TEST(BranchHints, AreFoundByTheOffsetOfTheirInstruction) {
  const auto m = decode_sections(hinted(vec({hints_of(0, {{5, 1, 1}}), hints_of(1, {{5, 1, 0}})})));
  EXPECT_EQ(m->decode_stats.branch_hint_errors, 0u);
  ASSERT_EQ(m->branch_hints.size(), 2u);
  for (const uint32_t body : {0u, 1u}) {
    const WasmOffset at(m->bodies[body].begin.value + 2);
    EXPECT_EQ(m->bytes[at.value], 0x04);
    EXPECT_EQ(m->branch_hint(at), body == 0);
    EXPECT_EQ(m->branch_hint(WasmOffset(at.value - 1)), std::nullopt);
    EXPECT_EQ(m->branch_hint(WasmOffset(at.value + 1)), std::nullopt);
  }
}

TEST(BranchHints, WithoutAPlaceAreCountedAndDropped) {
  // In the local declarations, after the body, far after it; of no function.
  for (const Bytes& hint : {Bytes{0, 1, 1}, Bytes{2, 1, 1}, Bytes{10, 1, 1}, leb(0xfffffff0) + Bytes{1, 1}}) {
    const auto m = decode_sections(hinted(vec({hints_of(0, {hint})})));
    EXPECT_EQ(m->decode_stats.branch_hint_errors, 1u);
    EXPECT_TRUE(m->branch_hints.empty());
  }
  const auto m = decode_sections(hinted(vec({hints_of(0, {{5, 1, 1}}), hints_of(7, {{5, 1, 1}})})));
  EXPECT_EQ(m->decode_stats.branch_hint_errors, 1u);
  EXPECT_EQ(m->branch_hints.size(), 1u);
}

TEST(BranchHints, InAMalformedSectionAreIgnoredAsAWhole) {
  const Bytes good = hints_of(0, {{5, 1, 1}});
  for (const Bytes& contents : {Bytes{}, Bytes{2} + good, Bytes{0xff, 0xff, 0xff, 0xff, 0x0f},
                                vec({good}) + Bytes{0}, vec({good, good}),   // functions do not ascend
                                vec({hints_of(0, {{5, 1, 1}, {5, 1, 0}})}),  // nor do instructions
                                vec({hints_of(0, {{5, 2, 1, 1}})}), vec({hints_of(0, {{5, 1, 2}})})}) {
    const auto m = decode_sections(hinted(contents));
    EXPECT_EQ(m->decode_stats.branch_hint_errors, 1u);
    EXPECT_TRUE(m->branch_hints.empty());
  }
}

TEST(BranchHints, BelongInFrontOfTheCode) {
  const Bytes hints = section(0, text(kBranchHintSection) + vec({hints_of(0, {{1, 1, 1}})}));
  const Bytes type = section(1, vec({func_type({}, {})})), functions = section(3, vec({{0}})),
              code = section(10, vec({body({0x01, 0x01})}));
  const auto behind = decode_sections(module({type, functions, code, hints}));
  EXPECT_EQ(behind->decode_stats.branch_hint_errors, 1u);
  EXPECT_TRUE(behind->branch_hints.empty());
  const auto twice = decode_sections(module({type, functions, hints, hints, code}));
  EXPECT_EQ(twice->decode_stats.branch_hint_errors, 1u);
  EXPECT_EQ(twice->branch_hints.size(), 1u);
}

TEST(ToolSections, SayWhoMadeTheModuleAndWhatItUses) {
  const auto m = decode_sections(
      module({section(0, text("producers") + vec({text("language") + vec({text("C11") + text("")}),
                                                  text("processed-by") + vec({text("clang") + text("19.1"),
                                                                              text("lld") + text("19")})})),
              section(0, text("target_features") +
                             vec({Bytes{'+'} + text("simd128"), Bytes{'-'} + text("atomics")})),
              section(0, text("other") + Bytes{1, 2})}));
  const ToolSections tools = read_tool_sections(*m);
  EXPECT_EQ(tools.errors, 0u);
  ASSERT_EQ(tools.producers.size(), 2u);
  EXPECT_EQ(tools.producers[0].field, "language");
  EXPECT_EQ(tools.producers[0].tools[0].name, "C11");
  EXPECT_EQ(tools.producers[1].tools[1].name, "lld");
  EXPECT_EQ(tools.producers[1].tools[1].version, "19");
  ASSERT_EQ(tools.target_features.size(), 2u);
  EXPECT_EQ(tools.target_features[0].prefix, '+');
  EXPECT_EQ(tools.target_features[1].name, "atomics");
  ASSERT_EQ(m->custom_sections.size(), 3u);
  EXPECT_EQ(m->custom_sections[2].name, "other");
  EXPECT_EQ(m->custom_sections[2].size, 2u);
  EXPECT_EQ(m->bytes[m->custom_sections[2].begin.value], 1);
}

TEST(ToolSections, ThatAreMalformedAreCounted) {
  for (const auto& [name, contents] : std::initializer_list<std::pair<const char*, Bytes>>{
           {"producers", {}},
           {"producers", Bytes{2} + text("sdk") + vec({text("a") + text("1")})},
           {"producers", Bytes{1} + text("sdk") + Bytes{0xff, 0xff, 3}},
           {"producers", vec({text("sdk") + vec({text("a") + text("1")})}) + Bytes{0}},
           {"target_features", vec({Bytes{'?'} + text("simd128")})},
           {"target_features", Bytes{1, '+', 9, 'x'}}}) {
    const auto m = decode_sections(module({section(0, text(name) + contents)}));
    EXPECT_EQ(read_tool_sections(*m).errors, 1u);
  }
}

}  // namespace
}  // namespace hindsight::wasm
