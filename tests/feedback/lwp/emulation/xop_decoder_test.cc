#include "feedback/lwp/emulation/xop_decoder.h"

#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace hindsight::lwp {
namespace {

constexpr RegisterNumber kAx = 0, kCx = 1, kBx = 3, kSp = 4, kBp = 5, kSi = 6, kDi = 7, kR8 = 8, kR12 = 12,
                         kR13 = 13, kR15 = 15;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

std::optional<Instruction> decode(std::initializer_list<int> code, CodeWidth width = CodeWidth::k64) {
  return decode_lwp(bytes(code), width);
}

// LWPVAL $0x01020304 with this modrm and what follows it, without extensions; vvvv is ecx.
std::optional<MemoryOperand> memory_of(std::initializer_list<int> prefixes,
                                       std::initializer_list<int> operand, CodeWidth width = CodeWidth::k64) {
  std::vector<std::byte> code = bytes(prefixes);
  for (const int value : {0x8F, 0xEA, 0x70, 0x12}) code.push_back(static_cast<std::byte>(value));
  for (const int value : operand) code.push_back(static_cast<std::byte>(value));
  for (const int value : {4, 3, 2, 1}) code.push_back(static_cast<std::byte>(value));
  const auto instruction = decode_lwp(code, width);
  if (!instruction) return std::nullopt;
  EXPECT_EQ(instruction->operation, Operation::kLwpval);
  EXPECT_EQ(instruction->length, code.size());
  EXPECT_EQ(instruction->first, kCx);
  EXPECT_EQ(instruction->second, kNoRegister);
  EXPECT_EQ(instruction->immediate, 0x01020304u);
  return instruction->memory;
}

TEST(XopDecoder, ReadsControlBlockInstructions) {
  EXPECT_EQ(decode({0x8F, 0xE9, 0xF8, 0x12, 0xC7}),  // llwpcb %rdi
            (Instruction{.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 64, .second = kDi}));
  EXPECT_EQ(decode({0x8F, 0xE9, 0xF8, 0x12, 0xC8}),  // slwpcb %rax
            (Instruction{.operation = Operation::kSlwpcb, .length = 5, .operand_bits = 64, .second = kAx}));
  EXPECT_EQ(decode({0x8F, 0xE9, 0x78, 0x12, 0xC3}),  // llwpcb %ebx
            (Instruction{.operation = Operation::kLlwpcb, .length = 5, .operand_bits = 32, .second = kBx}));
  EXPECT_EQ(decode({0x8F, 0xC9, 0xF8, 0x12, 0xCF}),  // slwpcb %r15
            (Instruction{.operation = Operation::kSlwpcb, .length = 5, .operand_bits = 64, .second = kR15}));
}

TEST(XopDecoder, ReadsEventInstructionsWithRegisters) {
  EXPECT_EQ(decode({0x8F, 0xEA, 0x40, 0x12, 0xCE, 0x0D, 0xD0, 0x0A, 0xCA}),  // lwpval $0xca0ad00d, %esi, %edi
            (Instruction{.operation = Operation::kLwpval,
                         .length = 9,
                         .operand_bits = 32,
                         .first = kDi,
                         .second = kSi,
                         .immediate = 0xCA0AD00D}));
  EXPECT_EQ(decode({0x8F, 0xEA, 0xC0, 0x12, 0xC6, 1, 0, 0, 0}),  // lwpins $1, %esi, %rdi
            (Instruction{.operation = Operation::kLwpins,
                         .length = 9,
                         .operand_bits = 64,
                         .first = kDi,
                         .second = kSi,
                         .immediate = 1}));
  EXPECT_EQ(decode({0x8F, 0xCA, 0x80, 0x12, 0xC4, 1, 0, 0, 0}),  // lwpins $1, %r12d, %r15
            (Instruction{.operation = Operation::kLwpins,
                         .length = 9,
                         .operand_bits = 64,
                         .first = kR15,
                         .second = kR12,
                         .immediate = 1}));
}

TEST(XopDecoder, ReadsEveryFormOfMemoryOperand) {
  EXPECT_EQ(memory_of({}, {0x0B}), (MemoryOperand{.base = kBx}));
  EXPECT_EQ(memory_of({}, {0x4B, 0x80}), (MemoryOperand{.base = kBx, .displacement = -128}));
  EXPECT_EQ(memory_of({}, {0x8B, 0, 0, 0, 0x80}), (MemoryOperand{.base = kBx, .displacement = INT32_MIN}));
  EXPECT_EQ(memory_of({}, {0x0D, 0x10, 0, 0, 0}), (MemoryOperand{.ip_relative = true, .displacement = 16}));
  // SIB: 8(%rbp,%rcx,4); (%rsp); no base; neither base nor index.
  EXPECT_EQ(memory_of({}, {0x4C, 0x8D, 8}),
            (MemoryOperand{.base = kBp, .index = kCx, .scale = 4, .displacement = 8}));
  EXPECT_EQ(memory_of({}, {0x0C, 0x24}), (MemoryOperand{.base = kSp}));
  EXPECT_EQ(memory_of({}, {0x0C, 0xCD, 1, 0, 0, 0}),
            (MemoryOperand{.index = kCx, .scale = 8, .displacement = 1}));
  EXPECT_EQ(memory_of({}, {0x0C, 0x25, 1, 0, 0, 0}), (MemoryOperand{.displacement = 1}));
}

TEST(XopDecoder, ReadsExtendedRegistersInMemoryOperands) {
  // lwpval $0, -8(%r13,%r12,2), %ecx: r12 is an index where rsp is none, r13 a base that needs a
  // displacement.
  const auto both = decode({0x8F, 0x8A, 0x70, 0x12, 0x4C, 0x65, 0xF8, 0, 0, 0, 0});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->memory, (MemoryOperand{.base = kR13, .index = kR12, .scale = 2, .displacement = -8}));
  // (%r12) needs a SIB byte as (%rsp) does.
  const auto base = decode({0x8F, 0xCA, 0x70, 0x12, 0x0C, 0x24, 0, 0, 0, 0});
  ASSERT_TRUE(base);
  EXPECT_EQ(base->memory, (MemoryOperand{.base = kR12}));
  // %rip does not become %r13.
  const auto relative = decode({0x8F, 0xCA, 0x70, 0x12, 0x0D, 1, 0, 0, 0, 0, 0, 0, 0});
  ASSERT_TRUE(relative);
  EXPECT_EQ(relative->memory, (MemoryOperand{.ip_relative = true, .displacement = 1}));
  EXPECT_EQ(decode({0x8F, 0xCA, 0x38, 0x12, 0x08, 0, 0, 0, 0})->first, kR8);
}

