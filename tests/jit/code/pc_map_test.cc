#include "jit/code/pc_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace hindsight::jit {
namespace {

TEST(PcMap, ARowHoldsUntilTheNext) {
  PcMapBuilder builder;
  builder.add_row({CodeOffset(4), WasmOffset(100)});
  builder.add_row({CodeOffset(9), WasmOffset(101)});
  builder.add_row({CodeOffset(9), WasmOffset(102)});  // the instruction at 101 emitted nothing
  builder.add_row({CodeOffset(12), WasmOffset(102)});
  builder.add_row({CodeOffset(20), kNoWasmOffset});
  const PcMap map = builder.finish();
  EXPECT_EQ(map.rows().size(), 3u);
  EXPECT_FALSE(map.find(CodeOffset(3)));
  EXPECT_EQ(map.find(CodeOffset(4))->wasm, WasmOffset(100));
  EXPECT_EQ(map.find(CodeOffset(8))->wasm, WasmOffset(100));
  EXPECT_EQ(map.find(CodeOffset(9))->wasm, WasmOffset(102));
  EXPECT_EQ(map.find(CodeOffset(19))->wasm, WasmOffset(102));
  EXPECT_EQ(map.find(CodeOffset(1000))->wasm, kNoWasmOffset);
}

TEST(PcMap, AnEmptyMapFindsNothing) {
  PcMapBuilder builder;
  const PcMap map = builder.finish();
  EXPECT_FALSE(map.find(CodeOffset(0)));
}

TEST(PcMap, RowsComeBackAsTheyWereGivenWhateverTheirDistances) {
  PcMapBuilder builder;
  for (int round = 0; round < 2; ++round) {  // the second map knows nothing of the first
    std::vector<PcRow> rows;
    uint32_t state = 1;
    CodeOffset code;
    for (uint32_t i = 0; i < 1000; ++i) {
      state = state * 1664525 + 1013904223;
      code = CodeOffset(code.value + 1 + (state >> 24) % 9 * ((state >> 16) % 50));
      const WasmOffset wasm =
          (state >> 8) % 11 == 0 ? kNoWasmOffset : WasmOffset((state >> 12) % 300 + 1000 * (i % 2));
      rows.push_back({code, wasm, (state >> 20) % 5 == 0 ? i : kNoInlineSite});
      builder.add_row(rows.back());
    }
    const PcMap map = builder.finish({InlineSite{}});
    EXPECT_EQ(map.inline_sites().size(), 1u);
    const std::vector<PcRow> back = map.rows();
    size_t at = 0;  // of the rows given, those that say nothing new are left out
    for (const PcRow& row : rows) {
      if (at == 0 || back[at - 1].wasm != row.wasm || back[at - 1].inline_site != row.inline_site) {
        ASSERT_LT(at, back.size());
        EXPECT_EQ(back[at].code, row.code);
        ++at;
      }
      ASSERT_TRUE(map.find(row.code));
      EXPECT_EQ(map.find(row.code)->wasm, row.wasm);
      EXPECT_EQ(map.find(row.code)->inline_site, row.inline_site);
    }
    EXPECT_EQ(at, back.size());
  }
  // Neighbours as instructions are: two bytes, and a row in full every 32.
  for (uint32_t i = 0; i < 1000; ++i)
    builder.add_row({CodeOffset(5 * i), WasmOffset(100 + 2 * i), kNoInlineSite});
  EXPECT_LT(builder.finish().heap_bytes(), 3000u);
}

}  // namespace
}  // namespace hindsight::jit
