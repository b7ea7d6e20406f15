// An interpreter for a small stack machine that runs a generated program. It has one indirect jump an
// instruction, and the conditional jumps of the interpreted program on top.
//
// Arguments: millions of interpreted instructions.
#include "../../common/sample.h"

typedef enum {
  kPush,
  kDup,
  kSwap,
  kOver,
  kDrop,
  kAdd,
  kSub,
  kMul,
  kXor,
  kShift,
  kLoad,
  kStore,
  kLess,
  kSkipIfZero,
  kLoop,
  kOpcodes
} Opcode;

typedef struct {
  uint16_t opcode;
  uint16_t operand;
} Instruction;

enum { kProgramLength = 4096, kStackSize = 64, kCells = 1024 };

static uint32_t stack[kStackSize];
static uint32_t cells[kCells];

// The stack wraps around, so that every generated program is a valid one.
#define AT(depth) stack[(top - (depth)) % kStackSize]

// Runs `budget` instructions from the start; the stack keeps what the last call left.
KERNEL static uint32_t interpret(const Instruction* program, uint32_t budget) {
  uint32_t pc = 0, top = 0;
  for (; budget != 0; --budget) {
    const Instruction now = program[pc++];
    switch ((Opcode)now.opcode) {
      case kPush:
        ++top;
        AT(0) = now.operand;
        break;
      case kDup:
        ++top;
        AT(0) = AT(1);
        break;
      case kSwap: {
        const uint32_t swap = AT(0);
        AT(0) = AT(1);
        AT(1) = swap;
        break;
      }
      case kOver:
        ++top;
        AT(0) = AT(2);
        break;
      case kDrop:
        --top;
        break;
      case kAdd:
        AT(1) += AT(0);
        --top;
        break;
      case kSub:
        AT(1) -= AT(0);
        --top;
        break;
      case kMul:
        AT(1) *= AT(0) | 1;
        --top;
        break;
      case kXor:
        AT(1) ^= AT(0);
        --top;
        break;
      case kShift:
        AT(0) = (AT(0) >> (now.operand & 15)) ^ (AT(0) << 3);
        break;
      case kLoad:
        ++top;
        AT(0) = cells[now.operand % kCells];
        break;
      case kStore:
        cells[now.operand % kCells] += AT(0);
        --top;
        break;
      case kLess:
        AT(1) = AT(1) < AT(0);
        --top;
        break;
      case kSkipIfZero:
        if ((AT(0) & 1) == 0) pc += now.operand;
        --top;
        break;
      case kLoop:
        pc = 0;
        break;
      case kOpcodes:
        break;
    }
  }
  uint32_t sum = top;
  for (uint32_t i = 0; i < kStackSize; ++i) sum = sum * 31 + stack[i];
  return sum;
}

int main(int argc, char** argv) {
  const uint32_t millions = argument(argc, argv, 1, 500);

  static Instruction program[kProgramLength];
  // How often each opcode appears, out of 64: loads and arithmetic most, as in compiled stack code.
  static const uint8_t shares[kOpcodes] = {9, 4, 2, 3, 2, 8, 4, 4, 4, 3, 9, 6, 2, 4, 0};
  uint8_t deck[64];
  uint32_t cards = 0;
  for (uint32_t opcode = 0; opcode < kOpcodes; ++opcode) {
    for (uint32_t i = 0; i < shares[opcode]; ++i) deck[cards++] = (uint8_t)opcode;
  }
  uint64_t seed = 30;
  for (uint32_t i = 0; i < kProgramLength; ++i) {
    const uint64_t random = next_random(&seed);
    program[i].opcode = deck[random % cards];
    program[i].operand = (uint16_t)(program[i].opcode == kSkipIfZero ? 1 + (random >> 32) % 6 : random >> 32);
  }
  for (uint32_t i = kProgramLength - 8; i < kProgramLength; ++i)
    program[i].opcode = kLoop;  // no skip gets past these

  uint64_t checksum = 0;
  for (uint32_t m = 0; m < millions; ++m) checksum = mix(checksum, interpret(program, 1000000));
  for (uint32_t i = 0; i < kCells; ++i) checksum = mix(checksum, cells[i]);
  return report("bytecode_vm", checksum);
}