TEST(XopDecoder, TakesSegmentsAndAddressSizeFromPrefixes) {
  EXPECT_EQ(memory_of({0x64}, {0x0B}), (MemoryOperand{.segment = Segment::kFs, .base = kBx}));
  EXPECT_EQ(memory_of({0x64, 0x65}, {0x0B}), (MemoryOperand{.segment = Segment::kGs, .base = kBx}));
  EXPECT_EQ(memory_of({0x64, 0x2E}, {0x0B}), (MemoryOperand{.segment = Segment::kFs, .base = kBx}))
      << "64-bit code ignores a CS prefix";
  EXPECT_EQ(memory_of({0x64, 0x2E}, {0x0B}, CodeWidth::k32),
            (MemoryOperand{.address_bits = 32, .base = kBx}));
  EXPECT_EQ(memory_of({0x67}, {0x0D, 1, 0, 0, 0}),
            (MemoryOperand{.address_bits = 32, .ip_relative = true, .displacement = 1}));
}

TEST(XopDecoder, ReadsTheAddressingOf32And16Bits) {
  EXPECT_EQ(memory_of({}, {0x0D, 1, 0, 0, 0}, CodeWidth::k32),
            (MemoryOperand{.address_bits = 32, .displacement = 1}))
      << "not relative in 32-bit code";
  const MemoryOperand forms[] = {{.base = kBx, .index = kSi},
                                 {.base = kBx, .index = kDi},
                                 {.base = kBp, .index = kSi},
                                 {.base = kBp, .index = kDi},
                                 {.base = kSi},
                                 {.base = kDi},
                                 {.base = kBp},
                                 {.base = kBx}};
  for (int rm = 0; rm < 8; ++rm) {
    MemoryOperand expected = forms[rm];
    expected.address_bits = 16;
    expected.displacement = -2;
    EXPECT_EQ(memory_of({0x67}, {0x48 | rm, 0xFE}, CodeWidth::k32), expected) << rm;
    EXPECT_EQ(memory_of({0x67}, {0x88 | rm, 0xFE, 0xFF}, CodeWidth::k32), expected) << rm;
  }
  EXPECT_EQ(memory_of({0x67}, {0x0E, 0x34, 0x12}, CodeWidth::k32),
            (MemoryOperand{.address_bits = 16, .displacement = 0x1234}));
}

