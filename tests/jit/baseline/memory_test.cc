// Loads, stores, growing and bulk operations, under guard pages and under explicit checks.
#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

class MemoryTest : public BaselineTest, public ::testing::WithParamInterface<BoundsChecks> {
 protected:
  void SetUp() override {
    BaselineTest::SetUp();
    compile_options_.bounds = GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Bounds, MemoryTest,
                         ::testing::Values(BoundsChecks::kGuardPages, BoundsChecks::kExplicit),
                         [](const auto& info) {
                           return info.param == BoundsChecks::kGuardPages ? "GuardPages" : "Explicit";
                         });

TEST_P(MemoryTest, LoadsExtendAndStoresTruncate) {
  struct Load {
    const char* op;
    Value expected;
  };
  const Load loads[] = {{"i32.load", i32(0x84838281)},
                        {"i32.load8_s", i32(0xffffff81)},
                        {"i32.load8_u", i32(0x81)},
                        {"i32.load16_s", i32(0xffff8281)},
                        {"i32.load16_u", i32(0x8281)},
                        {"i64.load", i64(0x8887868584838281)},
                        {"i64.load8_s", i64(0xffffffffffffff81)},
                        {"i64.load8_u", i64(0x81)},
                        {"i64.load16_s", i64(0xffffffffffff8281)},
                        {"i64.load16_u", i64(0x8281)},
                        {"i64.load32_s", i64(0xffffffff84838281)},
                        {"i64.load32_u", i64(0x84838281)},
                        {"f32.load", f32_bits(0x84838281)},
                        {"f64.load", f64_bits(0x8887868584838281)}};
  std::string wat = "(module (memory 1) (data (i32.const 16) \"\\81\\82\\83\\84\\85\\86\\87\\88\")";
  for (const Load& l : loads) {
    const std::string op = l.op;
    const std::string type = op.substr(0, 3);
    wat += "(func (export \"" + op + "\") (param i32) (result " + type + ") local.get 0 " + op + " offset=6)";
    wat += "(func (export \"" + op + "/const\") (param i32) (result " + type + ") i32.const 10 " + op +
           " offset=6)";
    wat += "(func (export \"" + op + "/slot\") (param i32) (result " + type + ") local.get 0 (block) " + op +
           " offset=6)";
  }
  for (const char* store : {"i32.store", "i32.store8", "i32.store16"}) {
    const std::string op = store;
    wat += "(func (export \"" + op +
           "\") (result i64) i32.const 64 i64.const -1 i64.store i32.const 60 i32.const 0x12345678 " + op +
           " offset=4 i32.const 64 i64.load)";
    wat += "(func (export \"" + op +
           "/var\") (param i32) (result i64) i32.const 64 i64.const -1 i64.store i32.const 60 local.get 0 " +
           op + " offset=4 i32.const 64 i64.load)";
  }
  for (const char* store : {"i64.store", "i64.store8", "i64.store16", "i64.store32"}) {
    const std::string op = store;
    wat += "(func (export \"" + op +
           "\") (param i64) (result i64) i32.const 64 i64.const -1 i64.store i32.const 60 local.get 0 " + op +
           " offset=4 i32.const 64 i64.load)";
  }
  wat +=
      "(func (export \"f\") (param f32 f64) (result f32 f64) i32.const 8 local.get 0 f32.store i32.const 24 "
      "local.get 1 "
      "f64.store i32.const 8 f32.load i32.const 24 f64.load)";
  auto instance = instantiate(wat + ")");
  for (const Load& l : loads) {
    for (const char* variant : {"", "/const", "/slot"})
      EXPECT_EQ(instance->call(std::string(l.op) + variant, {i32(10)}), returns({l.expected}))
          << l.op << variant;
  }
  EXPECT_EQ(instance->call("i32.store"), returns({i64(0xffffffff12345678)}));
  EXPECT_EQ(instance->call("i32.store16"), returns({i64(0xffffffffffff5678)}));
  EXPECT_EQ(instance->call("i32.store8"), returns({i64(0xffffffffffffff78)}));
  EXPECT_EQ(instance->call("i32.store/var", {i32(0xabcdef01)}), returns({i64(0xffffffffabcdef01)}));
  EXPECT_EQ(instance->call("i32.store16/var", {i32(0xabcdef01)}), returns({i64(0xffffffffffffef01)}));
  EXPECT_EQ(instance->call("i32.store8/var", {i32(0xabcdef01)}), returns({i64(0xffffffffffffff01)}));
  EXPECT_EQ(instance->call("i64.store", {i64(0x1122334455667788)}), returns({i64(0x1122334455667788)}));
  EXPECT_EQ(instance->call("i64.store32", {i64(0x1122334455667788)}), returns({i64(0xffffffff55667788)}));
  EXPECT_EQ(instance->call("i64.store16", {i64(0x1122334455667788)}), returns({i64(0xffffffffffff7788)}));
  EXPECT_EQ(instance->call("i64.store8", {i64(0x1122334455667788)}), returns({i64(0xffffffffffffff88)}));
  // Bit patterns of signalling NaNs survive moves, loads and stores.
  EXPECT_EQ(instance->call("f", {f32_bits(0x7fa00001), f64_bits(0xfff4000000000001)}),
            returns({f32_bits(0x7fa00001), f64_bits(0xfff4000000000001)}));
}

TEST_P(MemoryTest, AccessesTrapExactlyAtTheEnd) {
  std::string wat = "(module (memory 1 2)";
  const std::pair<const char*, uint32_t> offsets[] = {
      {"0", 0}, {"8", 8}, {"0x7fffffff", 0x7fffffff}, {"0x80000000", 0x80000000}, {"0xffffffff", 0xffffffff}};
  for (const auto& [text, value] : offsets)
    wat += std::string("(func (export \"load") + text +
           "\") (param i32) (result i64) local.get 0 i64.load offset=" + text + ") (func (export \"store" +
           text + "\") (param i32) local.get 0 i32.const 1 i32.store8 offset=" + text +
           ") (func (export \"const" + text + "\") (result i32) i32.const 0xfff0 i32.load offset=" + text +
           ")";
  wat +=
      "(func (export \"grow\") (param i32) (result i32) local.get 0 memory.grow)"
      "(func (export \"size\") (result i32) memory.size)"
      "(func (export \"wrapped\") (param i64) (result i32) local.get 0 i32.wrap_i64 i32.load)"
      "(func (export \"sum\") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add i32.load))";
  auto instance = instantiate(wat);
  for (const uint64_t bytes : {uint64_t{65536}, uint64_t{131072}}) {
    for (const auto& [text, offset] : offsets) {
      for (const uint32_t index : {0u, 8u, 65520u, 65527u, 65528u, 65529u, 65535u, 65536u, 131071u,
                                   0x7fffffffu, 0x80000000u, 0xfffffff8u, 0xffffffffu}) {
        const uint64_t at = uint64_t{index} + offset;
        EXPECT_EQ(instance->call(std::string("load") + text, {i32(index)}).trap,
                  at + 8 <= bytes ? TrapCode::kNone : TrapCode::kMemoryOutOfBounds)
            << text << " " << index;
        EXPECT_EQ(instance->call(std::string("store") + text, {i32(index)}).trap,
                  at + 1 <= bytes ? TrapCode::kNone : TrapCode::kMemoryOutOfBounds)
            << text << " " << index;
      }
      EXPECT_EQ(instance->call(std::string("const") + text).trap,
                uint64_t{0xfff0} + offset + 4 <= bytes ? TrapCode::kNone : TrapCode::kMemoryOutOfBounds);
    }
    if (bytes == 65536) {
      EXPECT_EQ(instance->call("size"), returns({i32(1)}));
      EXPECT_EQ(instance->call("grow", {i32(1)}), returns({i32(1)}));
      EXPECT_EQ(instance->call("grow", {i32(1)}), returns({i32(~0u)}));
      EXPECT_EQ(instance->call("size"), returns({i32(2)}));
    }
  }
  // Upper halves never leak into an address: neither those of an i64 nor a carry.
  EXPECT_EQ(instance->call("wrapped", {i64(0xffffffff00000010)}).trap, TrapCode::kNone);
  EXPECT_EQ(instance->call("sum", {i32(0xfffffff0), i32(0x20)}).trap, TrapCode::kNone);
  EXPECT_EQ(instance->call("sum", {i32(0x80000000), i32(0x10)}).trap, TrapCode::kMemoryOutOfBounds);
}

TEST_P(MemoryTest, FaultsAreAttributedToTheirInstruction) {
  auto instance = instantiate(R"((module (memory 1)
    (func (export "f") (param i32) (result i32) i32.const 1 drop local.get 0 i32.load i32.const 1 i32.add)))");
  EXPECT_EQ(instance->call("f", {i32(0x10000000)}), traps(TrapCode::kMemoryOutOfBounds));
  const bool return_address = GetParam() == BoundsChecks::kExplicit;
  EXPECT_EQ(wasm_offset(0, instance->trap_pc, return_address),
            WasmOffset(instance->module().bodies[0].begin.value + 5));
}

