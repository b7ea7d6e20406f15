#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

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
  const TypeId id(a), same(FuncType{{ValType::kI32}, {}}), other(b);
  EXPECT_EQ(id.value(), same.value());
  EXPECT_NE(id.value(), other.value());
  EXPECT_EQ(type_of_canonical_id(other.value()), b);
}

TEST(TypeRegistry, ATypeLastsAsLongAsSomebodyHoldsIt) {
  const size_t before = registered_types();
  {
    TypeId first(FuncType{{ValType::kI64, ValType::kF64}, {}});
    const uint32_t id = first.value();
    EXPECT_EQ(registered_types(), before + 1);
    TypeId second = TypeId::again(id);
    first = TypeId();
    EXPECT_EQ(type_of_canonical_id(id).params.size(), 2u);
    // Its number is nobody else's meanwhile.
    const TypeId other(FuncType{{ValType::kF64, ValType::kI64}, {}});
    EXPECT_NE(other.value(), id);
  }
  EXPECT_EQ(registered_types(), before);
}

// (type 0: of nothing) (type i: takes a reference to type i - 1) ... and one that refers to itself.
void make_chain_of_types(uint32_t count, wasm::Module& module) {
  for (uint32_t i = 0; i < count; i++) {
    FuncType type;
    if (i != 0) type.params.push_back(wasm::typed_ref(i - 1));
    module.types.push_back(type);
    module.canonical_types.push_back(i);
  }
  module.types.push_back(FuncType{{wasm::typed_ref(count), wasm::non_null(wasm::typed_ref(count))}, {}});
  module.canonical_types.push_back(count);
}

TEST(TypeRegistry, AModulesTypesGoWithItsIdsAndWithThemThoseThatTheyReferTo) {
  const size_t before = registered_types();
  constexpr uint32_t kTypes = 100'000;
  wasm::Module module;
  make_chain_of_types(kTypes, module);
  {
    const TypeIds ids = *TypeIds::of(module);
    EXPECT_EQ(registered_types(), before + kTypes + 1);
    const TypeIds again = *TypeIds::of(module);
    EXPECT_EQ(registered_types(), before + kTypes + 1);
    for (uint32_t i = 0; i <= kTypes; i += 997) EXPECT_EQ(ids[i], again[i]);
    EXPECT_EQ(ids[kTypes], again[kTypes]);
  }
  EXPECT_EQ(registered_types(), before);
  {
    // The last of a chain holds all of it.
    std::optional<TypeIds> ids = *TypeIds::of(module);
    const TypeId last = TypeId::again((*ids)[kTypes - 1]);
    ids.reset();
    EXPECT_EQ(registered_types(), before + kTypes);
  }
  EXPECT_EQ(registered_types(), before);
}

TEST(TypeRegistry, ThreadsHoldAndLetGoAtOnce) {
  const size_t before = registered_types();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (uint32_t i = 0; i < 2000; i++) {
        FuncType type;
        type.params.assign(1 + i % 50, ValType::kI32);
        type.results.assign(1 + i % 7, ValType::kF32);
        const TypeId id(type);
        const TypeId same = TypeId::again(id.value());
        EXPECT_EQ(type_of_canonical_id(same.value()), type);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered_types(), before);
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
