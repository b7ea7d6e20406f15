#include "feedback/lwp/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace hindsight::lwp {
namespace {

// A few ranges of memory at addresses that a test chooses; everything else is not there.
class FakeMemory final : public Memory {
 public:
  void map(uint64_t address, size_t size) { ranges_[address].resize(size); }
  template <typename T>
  void put(uint64_t address, const T& value) {
    EXPECT_TRUE(write(address, std::as_bytes(std::span(&value, 1))));
  }
  template <typename T>
  T get(uint64_t address) {
    T value{};
    EXPECT_TRUE(read(address, std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  bool read(uint64_t address, std::span<std::byte> out) override {
    for (std::byte& byte : out) {
      const std::byte* from = at(address++);
      if (!from) return false;
      byte = *from;
    }
    ++reads;
    return true;
  }
  bool write(uint64_t address, std::span<const std::byte> bytes) override {
    for (const std::byte byte : bytes) {
      std::byte* to = at(address++);
      if (!to) return false;
      *to = byte;
    }
    return true;
  }
  unsigned reads = 0;

 private:
  std::byte* at(uint64_t address) {
    for (auto& [base, range] : ranges_) {
      if (address >= base && address - base < range.size()) return &range[address - base];
    }
    return nullptr;
  }
  std::map<uint64_t, std::vector<std::byte>> ranges_;
};

constexpr uint64_t kBlock = 0x10000, kBuffer = 0x20000, kData = 0x30000, kCode = 0x40000;
constexpr uint32_t kSlots = 4;

class Emulator : public testing::Test {
 protected:
  Emulator() : lwp_(memory_) {
    memory_.map(kBlock, sizeof(ControlBlock));
    memory_.map(kBuffer, kSlots * kRecordSize);
    memory_.map(kData, 4096);
    memory_.map(kCode, 4096);
    ControlBlock block;
    block.flags = flag_of(EventId::kValue);
    block.set_size_and_random(kSlots * kRecordSize, 0);
    block.buffer_base = kBuffer;
    memory_.put(kBlock, block);
    registers_.ip = kCode;
  }
  void switch_on() { ASSERT_TRUE(lwp_.llwpcb(kBlock)); }
  Outcome<void> run(const Instruction& instruction) {
    return execute(instruction, registers_, memory_, lwp_);
  }
  uint32_t head() { return memory_.get<ControlBlock>(kBlock).head; }
  EventRecord record(unsigned slot) { return memory_.get<EventRecord>(kBuffer + slot * kRecordSize); }

  FakeMemory memory_;
  SoftwareLwp lwp_;
  Registers registers_;
};

constexpr Instruction kInsert{.operation = Operation::kLwpins,
                              .length = 9,
                              .operand_bits = 64,
                              .first = 7,
                              .second = 6,
                              .immediate = 0xAAAA1234};

TEST_F(Emulator, LoadsAndStoresTheControlBlock) {
  registers_.general[3] = kBlock;
  ASSERT_TRUE(run({.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 64, .second = 3}));
  EXPECT_EQ(lwp_.block_address(), kBlock);
  EXPECT_EQ(registers_.ip, kCode + 5);
  registers_.general[9] = ~uint64_t{0};
  ASSERT_TRUE(run({.operation = Operation::kSlwpcb, .length = 5, .operand_bits = 64, .second = 9}));
  EXPECT_EQ(registers_.general[9], kBlock);
  registers_.general[3] = 0;
  ASSERT_TRUE(run({.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 64, .second = 3}));
  ASSERT_TRUE(run({.operation = Operation::kSlwpcb, .length = 5, .operand_bits = 64, .second = 9}));
  EXPECT_EQ(registers_.general[9], 0u);
}

TEST_F(Emulator, FormsOf32BitsTakeAndLeaveZeroExtendedHalves) {
  registers_.general[3] = 0xFFFFFFFF00000000u | kBlock;
  ASSERT_TRUE(run({.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 32, .second = 3}));
  registers_.general[9] = ~uint64_t{0};
  ASSERT_TRUE(run({.operation = Operation::kSlwpcb, .length = 5, .operand_bits = 32, .second = 9}));
  EXPECT_EQ(registers_.general[9], kBlock);
  registers_.general[7] = 0xFFFFFFFF12345678u;
  Instruction insert = kInsert;
  insert.operand_bits = 32;
  ASSERT_TRUE(run(insert));
  EXPECT_EQ(record(0).data2, 0x12345678u);
}

TEST_F(Emulator, AnInsertedEventHoldsTheOperands) {
  switch_on();
  registers_.general[7] = 0xDEADBEEFDEADBEEFu;
  registers_.general[6] = 0x5555555500000042u;
  ASSERT_TRUE(run(kInsert));
  EXPECT_EQ(record(0), make_programmed_record(kCode, 0xDEADBEEFDEADBEEFu, 0x42, 0x1234));
  EXPECT_EQ(head(), kRecordSize);
}

TEST_F(Emulator, AValueSampleHoldsTheOperandsWhenItsCounterRunsOut) {
  switch_on();
  Instruction value = kInsert;
  value.operation = Operation::kLwpval;
  registers_.general[7] = 5;
  registers_.general[6] = 6;
  ASSERT_TRUE(run(value));
  EXPECT_EQ(record(0), make_value_record(kCode, 5, 6, 0x1234));
}

TEST_F(Emulator, InsertingChangesTheCarryFlagAlone) {
  switch_on();
  registers_.flags = 0x246 | kCarryFlag;
  for (unsigned i = 0; i < kSlots - 1; ++i) {
    ASSERT_TRUE(run(kInsert));
    EXPECT_EQ(registers_.flags, 0x246u) << i;
  }
  ASSERT_TRUE(run(kInsert));
  EXPECT_EQ(registers_.flags, 0x246 | kCarryFlag) << "the ring is full";
  EXPECT_EQ(memory_.get<ControlBlock>(kBlock).missed_events, 1u);
  Instruction value = kInsert;
  value.operation = Operation::kLwpval;
  registers_.flags = 0x246;
  ASSERT_TRUE(run(value));
  EXPECT_EQ(registers_.flags, 0x246u) << "value samples tell nothing";
}

TEST_F(Emulator, ReadsItsOperandFromMemory) {
  switch_on();
  memory_.put(kData + 8, uint32_t{0xCAFE});
  Instruction insert = kInsert;
  insert.second = kNoRegister;
  insert.memory = MemoryOperand{.base = 0, .index = 1, .scale = 4, .displacement = -8};
  registers_.general[0] = kData;
  registers_.general[1] = 4;
  ASSERT_TRUE(run(insert));
  EXPECT_EQ(record(0).data1, 0xCAFEu);
}

TEST_F(Emulator, AnOperandThatIsNotThereFaultsAndChangesNothing) {
  switch_on();
  Instruction insert = kInsert;
  insert.second = kNoRegister;
  insert.memory = MemoryOperand{.displacement = 0x1000};
  const Registers before = registers_;
  const auto outcome = run(insert);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error(), (Fault{FaultKind::kPageFault, 0x1000, ""}));
  EXPECT_EQ(registers_.ip, before.ip);
  EXPECT_EQ(registers_.general, before.general);
  EXPECT_EQ(head(), 0u);
  // The page comes, and the instruction is repeated.
  memory_.map(0x1000, 4);
  ASSERT_TRUE(run(insert));
  EXPECT_EQ(head(), kRecordSize);
}

TEST_F(Emulator, AnOperandOverTheEndOfAPageFaultsAtTheNextOne) {
  switch_on();
  Instruction insert = kInsert;
  insert.second = kNoRegister;
  insert.memory = MemoryOperand{.displacement = kData + 4096 - 2};
  const auto outcome = run(insert);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error(), (Fault{FaultKind::kPageFault, kData + 4096, ""}));
}

TEST_F(Emulator, ANonCanonicalOperandIsAGeneralProtectionFault) {
  switch_on();
  Instruction insert = kInsert;
  insert.second = kNoRegister;
  insert.memory = MemoryOperand{.base = 0};
  registers_.general[0] = uint64_t{1} << 47;
  const auto outcome = run(insert);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, FaultKind::kGeneralProtection);
}

TEST_F(Emulator, ABadControlBlockIsAGeneralProtectionFault) {
  ControlBlock block;
  memory_.put(kBlock, block);
  registers_.general[3] = kBlock;
  const auto outcome = run({.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 64, .second = 3});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, FaultKind::kGeneralProtection);
  EXPECT_EQ(registers_.ip, kCode);
}

