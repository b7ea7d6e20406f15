// The shape of atomic instructions: one locked instruction with its address folded, where the machine has
// one.
#include <algorithm>
#include <vector>

#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint8_t kLock = 0xf0;

class AtomicCode : public BaselineTest {
 protected:
  // How often the function's code has these bytes, with a REX prefix somewhere before the opcode: 0 stands
  // for it.
  int count(std::string_view body, std::vector<uint8_t> pattern) {
    const std::string wat = "(module (memory 1 1 shared) (func (export \"f\") (param i32 i32) (result i32) " +
                            std::string(body) + "))";
    auto instance = instantiate(wat);
    if (!instance) return -1;
    instance->call("f", {i32(0), i32(0)});
    const CodeVersion& version = *versions_.at(0);
    const auto* code = reinterpret_cast<const uint8_t*>(version.begin());
    const std::span<const uint8_t> bytes(code, version.code_size.value);
    const auto same = [](uint8_t byte, uint8_t wanted) {
      return wanted == 0 ? (byte & 0xf0) == 0x40 : byte == wanted;
    };
    int found = 0;
    for (size_t i = 0; i + pattern.size() <= bytes.size(); ++i)
      found += std::equal(pattern.begin(), pattern.end(), bytes.begin() + static_cast<ptrdiff_t>(i),
                          [&](uint8_t wanted, uint8_t byte) { return same(byte, wanted); });
    return found;
  }
};

TEST_F(AtomicCode, IsOneLockedInstructionWithItsAddressFolded) {
  // lock xadd [base + index + 64], reg: ModRM with SIB and 8-bit displacement, then 0x40.
  EXPECT_EQ(count("(i32.atomic.rmw.add offset=64 (local.get 0) (local.get 1))", {kLock, 0, 0x0f, 0xc1}), 1);
  EXPECT_EQ(count("(drop (i32.atomic.rmw.add offset=64 (local.get 0) (i32.const 5))) (local.get 1)",
                  {kLock, 0, 0x83}),
            1);
  EXPECT_EQ(count("(drop (i32.atomic.rmw.xor offset=64 (local.get 0) (local.get 1))) (local.get 1)",
                  {kLock, 0, 0x31}),
            1);
  EXPECT_EQ(
      count("(i32.atomic.rmw.cmpxchg (local.get 0) (local.get 1) (i32.const 3))", {kLock, 0, 0x0f, 0xb1}), 1);
  EXPECT_EQ(count("(i32.atomic.rmw.or (local.get 0) (local.get 1))", {kLock, 0, 0x0f, 0xb1}), 1);
  EXPECT_EQ(count("(i32.atomic.rmw.xchg (local.get 0) (local.get 1))", {kLock}), 0);  // xchg locks by itself
  EXPECT_EQ(count("(i32.atomic.store (local.get 0) (local.get 1)) (i32.const 0)", {0, 0x87}), 1);
  EXPECT_EQ(count("(i32.atomic.load (local.get 0))", {kLock}), 0);
  EXPECT_EQ(count("(atomic.fence) (i32.const 0)", {kLock, 0x83, 0x0c, 0x24}) +
                count("(atomic.fence) (i32.const 0)", {kLock, 0x81, 0x0c, 0x24}),
            1);
}

// Every register taken: the exchange wants rax, and its operands have to go somewhere.
TEST_F(AtomicCode, IsRightUnderRegisterPressure) {
  auto instance = instantiate(R"((module (memory 1 1 shared)
    (func (export "f") (param i32 i32) (result i32)
      (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.load (i32.const 8)) (i32.load (i32.const 12))
      (i32.load (i32.const 16)) (i32.load (i32.const 20)) (i32.load (i32.const 24)) (i32.load (i32.const 28))
      (i32.atomic.rmw.cmpxchg (local.get 0) (i32.add (local.get 1) (i32.const 1)) (i32.mul (local.get 1) (i32.const 3)))
      (i32.atomic.rmw.and (i32.add (local.get 0) (i32.const 0)) (i32.add (local.get 1) (i32.const 100)))
      i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add)))");
  ASSERT_NE(instance, nullptr);
  auto* words = reinterpret_cast<uint32_t*>(instance->memory());
  for (uint32_t i = 0; i < 8; ++i) words[i] = i + 1;
  words[16] = 8;
  EXPECT_EQ(instance->call("f", {i32(64), i32(7)}), returns({i32(36 + 8 + 21)}));
  EXPECT_EQ(words[16], 21u & 107u);
}

}  // namespace
}  // namespace hindsight::jit::testing
