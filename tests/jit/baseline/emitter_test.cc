// What the emitter encodes by itself is what asmjit makes of the same words, as a third party reads both.
#include "jit/baseline/emitter.h"

#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

namespace hindsight::jit::baseline {
namespace {

using Bytes = std::vector<uint8_t>;
namespace Inst = x86::Inst;

// One instruction a line; a remainder that is none ends it with "?".
std::string read(const Bytes& bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, bytes.data() + at, bytes.size() - at, &instruction, operands)))
      return text + "?";
    char line[256];
    ZydisFormatterFormatInstruction(&formatter, &instruction, operands, instruction.operand_count_visible,
                                    line, sizeof line, ZYDIS_RUNTIME_ADDRESS_NONE, nullptr);
    text += std::string(line) + "\n";
    at += instruction.length;
  }
  return text;
}

class EmitterTest : public ::testing::Test {
 protected:
  EmitterTest() {
    EXPECT_EQ(code_.init(asmjit::Environment::host()), asmjit::kErrorOk);
    code_.attach(&oracle_);
  }

  Bytes placed() {
    auto memory = emitter_.place(*arena_);
    EXPECT_TRUE(memory);
    const auto bytes = memory->writable().first(emitter_.offset());
    Bytes out(bytes.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  template <typename... Operands>
  void compare(asmjit::InstId inst, const Operands&... operands) {
    emitter_.reset();
    emitter_.emit(inst, operands...);
    (void)oracle_.setOffset(0);
    ASSERT_EQ(oracle_.emit(inst, operands...), asmjit::kErrorOk);
    const std::string expected = read(Bytes(oracle_.bufferData(), oracle_.bufferData() + oracle_.offset()));
    ASSERT_NE(expected, "");
    ASSERT_EQ(read(placed()), expected);
    ASSERT_LE(emitter_.offset(), oracle_.offset() + 1) << expected;  // no form much longer than necessary
    ++compared_;
  }

  // Every kind of address: bases and indices that are awkward to encode, and displacements of each size.
  static std::vector<x86::Mem> addresses(uint32_t size) {
    std::vector<x86::Mem> all;
    for (uint32_t base = 0; base < 16; ++base)
      for (const int32_t disp : {0, 8, -128, 127, 128, -129, 0x7fffffff})
        all.push_back(x86::ptr(x86::gpq(base), disp, size));
    for (const uint32_t base : {0u, 4u, 5u, 12u, 13u, 15u})
      for (uint32_t index = 0; index < 16; ++index) {
        if (index == 4) continue;  // rsp is none
        for (uint32_t shift = 0; shift < 4; ++shift)
          for (const int32_t disp : {0, 16, 4096})
            all.push_back(x86::ptr(x86::gpq(base), x86::gpq(index), shift, disp, size));
      }
    return all;
  }
  static x86::Gp gp(uint32_t id, bool wide) { return wide ? x86::Gp(x86::gpq(id)) : x86::Gp(x86::gpd(id)); }

  Emitter emitter_;
  std::unique_ptr<CodeArena> arena_ = std::move(*CodeArena::create());
  asmjit::CodeHolder code_;
  x86::Assembler oracle_;
  size_t compared_ = 0;
};

constexpr asmjit::InstId kTwoOperands[] = {
    Inst::kIdAdd,   Inst::kIdOr,    Inst::kIdAnd,    Inst::kIdSub,   Inst::kIdXor,    Inst::kIdCmp,
    Inst::kIdMov,   Inst::kIdImul,  Inst::kIdBsf,    Inst::kIdBsr,   Inst::kIdPopcnt, Inst::kIdTzcnt,
    Inst::kIdLzcnt, Inst::kIdCmovz, Inst::kIdCmovnz, Inst::kIdCmova, Inst::kIdCmovl,  Inst::kIdCmovp};

TEST_F(EmitterTest, RegistersAreEncodedInEveryPair) {
  for (const bool wide : {false, true})
    for (uint32_t a = 0; a < 16; ++a)
      for (uint32_t b = 0; b < 16; ++b) {
        for (const auto inst : kTwoOperands) compare(inst, gp(a, wide), gp(b, wide));
        compare(Inst::kIdTest, gp(a, wide), gp(b, wide));
        for (const auto inst : {Inst::kIdMovzx, Inst::kIdMovsx}) {
          compare(inst, gp(a, wide), x86::Gp(x86::gpb(b)));
          compare(inst, gp(a, wide), x86::Gp(x86::gpw(b)));
        }
        if (wide) compare(Inst::kIdMovsxd, gp(a, true), gp(b, false));
        for (const auto inst : {Inst::kIdShlx, Inst::kIdShrx, Inst::kIdSarx})
          compare(inst, gp(a, wide), gp(b, wide), gp((a * 7 + b) % 16, wide));
        for (const int64_t n : {int64_t{1}, int64_t{-128}, int64_t{127}, int64_t{128}, int64_t{INT32_MAX}})
          compare(Inst::kIdImul, gp(a, wide), gp(b, wide), asmjit::imm(n));
      }
  EXPECT_GT(compared_, 10'000u);
}

TEST_F(EmitterTest, ShiftsAndImmediatesAreEncodedForEveryRegister) {
  const int64_t words[] = {0, 1, -1, 127, -128, 128, -129, 255, 65535, INT32_MAX, INT32_MIN};
  for (const bool wide : {false, true})
    for (uint32_t a = 0; a < 16; ++a) {
      for (const auto inst : {Inst::kIdShl, Inst::kIdShr, Inst::kIdSar, Inst::kIdRol, Inst::kIdRor}) {
        for (const uint32_t n : {1u, 2u, 7u, 31u}) compare(inst, gp(a, wide), asmjit::imm(n));
        compare(inst, gp(a, wide), x86::Gp(x86::cl));
      }
      for (const int64_t n : words) {
        for (const auto inst : {Inst::kIdAdd, Inst::kIdOr, Inst::kIdAnd, Inst::kIdSub, Inst::kIdXor,
                                Inst::kIdCmp, Inst::kIdTest})
          compare(inst, gp(a, wide), asmjit::imm(n));
        if (!wide || n < 0) compare(Inst::kIdMov, gp(a, wide), asmjit::imm(n));
      }
      for (const auto inst : {Inst::kIdNot, Inst::kIdNeg, Inst::kIdDiv, Inst::kIdIdiv, Inst::kIdInc})
        compare(inst, gp(a, wide));
      compare(Inst::kIdMov, gp(a, true), asmjit::imm(0x123456789abcdef0));
      compare(Inst::kIdMov, gp(a, true), asmjit::imm(int64_t{1} << 40));
      for (const auto inst : {Inst::kIdSetz, Inst::kIdSetp, Inst::kIdSetnp, Inst::kIdSetb, Inst::kIdSetg})
        compare(inst, x86::Gp(x86::gpb(a)));
      for (const auto inst : {Inst::kIdPush, Inst::kIdPop, Inst::kIdCall, Inst::kIdJmp})
        compare(inst, gp(a, true));
    }
  for (const auto inst : {Inst::kIdRet, Inst::kIdUd2, Inst::kIdCdq, Inst::kIdCqo}) compare(inst);
}

// A constant below 2^32 needs no register of 64 bits to be written.
TEST_F(EmitterTest, SmallConstantsAreWrittenAsWords) {
  emitter_.mov(x86::r9, asmjit::imm(0xfedcba98));
  EXPECT_EQ(read(placed()), "mov r9d, 0xFEDCBA98\n");
  emitter_.reset();
  emitter_.mov(x86::rax, asmjit::imm(5));
  EXPECT_EQ(read(placed()), "mov eax, 0x05\n");
}

TEST_F(EmitterTest, MemoryIsEncodedAtEveryAddress) {
  for (const uint32_t id : {0u, 3u, 5u, 6u, 9u, 15u}) {
    for (const bool wide : {false, true})
      for (const x86::Mem& mem : addresses(wide ? 8 : 4)) {
        for (const auto inst : kTwoOperands) compare(inst, gp(id, wide), mem);
        compare(Inst::kIdLea, gp(id, wide), mem);
        for (const auto inst : {Inst::kIdMov, Inst::kIdAdd, Inst::kIdCmp, Inst::kIdTest})
          compare(inst, mem, gp(id, wide));
      }
    for (const x86::Mem& mem : addresses(1)) {
      compare(Inst::kIdMov, mem, x86::Gp(x86::gpb(id)));
      compare(Inst::kIdMovzx, gp(id, false), mem);
      compare(Inst::kIdMovsx, gp(id, true), mem);
    }
    for (const x86::Mem& mem : addresses(2)) {
      compare(Inst::kIdMov, mem, x86::Gp(x86::gpw(id)));
      compare(Inst::kIdMovzx, gp(id, false), mem);
      compare(Inst::kIdMovsx, gp(id, false), mem);
    }
    for (const x86::Mem& mem : addresses(4)) compare(Inst::kIdMovsxd, gp(id, true), mem);
  }
  for (const uint32_t size : {1u, 2u, 4u, 8u})
    for (const x86::Mem& mem : addresses(size)) {
      compare(Inst::kIdMov, mem, asmjit::imm(size == 1 ? -3 : 1000));
      if (size >= 4) {
        for (const int n : {5, -1000}) {
          compare(Inst::kIdCmp, mem, asmjit::imm(n));
          compare(Inst::kIdSub, mem, asmjit::imm(n));
        }
      }
    }
  for (const x86::Mem& mem : addresses(8)) {
    compare(Inst::kIdCall, mem);
    compare(Inst::kIdJmp, mem);
  }
}

TEST_F(EmitterTest, FloatingPointIsEncodedInEveryPair) {
  constexpr asmjit::InstId kPairs[] = {Inst::kIdMovss,    Inst::kIdMovsd,   Inst::kIdMovups, Inst::kIdMovaps,
                                       Inst::kIdUcomiss,  Inst::kIdUcomisd, Inst::kIdSqrtss, Inst::kIdSqrtsd,
                                       Inst::kIdAndps,    Inst::kIdAndnps,  Inst::kIdOrps,   Inst::kIdXorps,
                                       Inst::kIdAddss,    Inst::kIdAddsd,   Inst::kIdMulss,  Inst::kIdMulsd,
                                       Inst::kIdSubss,    Inst::kIdSubsd,   Inst::kIdDivss,  Inst::kIdDivsd,
                                       Inst::kIdCvtss2sd, Inst::kIdCvtsd2ss};
  const auto size_of = [](asmjit::InstId inst) -> uint32_t {
    switch (inst) {
      case Inst::kIdMovups:
      case Inst::kIdMovaps:
      case Inst::kIdAndps:
      case Inst::kIdAndnps:
      case Inst::kIdOrps:
      case Inst::kIdXorps:
        return 16;
      case Inst::kIdMovss:
      case Inst::kIdUcomiss:
      case Inst::kIdSqrtss:
      case Inst::kIdAddss:
      case Inst::kIdMulss:
      case Inst::kIdSubss:
      case Inst::kIdDivss:
      case Inst::kIdCvtss2sd:
        return 4;
      default:
        return 8;
    }
  };
  for (uint32_t a = 0; a < 16; ++a) {
    for (uint32_t b = 0; b < 16; ++b) {
      for (const auto inst : kPairs) compare(inst, x86::xmm(a), x86::xmm(b));
      for (const bool wide : {false, true}) {
        for (const auto inst : {Inst::kIdCvtsi2ss, Inst::kIdCvtsi2sd})
          compare(inst, x86::xmm(a), gp(b, wide));
        for (const auto inst : {Inst::kIdCvttss2si, Inst::kIdCvttsd2si})
          compare(inst, gp(a, wide), x86::xmm(b));
        compare(wide ? Inst::kIdMovq : Inst::kIdMovd, x86::xmm(a), gp(b, wide));
        compare(wide ? Inst::kIdMovq : Inst::kIdMovd, gp(a, wide), x86::xmm(b));
      }
    }
    for (const auto inst : kPairs)
      for (const x86::Mem& mem : addresses(size_of(inst))) compare(inst, x86::xmm(a), mem);
    for (const auto inst : {Inst::kIdMovss, Inst::kIdMovsd, Inst::kIdMovups, Inst::kIdMovaps})
      for (const x86::Mem& mem : addresses(size_of(inst))) compare(inst, mem, x86::xmm(a));
  }
}

// Operands whose kind only the run knows go the same way.
TEST_F(EmitterTest, OperandsChosenAtRunTimeAreEncodedLikeOthers) {
  const asmjit::Operand reg = gp(9, true), mem = x86::qword_ptr(x86::rbp, -16), imm = asmjit::imm(7),
                        vector = x86::xmm12;
  compare(Inst::kIdAdd, reg, mem);
  compare(Inst::kIdAdd, reg, imm);
  compare(Inst::kIdMov, mem, reg);
  compare(Inst::kIdMov, mem, imm);
  compare(Inst::kIdMovsd, vector, mem);
  compare(Inst::kIdMovsd, mem, vector);
  compare(Inst::kIdCvtsi2sd, vector, reg);
  compare(Inst::kIdPshufd, vector, vector, imm);  // one that goes through asmjit
  compare(Inst::kIdXchg, reg, mem);
}

TEST_F(EmitterTest, JumpsReachTheirLabelsFromBothSides) {
  const Label back = emitter_.new_label();
  const Label ahead = emitter_.new_label();
  emitter_.bind(back);
  emitter_.jmp(ahead);
  emitter_.jz(ahead);
  emitter_.jmp(back);
  emitter_.jnz(back);
  emitter_.bind(ahead);
  EXPECT_EQ(emitter_.offset_of(ahead), 15u);
  // Zydis prints distances from the instruction.
  EXPECT_EQ(read(placed()), "jmp +0x0F\njz +0x0A\njmp -0x0B\njnz -0x0D\n");
}

TEST_F(EmitterTest, FarJumpsBackAreLong) {
  const Label back = emitter_.new_label();
  emitter_.bind(back);
  emitter_.embed_zeros(126);
  emitter_.jmp(back);
  EXPECT_EQ(emitter_.offset(), 128u);
  emitter_.reset();
  const Label further = emitter_.new_label();
  emitter_.bind(further);
  emitter_.embed_zeros(127);
  emitter_.jmp(further);
  EXPECT_EQ(emitter_.offset(), 132u);
}

// Also in front of an immediate, and in what goes through asmjit.
TEST_F(EmitterTest, DataIsAddressedRelativeToTheEndOfTheInstruction) {
  const Label data = emitter_.new_label();
  emitter_.movsd(x86::xmm1, Emitter::at(data, 8));
  emitter_.cmp(Emitter::at(data, 8), 0);
  emitter_.pshufd(x86::xmm2, Emitter::at(data, 16), 3);
  emitter_.paddd(x86::xmm9, Emitter::at(data, 16));
  const size_t code = emitter_.offset();
  emitter_.align_data(16);
  emitter_.bind(data);
  emitter_.embed64(0x1122334455667788);
  const uint32_t at = emitter_.offset_of(data);
  Bytes bytes = placed();
  bytes.resize(code);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  int found = 0;
  for (size_t i = 0; i < code;) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ASSERT_TRUE(
        ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data() + i, code - i, &instruction, operands)));
    for (uint32_t k = 0; k < instruction.operand_count_visible; ++k) {
      ZyanU64 address = 0;
      if (operands[k].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
      ASSERT_TRUE(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction, &operands[k], i, &address)));
      EXPECT_EQ(address, at);
      ++found;
    }
    i += instruction.length;
  }
  EXPECT_EQ(found, 4);
}

