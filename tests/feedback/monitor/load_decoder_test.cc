#include "feedback/monitor/load_decoder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hindsight::feedback {
namespace {

// A code version made of `bytes`, with one known instruction boundary at its start.
struct Code {
  explicit Code(std::initializer_list<uint8_t> bytes) {
    arena = std::move(*jit::CodeArena::create(1 << 20));
    version.memory = std::move(*arena->allocate(bytes.size()));
    std::memcpy(version.memory.writable().data(), std::data(bytes), bytes.size());
    version.code_size = CodeOffset(static_cast<uint32_t>(bytes.size()));
    jit::PcMapBuilder rows;
    rows.add_row({CodeOffset(0), WasmOffset(1), jit::kNoInlineSite});
    version.pc_map = rows.finish();
  }
  std::unique_ptr<jit::CodeArena> arena;
  jit::CodeVersion version;
};

TEST(LoadDecoder, FindsThePlainLoadAndItsAddress) {
  Code code{0x41, 0x8b, 0x04, 0x17,  // mov eax, [r15+rdx]
            0x01, 0xc1};             // add ecx, eax
  uint64_t registers[16] = {};
  registers[15] = 0x7000'0000'0000;
  registers[2] = 0x1234;
  auto load = access_before(code.version, CodeOffset(4), registers);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->instruction, CodeOffset(0));
  EXPECT_EQ(load->address, 0x7000'0000'1234u);
}

TEST(LoadDecoder, FindsAFoldedLoadBehindOtherInstructions) {
  Code code{0x01, 0xc1,                    // add ecx, eax
            0x48, 0x03, 0x44, 0xcb, 0x08,  // add rax, [rbx+8*rcx+8]
            0x90};
  uint64_t registers[16] = {};
  registers[3] = 0x1000;
  registers[1] = 4;
  auto load = access_before(code.version, CodeOffset(7), registers);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->instruction, CodeOffset(2));
  EXPECT_EQ(load->address, 0x1028u);
}

TEST(LoadDecoder, KnowsWhenALoadOverwroteItsOwnBase) {
  Code code{0x48, 0x8b, 0x00, 0x90};  // mov rax, [rax]
  uint64_t registers[16] = {};
  auto load = access_before(code.version, CodeOffset(3), registers);
  ASSERT_TRUE(load);
  EXPECT_FALSE(load->address);
}

TEST(LoadDecoder, AReadModifyWriteIsALoad) {
  Code code{0x41, 0x83, 0x04, 0x17, 0x01, 0x90};  // add dword [r15+rdx], 1
  uint64_t registers[16] = {};
  EXPECT_TRUE(access_before(code.version, CodeOffset(5), registers));
}

TEST(LoadDecoder, AGatherIsALoadWithoutOneAddress) {
  Code code{0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x08, 0x90};  // vpgatherdd ymm0, [rax+ymm1], ymm2
  uint64_t registers[16] = {};
  auto load = access_before(code.version, CodeOffset(6), registers);
  ASSERT_TRUE(load);
  EXPECT_FALSE(load->address);
}

TEST(LoadDecoder, AGatherHasTheAddressOfTheLaneThatIsKnown) {
  Code code{0x62, 0xf2, 0xfd, 0x29, 0x91, 0x4c, 0xd8, 0x02, 0x90};  // vpgatherqq ymm1 {k1}, [rax+8*ymm3+16]
  uint64_t registers[16] = {};
  registers[0] = 0x10000;
  const auto address = [&](lwp::VectorIndex index) {
    const auto load = access_before(code.version, CodeOffset(8), registers, index);
    EXPECT_TRUE(load && load->has_lanes);
    return load ? load->address : std::nullopt;
  };
  EXPECT_EQ(address({.value = 0x500, .vector = 3, .bits = 64}), 0x12810u);
  EXPECT_EQ(address({.value = ~uint64_t{0}, .vector = 3, .bits = 64}), 0x10008u);
  // What the sampler took for another gather.
  EXPECT_FALSE(address({.value = 0x500, .vector = 4, .bits = 64}));
  EXPECT_FALSE(address({.value = 0x500, .vector = 3, .bits = 32}));
  EXPECT_FALSE(address({}));
}

TEST(LoadDecoder, AStoreIsNoLoad) {
  Code code{0x41, 0x89, 0x04, 0x17, 0x90};  // mov [r15+rdx], eax
  uint64_t registers[16] = {};
  registers[15] = 0x7000'0000'0000;
  registers[2] = 0x1234;
  const auto store = access_before(code.version, CodeOffset(4), registers);
  ASSERT_TRUE(store);
  EXPECT_TRUE(store->is_store);
  EXPECT_EQ(store->address, 0x7000'0000'1234u);
  Code update{0x41, 0x83, 0x04, 0x17, 0x01, 0x90};  // add dword [r15+rdx], 1
  EXPECT_FALSE(access_before(update.version, CodeOffset(5), registers)->is_store);
}

TEST(LoadDecoder, AScatterIsAStoreWithTheAddressOfTheLaneThatIsKnown) {
  Code code{0x62, 0xf2, 0x7d, 0x4a, 0xa0, 0x04, 0x8f, 0x90};  // vpscatterdd [rdi+4*zmm1] {k2}, zmm0
  uint64_t registers[16] = {};
  registers[7] = 0x10000;
  const auto address = [&](lwp::VectorIndex index) {
    const auto store = access_before(code.version, CodeOffset(7), registers, index);
    EXPECT_TRUE(store && store->is_store && store->has_lanes);
    return store ? store->address : std::nullopt;
  };
  EXPECT_EQ(address({.value = 0x500, .vector = 1, .bits = 32}), 0x11400u);
  EXPECT_FALSE(address({.value = 0x500, .vector = 2, .bits = 32})) << "of another scatter";
  EXPECT_FALSE(address({.value = 0x500, .vector = 1, .bits = 64}));
  EXPECT_FALSE(address({}));
}

TEST(LoadDecoder, FrameSlotsConstantsAndPrefetchesAreNot) {
  uint64_t registers[16] = {};
  Code spilled{0x48, 0x89, 0x45, 0xf8, 0x90};  // mov [rbp-8], rax
  EXPECT_FALSE(access_before(spilled.version, CodeOffset(4), registers));
  Code frame{0x48, 0x8b, 0x45, 0xf8, 0x90};  // mov rax, [rbp-8]
  EXPECT_FALSE(access_before(frame.version, CodeOffset(4), registers));
  Code constant{0xf2, 0x0f, 0x10, 0x05, 0, 0, 0, 0, 0x90};  // movsd xmm0, [rip]
  EXPECT_FALSE(access_before(constant.version, CodeOffset(8), registers));
  Code prefetch{0x0f, 0x18, 0x08, 0x90};  // prefetcht0 [rax]
  EXPECT_FALSE(access_before(prefetch.version, CodeOffset(3), registers));
  Code lea{0x48, 0x8d, 0x04, 0x0b, 0x90};  // lea rax, [rbx+rcx]
  EXPECT_FALSE(access_before(lea.version, CodeOffset(4), registers));
}

TEST(LoadDecoder, APcInsideAnInstructionIsNotJudged) {
  Code code{0x48, 0x8b, 0x00, 0x90};
  uint64_t registers[16] = {};
  EXPECT_FALSE(access_before(code.version, CodeOffset(2), registers));
  EXPECT_FALSE(access_before(code.version, CodeOffset(0), registers));
}

}  // namespace
}  // namespace hindsight::feedback