TEST(XopDecoder, In32BitCodeNothingNamesMoreThanEightRegisters) {
  const auto instruction = decode({0x8F, 0x8A, 0x80, 0x12, 0xC6, 0, 0, 0, 0}, CodeWidth::k32);
  ASSERT_TRUE(instruction);
  EXPECT_EQ(instruction->operand_bits, 32);
  EXPECT_EQ(instruction->first, kDi);
  EXPECT_EQ(instruction->second, kSi);
}

TEST(XopDecoder, RefusesReservedForms) {
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xFC, 0x12, 0xC7})) << "L";
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xF9, 0x12, 0xC7})) << "pp";
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xF0, 0x12, 0xC7})) << "vvvv of llwpcb";
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xF8, 0x12, 0x07})) << "llwpcb of memory";
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xF8, 0x12, 0xD7})) << "/2";
  EXPECT_FALSE(decode({0x8F, 0xEA, 0xF8, 0x12, 0xD7, 0, 0, 0, 0})) << "/2";
  EXPECT_FALSE(decode({0x8F, 0xE8, 0xF8, 0x12, 0xC7})) << "map 8";
  EXPECT_FALSE(decode({0x8F, 0xE9, 0xF8, 0x13, 0xC7})) << "another opcode";
  EXPECT_FALSE(decode({0x8F, 0xC0})) << "pop %rax";
  for (const int prefix : {0x66, 0xF2, 0xF3, 0xF0, 0x48}) {
    EXPECT_FALSE(decode({prefix, 0x8F, 0xE9, 0xF8, 0x12, 0xC7})) << prefix;
  }
}

TEST(XopDecoder, IgnoresARexPrefixThatIsNotTheLast) {
  EXPECT_EQ(memory_of({0x48, 0x64}, {0x0B}), (MemoryOperand{.segment = Segment::kFs, .base = kBx}));
  EXPECT_FALSE(memory_of({0x64, 0x48}, {0x0B}));
  EXPECT_FALSE(memory_of({0x48, 0x64}, {0x0B}, CodeWidth::k32)) << "an instruction of its own in 32-bit code";
}

TEST(XopDecoder, RefusesWhatIsCutOff) {
  const auto whole = bytes({0x64, 0x8F, 0x8A, 0x70, 0x12, 0x8C, 0x65, 1, 2, 3, 4, 5, 6, 7, 8});
  for (const CodeWidth width : {CodeWidth::k32, CodeWidth::k64}) {
    EXPECT_TRUE(decode_lwp(whole, width));
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(decode_lwp(std::span(whole).first(length), width)) << length;
    }
  }
}

