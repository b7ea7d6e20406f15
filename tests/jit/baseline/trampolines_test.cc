// The bridges, apart from the calls that every other test makes through them.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class TrampolinesTest : public BaselineTest {};

TEST_F(TrampolinesTest, AreCachedBySignature) {
  auto trampolines = *make_trampolines(*arena_);
  const wasm::FuncType one{{wasm::ValType::kI32}, {wasm::ValType::kF64}};
  const wasm::FuncType two{{wasm::ValType::kI64}, {wasm::ValType::kF64}};
  EXPECT_EQ(*trampolines->invoke(one), *trampolines->invoke(one));
  EXPECT_NE(*trampolines->invoke(one), *trampolines->invoke(two));
  EXPECT_EQ(*trampolines->host_call(two), *trampolines->host_call(two));
  EXPECT_NE(*trampolines->host_call(one), *trampolines->host_call(two));
}

TEST_F(TrampolinesTest, LazyStubsDifferByFunctionAndLieInTheArena) {
  auto trampolines = *make_trampolines(*arena_);
  const void* a = *trampolines->lazy_stub(0);
  const void* b = *trampolines->lazy_stub(1);
  const void* far = *trampolines->lazy_stub(100000);
  EXPECT_EQ(static_cast<const std::byte*>(b) - static_cast<const std::byte*>(a), 16);
  EXPECT_TRUE(arena_->contains(far));
  EXPECT_EQ(a, *trampolines->lazy_stub(0));
}

TEST_F(TrampolinesTest, TheFirstCallCompilesOnceAndKeepsTheArguments) {
  auto instance = instantiate(R"((module
    (func $f (param i32 i64 f32 f64) (result f64)
      local.get 0 f64.convert_i32_s local.get 1 f64.convert_i64_s f64.add local.get 2 f64.promote_f32 f64.add
      local.get 3 f64.add)
    (func (export "g") (result f64) i32.const 1 i64.const 2 f32.const 3 f64.const 4 call $f)))");
  const void* stub = func_refs(instance->context())[0].code.load();
  EXPECT_EQ(instance->call("g"), returns({f64(10)}));
  EXPECT_NE(func_refs(instance->context())[0].code.load(), stub);
  EXPECT_EQ(instance->call("g"), returns({f64(10)}));
}

TEST_F(TrampolinesTest, TenThousandTrapsLeakNoStackAndNoEntry) {
  auto instance =
      instantiate("(module (memory 1) (func (export \"f\") (param i32) (result i32) local.get 0 i32.load))");
  for (int i = 0; i < 10000; ++i)
    ASSERT_EQ(instance->call("f", {i32(0x20000000)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(instance->thread().entry_sp.load(), 0u);
  EXPECT_EQ(instance->call("f", {i32(0)}), returns({i32(0)}));
}

}  // namespace
}  // namespace hindsight::jit::testing