TEST_F(EmitterTest, PaddingIsMadeOfInstructions) {
  for (size_t before = 1; before < 64; ++before) {
    emitter_.reset();
    for (size_t i = 0; i < before; ++i) emitter_.ret();
    emitter_.align_code(64);
    EXPECT_EQ(emitter_.offset(), 64u);
    EXPECT_EQ(read(placed()).find('?'), std::string::npos);
  }
}

int calls = 0;
void count_call() {
  ++calls;
}

TEST_F(EmitterTest, CallsOfTheProcessArriveWhereverTheCodeIsPlaced) {
  emitter_.push(x86::rbp);
  emitter_.call_near(reinterpret_cast<const void*>(count_call));
  emitter_.call_near(reinterpret_cast<const void*>(count_call));
  emitter_.pop(x86::rbp);
  emitter_.ret();
  auto first = emitter_.place(*arena_);
  auto second = emitter_.place(*arena_);
  ASSERT_TRUE(first && second);
  calls = 0;
  for (const auto* memory : {&*first, &*second})
    reinterpret_cast<void (*)()>(const_cast<std::byte*>(memory->executable()))();
  EXPECT_EQ(calls, 4);
}

TEST_F(EmitterTest, CodeLargerThanTheBufferIsKeptWhole) {
  const Label end = emitter_.new_label();
  constexpr int kMany = 100'000;
  for (int i = 0; i < kMany; ++i) emitter_.jmp(end);
  emitter_.bind(end);
  emitter_.ret();
  const Bytes bytes = placed();
  ASSERT_EQ(bytes.size(), 5u * kMany + 1);
  for (int i = 0; i < kMany; ++i) {
    int32_t distance;
    std::memcpy(&distance, &bytes[5 * static_cast<size_t>(i) + 1], 4);
    ASSERT_EQ(distance, 5 * (kMany - 1 - i));
  }
}

}  // namespace
}  // namespace hindsight::jit::baseline