TEST(XopDecoder, RefusesMoreThanFifteenBytes) {
  // 6 + 4 + 5 bytes are allowed, one prefix more is not.
  auto code = bytes({0x64, 0x64, 0x64, 0x64, 0x64, 0x64, 0x8F, 0xEA, 0x70, 0x12, 0x0B, 0, 0, 0, 0});
  EXPECT_TRUE(decode_lwp(code, CodeWidth::k64));
  code.insert(code.begin(), std::byte{0x64});
  EXPECT_FALSE(decode_lwp(code, CodeWidth::k64));
}

// ---- against an independent decoder

RegisterNumber number_of(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_NONE ? kNoRegister : static_cast<RegisterNumber>(ZydisRegisterGetId(reg));
}

std::optional<Operation> operation_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_LLWPCB:
      return Operation::kLlwpcb;
    case ZYDIS_MNEMONIC_SLWPCB:
      return Operation::kSlwpcb;
    case ZYDIS_MNEMONIC_LWPINS:
      return Operation::kLwpins;
    case ZYDIS_MNEMONIC_LWPVAL:
      return Operation::kLwpval;
    default:
      return std::nullopt;
  }
}

MemoryOperand memory_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand) {
  MemoryOperand out;
  out.address_bits = instruction.address_width;
  if (operand.mem.segment == ZYDIS_REGISTER_FS) out.segment = Segment::kFs;
  if (operand.mem.segment == ZYDIS_REGISTER_GS) out.segment = Segment::kGs;
  out.ip_relative = operand.mem.base == ZYDIS_REGISTER_RIP || operand.mem.base == ZYDIS_REGISTER_EIP;
  if (!out.ip_relative) out.base = number_of(operand.mem.base);
  out.index = number_of(operand.mem.index);
  if (out.index != kNoRegister && operand.mem.scale != 0) out.scale = operand.mem.scale;
  if (operand.mem.disp.has_displacement) out.displacement = static_cast<int32_t>(operand.mem.disp.value);
  // Zydis 4.0 takes the displacement of a SIB byte without base as it should. But with address size and B
  // prefixes it calls the base r13d all the same. Manuals: mod 00 with SIB.base 101 has none, whatever
  // extends it.
  if (out.address_bits == 32 && out.base == kR13 && instruction.raw.modrm.mod == 0 &&
      (instruction.raw.sib.base & 7) == kBp && instruction.raw.disp.size == 32) {
    out.base = kNoRegister;
    out.displacement = static_cast<int32_t>(instruction.raw.disp.value);
  }
  return out;
}

std::optional<Instruction> oracle(std::span<const std::byte> code, CodeWidth width) {
  ZydisDecoder decoder;
  if (width == CodeWidth::k64) {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  } else {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
  }
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands))) {
    return std::nullopt;
  }
  const auto operation = operation_of(instruction.mnemonic);
  if (!operation) return std::nullopt;
  Instruction out;
  out.operation = *operation;
  out.length = instruction.length;
  out.operand_bits = static_cast<uint8_t>(operands[0].size);
  if (*operation == Operation::kLlwpcb || *operation == Operation::kSlwpcb) {
    out.second = number_of(operands[0].reg.value);
    return out;
  }
  out.first = number_of(operands[0].reg.value);
  if (operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
    out.second = number_of(operands[1].reg.value);
  } else {
    out.memory = memory_of(instruction, operands[1]);
  }
  out.immediate = static_cast<uint32_t>(operands[2].imm.value.u);
  return out;
}

std::string hex(std::span<const std::byte> code) {
  std::string out;
  for (const std::byte byte : code) {
    char text[4];
    std::snprintf(text, sizeof text, "%02x ", static_cast<unsigned>(byte));
    out += text;
  }
  return out;
}