TEST_F(Emulator, WhileOffNothingIsReadRecordedOrCarried) {
  Instruction insert = kInsert;
  insert.second = kNoRegister;
  insert.memory = MemoryOperand{.displacement = 0x1000};  // not there
  registers_.flags = kCarryFlag;
  ASSERT_TRUE(run(insert));
  EXPECT_EQ(registers_.flags, 0u);
  registers_.flags = kCarryFlag;
  insert.operation = Operation::kLwpval;
  ASSERT_TRUE(run(insert));
  EXPECT_EQ(registers_.flags, kCarryFlag);
  EXPECT_EQ(registers_.ip, kCode + 18);
  EXPECT_EQ(memory_.reads, 0u);
}

TEST(EffectiveAddress, AddsWhatTheOperandNames) {
  Registers r;
  r.general[0] = 0x1000;
  r.general[15] = 0x10;
  r.ip = 0x400000;
  r.fs_base = 0x7F0000000000;
  r.gs_base = 0x100;
  EXPECT_EQ(effective_address({.base = 0, .index = 15, .scale = 8, .displacement = -1}, r, 9), 0x107Fu);
  EXPECT_EQ(effective_address({.ip_relative = true, .displacement = -9}, r, 9), 0x400000u);
  EXPECT_EQ(effective_address({.segment = Segment::kFs, .displacement = -16}, r, 9), 0x7EFFFFFFFFF0u);
  EXPECT_EQ(effective_address({.segment = Segment::kGs, .base = 0}, r, 9), 0x1100u);
}

