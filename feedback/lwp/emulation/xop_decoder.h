// Decodes the four LWP instructions from machine code, every form that a processor with LWP accepts:
//
//     [26 2E 36 3E 64 65 67]*  8F  R'X'B'.map  W.vvvv'.L.pp  12  modrm [sib] [disp] [imm32]
//
//     map 09  /0  LLWPCB r32/64                 /1  SLWPCB r32/64         mod 11, vvvv' 1111
//     map 0A  /0  LWPINS r32/64, r/m32, imm32   /1  LWPVAL, the same      vvvv: first operand
//
// Pure: bytes in, a value out. Async-signal-safe, allocates nothing, reads nothing but the span. Whoever is
// not exactly one of these instructions, other XOP instructions and reserved forms included, is none: a
// processor raises #UD for what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hindsight::lwp {

// The width of the code segment; 16-bit code is not decoded.
enum class CodeWidth : uint8_t { k32, k64 };

enum class Operation : uint8_t { kLlwpcb, kSlwpcb, kLwpins, kLwpval };
inline constexpr unsigned kOperations = 4;
const char* to_string(Operation operation);  // "llwpcb", ...

// Whose base is added to an address. The others have base 0: always in 64-bit code, and in 32-bit code on
// every system with a flat memory.
enum class Segment : uint8_t { kFlat, kFs, kGs };

// Number of a general register in encoding order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
using RegisterNumber = uint8_t;
inline constexpr RegisterNumber kNoRegister = 0xFF;

// segment base + ((base + index * scale + displacement [+ address of the next instruction]) mod 2^width)
struct MemoryOperand {
  Segment segment = Segment::kFlat;
  uint8_t address_bits = 64;  // width of the sum: 64, 32 or 16
  RegisterNumber base = kNoRegister;
  RegisterNumber index = kNoRegister;
  uint8_t scale = 1;
  bool ip_relative = false;
  int32_t displacement = 0;
  friend bool operator==(const MemoryOperand&, const MemoryOperand&) = default;
};

struct Instruction {
  Operation operation = Operation::kLlwpcb;
  uint8_t length = 0;         // bytes, prefixes included
  uint8_t operand_bits = 32;  // of LLWPCB's and SLWPCB's register, of the others' first operand: 32 or 64
  RegisterNumber first = kNoRegister;     // LWPINS, LWPVAL: vvvv, the record's Data2
  RegisterNumber second = kNoRegister;    // the register in r/m; none where `memory` is
  std::optional<MemoryOperand> memory{};  // LWPINS, LWPVAL: the r/m32 in memory
  uint32_t immediate = 0;                 // LWPINS, LWPVAL: its low half goes into the record's Flags
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

inline constexpr size_t kMaxInstructionBytes = 15;

// The instruction at the beginning of `code`, of which at most kMaxInstructionBytes are looked at. Empty if
// it is none of the four, is longer than processors allow, or is cut off by the end of `code`.
std::optional<Instruction> decode_lwp(std::span<const std::byte> code, CodeWidth width);

}  // namespace hindsight::lwp
