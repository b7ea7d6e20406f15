#include "jit/code/pc_map.h"

#include <gtest/gtest.h>

namespace hindsight::jit {
namespace {

TEST(PcMap, ARowHoldsUntilTheNext) {
  PcMap map;
  map.add_row({CodeOffset(4), WasmOffset(100)});
  map.add_row({CodeOffset(9), WasmOffset(101)});
  map.add_row({CodeOffset(9), WasmOffset(102)});  // the instruction at 101 emitted nothing
  map.add_row({CodeOffset(12), WasmOffset(102)});
  map.add_row({CodeOffset(20), kNoWasmOffset});
  map.finish();
  EXPECT_EQ(map.rows().size(), 3u);
  EXPECT_EQ(map.find(CodeOffset(3)), nullptr);
  EXPECT_EQ(map.find(CodeOffset(4))->wasm, WasmOffset(100));
  EXPECT_EQ(map.find(CodeOffset(8))->wasm, WasmOffset(100));
  EXPECT_EQ(map.find(CodeOffset(9))->wasm, WasmOffset(102));
  EXPECT_EQ(map.find(CodeOffset(19))->wasm, WasmOffset(102));
  EXPECT_EQ(map.find(CodeOffset(1000))->wasm, kNoWasmOffset);
}

TEST(PcMap, AnEmptyMapFindsNothing) {
  PcMap map;
  map.finish();
  EXPECT_EQ(map.find(CodeOffset(0)), nullptr);
}

}  // namespace
}  // namespace hindsight::jit