std::string words(const std::optional<Instruction>& i) {
  if (!i) return "none";
  std::string out = std::string(to_string(i->operation)) + " length " + std::to_string(i->length) + " bits " +
                    std::to_string(i->operand_bits) + " first " + std::to_string(i->first) + " second " +
                    std::to_string(i->second) + " immediate " + std::to_string(i->immediate);
  if (i->memory) {
    out += " segment " + std::to_string(static_cast<int>(i->memory->segment)) + " address bits " +
           std::to_string(i->memory->address_bits) + " base " + std::to_string(i->memory->base) + " index " +
           std::to_string(i->memory->index) + " scale " + std::to_string(i->memory->scale) + " ip " +
           std::to_string(i->memory->ip_relative) + " displacement " +
           std::to_string(i->memory->displacement);
  }
  return out;
}

// Random bytes that are LWP instructions or nearly so.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::vector<std::byte> next() {
    static constexpr int kPrefixes[] = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65,
                                        0x67, 0x66, 0xF0, 0xF2, 0xF3, 0x48};
    std::vector<std::byte> code;
    const auto put = [&](unsigned value) { code.push_back(static_cast<std::byte>(value)); };
    for (unsigned n = below(4) == 0 ? below(8) : below(2); n > 0; --n) {
      put(static_cast<unsigned>(kPrefixes[below(below(8) == 0 ? 12 : 7)]));
    }
    put(below(50) == 0 ? below(256) : 0x8F);
    const unsigned map = below(20) == 0 ? below(32) : 9 + below(2);
    put(below(8) << 5 | map);
    // L and pp are mostly 0; vvvv of map 9 is mostly 1111.
    unsigned p2 = below(2) << 7 | below(16) << 3 | (below(10) == 0 ? below(8) : 0);
    if (map == 9 && below(8) != 0) p2 |= 0x78;
    put(p2);
    put(below(30) == 0 ? below(256) : 0x12);
    unsigned modrm = below(256);
    if (below(8) != 0) modrm &= ~0x30u;            // /0 or /1
    if (map == 9 && below(8) != 0) modrm |= 0xC0;  // a register
    put(modrm);
    for (unsigned n = 0; n < 10; ++n) put(below(256));
    if (below(8) == 0) code.resize(below(static_cast<unsigned>(code.size()) + 1));
    return code;
  }

 private:
  unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }
  std::mt19937 random_;
};

class XopDecoderOracle : public testing::TestWithParam<CodeWidth> {};

TEST_P(XopDecoderOracle, AgreesOnNearlyValidBytes) {
  Generator generator(1);
  size_t valid = 0, with_memory = 0, wrong = 0;
  for (int i = 0; i < 300'000 && wrong < 10; ++i) {
    const auto code = generator.next();
    const auto ours = decode_lwp(code, GetParam());
    const auto theirs = oracle(code, GetParam());
    valid += ours.has_value();
    with_memory += ours && ours->memory;
    if (ours != theirs) {
      ++wrong;
      ADD_FAILURE() << hex(code) << "\n  ours:   " << words(ours) << "\n  theirs: " << words(theirs);
    }
  }
  EXPECT_GT(valid, 100'000u) << "the generator hardly makes any instruction";
  EXPECT_GT(with_memory, 30'000u);
}

TEST_P(XopDecoderOracle, AgreesOnRandomBytes) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> byte(0, 255);
  size_t wrong = 0;
  for (int i = 0; i < 200'000 && wrong < 10; ++i) {
    std::vector<std::byte> code(static_cast<size_t>(byte(random)) % 17);
    for (std::byte& b : code) b = static_cast<std::byte>(byte(random));
    if (decode_lwp(code, GetParam()) != oracle(code, GetParam())) {
      ++wrong;
      ADD_FAILURE() << hex(code);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, XopDecoderOracle, testing::Values(CodeWidth::k32, CodeWidth::k64),
                         [](const auto& info) {
                           return info.param == CodeWidth::k64 ? "In64BitCode" : "In32BitCode";
                         });

}  // namespace
}  // namespace hindsight::lwp
