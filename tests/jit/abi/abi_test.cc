#include <gtest/gtest.h>

#include <set>
#include <string>

#include "jit/abi/call_layout.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/vm_context.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {
namespace {

using wasm::FuncType;
using wasm::ValType;

TEST(CallLayout, CountsIntegersAndFloatsApartAndPutsTheRestIntoTheThread) {
  FuncType type;
  for (int i = 0; i < 7; ++i) type.params.push_back(i % 2 ? ValType::kI64 : ValType::kFuncRef);
  for (int i = 0; i < 9; ++i) type.params.push_back(i % 2 ? ValType::kF64 : ValType::kF32);
  const CallLayout layout(type);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(layout.params[i].kind, ArgPlace::Kind::kInt);
    EXPECT_EQ(layout.params[i].index, i + 1);
  }
  EXPECT_EQ(layout.params[5].kind, ArgPlace::Kind::kThread);
  EXPECT_EQ(layout.params[6].index, 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(layout.params[7 + i].kind, ArgPlace::Kind::kFloat);
    EXPECT_EQ(layout.params[7 + i].index, i);
  }
  EXPECT_EQ(layout.params[15].index, 16u);
  EXPECT_EQ(layout.thread_bytes, 24u);
  EXPECT_FALSE(layout.results_in_thread);
}

TEST(TypeRegistry, EqualTypesShareAnIdAndDifferentOnesNever) {
  const FuncType a{{ValType::kI32}, {}};
  const FuncType b{{}, {ValType::kI32}};
  EXPECT_EQ(canonical_type_id(a), canonical_type_id(FuncType{{ValType::kI32}, {}}));
  EXPECT_NE(canonical_type_id(a), canonical_type_id(b));
  EXPECT_EQ(type_of_canonical_id(canonical_type_id(b)), b);
}

TEST(VmLayout, PlacesFunctionsThenAlignedGlobals) {
  wasm::Module module;
  module.functions.resize(3);
  module.globals.resize(4);
  module.imported_globals = 1;
  const VmLayout layout(module);
  EXPECT_EQ(layout.func(0), 64);
  EXPECT_EQ(layout.func_context(2), 64 + 64 + 8);
  EXPECT_TRUE(layout.global_is_imported(0));
  EXPECT_EQ(layout.global(1), 64 + 96);
  EXPECT_EQ(layout.global(3), 64 + 96 + 32);
  EXPECT_EQ(layout.total_bytes(), 64u + 96 + 48);
}

TEST(TrapCode, EveryCodeHasAName) {
  std::set<std::string> names;
  for (uint32_t code = 0; code <= static_cast<uint32_t>(TrapCode::kNullFunctionReference); ++code)
    names.insert(to_string(static_cast<TrapCode>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(TrapCode::kNullFunctionReference) + 1);
}

}  // namespace
}  // namespace hindsight::jit