TEST(EffectiveAddress, WrapsAtTheWidthOfTheSum) {
  Registers r;
  r.general[0] = 0xFFFFFFFFFFFFFFFF;
  r.fs_base = 0x100000000;
  EXPECT_EQ(effective_address({.base = 0, .displacement = 2}, r, 9), 1u);
  EXPECT_EQ(
      effective_address({.segment = Segment::kFs, .address_bits = 32, .base = 0, .displacement = 2}, r, 9),
      0x100000001u)
      << "the base of a segment is added to the sum";
  r.width = CodeWidth::k32;
  r.fs_base = 0xFFFFF000;
  EXPECT_EQ(effective_address({.segment = Segment::kFs, .address_bits = 32, .displacement = 0x2000}, r, 9),
            0x1000u);
  EXPECT_EQ(effective_address({.address_bits = 16, .base = 0, .displacement = 3}, r, 9), 2u);
}

TEST_F(Emulator, FetchesAnInstructionAtTheVeryEndOfMemory) {
  const uint8_t slwpcb[] = {0x8F, 0xE9, 0xF8, 0x12, 0xC8};
  memory_.put(kCode + 4096 - sizeof slwpcb, slwpcb);
  const auto whole = fetch_lwp(memory_, kCode + 4096 - sizeof slwpcb, CodeWidth::k64);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->operation, Operation::kSlwpcb);
  EXPECT_FALSE(fetch_lwp(memory_, kCode + 4096 - 3, CodeWidth::k64)) << "cut off";
  EXPECT_FALSE(fetch_lwp(memory_, 0x123, CodeWidth::k64)) << "no memory";
}

TEST_F(Emulator, FetchesAnInstructionAcrossPages) {
  memory_.map(kCode + 4096, 4096);
  const uint8_t lwpins[] = {0x8F, 0xEA, 0xC0, 0x12, 0xC6, 1, 0, 0, 0};
  for (unsigned on_first_page = 1; on_first_page < sizeof lwpins; ++on_first_page) {
    const uint64_t ip = kCode + 4096 - on_first_page;
    memory_.put(ip, lwpins);
    ASSERT_TRUE(fetch_lwp(memory_, ip, CodeWidth::k64)) << on_first_page;
  }
}

TEST(EmulatedCpuid, ShowsLwpAndLeavesTheRestAlone) {
  const pmu::CpuidRegisters real{1, 2, 4, 8};
  EXPECT_EQ(with_emulated_lwp(0, real), real);
  EXPECT_EQ(with_emulated_lwp(0x80000001, real), (pmu::CpuidRegisters{1, 2, 4 | 1u << 15, 8}));
  EXPECT_EQ(with_emulated_lwp(0x80000000, {0x80000008, 0, 0, 0}).eax, 0x8000001Cu);
  EXPECT_EQ(with_emulated_lwp(0x80000000, {0x80000028, 0, 0, 0}).eax, 0x80000028u);
  const Capabilities seen =
      decode_capabilities(with_emulated_lwp(0x80000001, real).ecx, with_emulated_lwp(0x8000001C, real));
  EXPECT_EQ(seen, emulated_capabilities());
  EXPECT_TRUE(seen.usable.available && seen.usable.value);
  EXPECT_FALSE(seen.usable.instructions || seen.usable.branches || seen.usable.dcache_misses ||
               seen.usable.interrupt);
  EXPECT_EQ(why_not_native(seen), "");
}

}  // namespace
}  // namespace hindsight::lwp