TEST_P(MemoryTest, BulkOperationsGoThroughTheRuntime) {
  auto instance = instantiate(R"((module (memory 1) (data $d "hello")
    (func (export "init") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 memory.init $d)
    (func (export "drop") data.drop $d)
    (func (export "copy") (param i32 i32 i32) local.get 0 local.get 1 local.get 2 memory.copy)
    (func (export "fill") (param i32 i32 i32) local.get 2 local.get 1 local.set 2 local.set 1
      local.get 0 local.get 2 local.get 1 memory.fill)))");
  EXPECT_EQ(instance->call("init", {i32(100), i32(1), i32(4)}), returns({}));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(instance->memory()) + 100, 4), "ello");
  EXPECT_EQ(instance->call("copy", {i32(101), i32(100), i32(4)}), returns({}));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(instance->memory()) + 100, 5), "eello");
  EXPECT_EQ(instance->call("fill", {i32(102), i32('z'), i32(2)}), returns({}));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(instance->memory()) + 100, 5), "eezzo");
  EXPECT_EQ(instance->call("fill", {i32(65535), i32(1), i32(2)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(instance->call("init", {i32(0), i32(3), i32(3)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(instance->call("drop"), returns({}));
  EXPECT_EQ(instance->call("init", {i32(0), i32(0), i32(1)}), traps(TrapCode::kMemoryOutOfBounds));
}

}  // namespace
}  // namespace hindsight::jit::testing
