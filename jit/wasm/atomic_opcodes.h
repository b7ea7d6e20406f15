// The part of the opcode table (opcodes.h) with the prefix 0xfe: atomic accesses, waiting and notifying. And
// what the regular part of it says by its order alone.
#pragma once

#include <cstdint>

// clang-format off
#define HINDSIGHT_WASM_ATOMIC_OPCODES(V) \
  V(MemoryAtomicNotify, 0xfe00, "memory.atomic.notify", kMemArg, "ii:i") \
  V(MemoryAtomicWait32, 0xfe01, "memory.atomic.wait32", kMemArg, "iiI:i") \
  V(MemoryAtomicWait64, 0xfe02, "memory.atomic.wait64", kMemArg, "iII:i") \
  V(AtomicFence, 0xfe03, "atomic.fence", kFence, ":") \
  V(I32AtomicLoad, 0xfe10, "i32.atomic.load", kMemArg, "i:i") \
  V(I64AtomicLoad, 0xfe11, "i64.atomic.load", kMemArg, "i:I") \
  V(I32AtomicLoad8U, 0xfe12, "i32.atomic.load8_u", kMemArg, "i:i") \
  V(I32AtomicLoad16U, 0xfe13, "i32.atomic.load16_u", kMemArg, "i:i") \
  V(I64AtomicLoad8U, 0xfe14, "i64.atomic.load8_u", kMemArg, "i:I") \
  V(I64AtomicLoad16U, 0xfe15, "i64.atomic.load16_u", kMemArg, "i:I") \
  V(I64AtomicLoad32U, 0xfe16, "i64.atomic.load32_u", kMemArg, "i:I") \
  V(I32AtomicStore, 0xfe17, "i32.atomic.store", kMemArg, "ii:") \
  V(I64AtomicStore, 0xfe18, "i64.atomic.store", kMemArg, "iI:") \
  V(I32AtomicStore8, 0xfe19, "i32.atomic.store8", kMemArg, "ii:") \
  V(I32AtomicStore16, 0xfe1a, "i32.atomic.store16", kMemArg, "ii:") \
  V(I64AtomicStore8, 0xfe1b, "i64.atomic.store8", kMemArg, "iI:") \
  V(I64AtomicStore16, 0xfe1c, "i64.atomic.store16", kMemArg, "iI:") \
  V(I64AtomicStore32, 0xfe1d, "i64.atomic.store32", kMemArg, "iI:") \
  V(I32AtomicRmwAdd, 0xfe1e, "i32.atomic.rmw.add", kMemArg, "ii:i") \
  V(I64AtomicRmwAdd, 0xfe1f, "i64.atomic.rmw.add", kMemArg, "iI:I") \
  V(I32AtomicRmw8AddU, 0xfe20, "i32.atomic.rmw8.add_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16AddU, 0xfe21, "i32.atomic.rmw16.add_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8AddU, 0xfe22, "i64.atomic.rmw8.add_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16AddU, 0xfe23, "i64.atomic.rmw16.add_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32AddU, 0xfe24, "i64.atomic.rmw32.add_u", kMemArg, "iI:I") \
  V(I32AtomicRmwSub, 0xfe25, "i32.atomic.rmw.sub", kMemArg, "ii:i") \
  V(I64AtomicRmwSub, 0xfe26, "i64.atomic.rmw.sub", kMemArg, "iI:I") \
  V(I32AtomicRmw8SubU, 0xfe27, "i32.atomic.rmw8.sub_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16SubU, 0xfe28, "i32.atomic.rmw16.sub_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8SubU, 0xfe29, "i64.atomic.rmw8.sub_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16SubU, 0xfe2a, "i64.atomic.rmw16.sub_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32SubU, 0xfe2b, "i64.atomic.rmw32.sub_u", kMemArg, "iI:I") \
  V(I32AtomicRmwAnd, 0xfe2c, "i32.atomic.rmw.and", kMemArg, "ii:i") \
  V(I64AtomicRmwAnd, 0xfe2d, "i64.atomic.rmw.and", kMemArg, "iI:I") \
  V(I32AtomicRmw8AndU, 0xfe2e, "i32.atomic.rmw8.and_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16AndU, 0xfe2f, "i32.atomic.rmw16.and_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8AndU, 0xfe30, "i64.atomic.rmw8.and_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16AndU, 0xfe31, "i64.atomic.rmw16.and_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32AndU, 0xfe32, "i64.atomic.rmw32.and_u", kMemArg, "iI:I") \
  V(I32AtomicRmwOr, 0xfe33, "i32.atomic.rmw.or", kMemArg, "ii:i") \
  V(I64AtomicRmwOr, 0xfe34, "i64.atomic.rmw.or", kMemArg, "iI:I") \
  V(I32AtomicRmw8OrU, 0xfe35, "i32.atomic.rmw8.or_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16OrU, 0xfe36, "i32.atomic.rmw16.or_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8OrU, 0xfe37, "i64.atomic.rmw8.or_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16OrU, 0xfe38, "i64.atomic.rmw16.or_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32OrU, 0xfe39, "i64.atomic.rmw32.or_u", kMemArg, "iI:I") \
  V(I32AtomicRmwXor, 0xfe3a, "i32.atomic.rmw.xor", kMemArg, "ii:i") \
  V(I64AtomicRmwXor, 0xfe3b, "i64.atomic.rmw.xor", kMemArg, "iI:I") \
  V(I32AtomicRmw8XorU, 0xfe3c, "i32.atomic.rmw8.xor_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16XorU, 0xfe3d, "i32.atomic.rmw16.xor_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8XorU, 0xfe3e, "i64.atomic.rmw8.xor_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16XorU, 0xfe3f, "i64.atomic.rmw16.xor_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32XorU, 0xfe40, "i64.atomic.rmw32.xor_u", kMemArg, "iI:I") \
  V(I32AtomicRmwXchg, 0xfe41, "i32.atomic.rmw.xchg", kMemArg, "ii:i") \
  V(I64AtomicRmwXchg, 0xfe42, "i64.atomic.rmw.xchg", kMemArg, "iI:I") \
  V(I32AtomicRmw8XchgU, 0xfe43, "i32.atomic.rmw8.xchg_u", kMemArg, "ii:i") \
  V(I32AtomicRmw16XchgU, 0xfe44, "i32.atomic.rmw16.xchg_u", kMemArg, "ii:i") \
  V(I64AtomicRmw8XchgU, 0xfe45, "i64.atomic.rmw8.xchg_u", kMemArg, "iI:I") \
  V(I64AtomicRmw16XchgU, 0xfe46, "i64.atomic.rmw16.xchg_u", kMemArg, "iI:I") \
  V(I64AtomicRmw32XchgU, 0xfe47, "i64.atomic.rmw32.xchg_u", kMemArg, "iI:I") \
  V(I32AtomicRmwCmpxchg, 0xfe48, "i32.atomic.rmw.cmpxchg", kMemArg, "iii:i") \
  V(I64AtomicRmwCmpxchg, 0xfe49, "i64.atomic.rmw.cmpxchg", kMemArg, "iII:I") \
  V(I32AtomicRmw8CmpxchgU, 0xfe4a, "i32.atomic.rmw8.cmpxchg_u", kMemArg, "iii:i") \
  V(I32AtomicRmw16CmpxchgU, 0xfe4b, "i32.atomic.rmw16.cmpxchg_u", kMemArg, "iii:i") \
  V(I64AtomicRmw8CmpxchgU, 0xfe4c, "i64.atomic.rmw8.cmpxchg_u", kMemArg, "iII:I") \
  V(I64AtomicRmw16CmpxchgU, 0xfe4d, "i64.atomic.rmw16.cmpxchg_u", kMemArg, "iII:I") \
  V(I64AtomicRmw32CmpxchgU, 0xfe4e, "i64.atomic.rmw32.cmpxchg_u", kMemArg, "iII:I")
// clang-format on

namespace hindsight::wasm {

// Code 0xfe10 + 7 * kind + shape.
enum class AtomicKind : uint8_t { kLoad, kStore, kAdd, kSub, kAnd, kOr, kXor, kExchange, kCompareExchange };

struct AtomicAccess {
  AtomicKind kind = AtomicKind::kLoad;
  bool wide = false;  // its values are i64
  uint32_t log2 = 2;  // of the bytes accessed
};

inline constexpr uint16_t kAtomicPrefix = 0xfe00;
inline constexpr uint16_t kFirstAtomicAccess = 0xfe10;
inline constexpr uint16_t kLastAtomicAccess = 0xfe4e;

constexpr bool is_atomic_access(uint16_t code) {
  return code >= kFirstAtomicAccess && code <= kLastAtomicAccess;
}

// Precondition: is_atomic_access(code).
constexpr AtomicAccess atomic_access(uint16_t code) {
  constexpr uint16_t kShapes = 7;  // i32, i64, i32 of 8 and 16 bits, i64 of 8, 16 and 32 bits
  constexpr uint8_t kLog2[kShapes] = {2, 3, 0, 1, 0, 1, 2};
  const auto number = static_cast<uint16_t>(code - kFirstAtomicAccess);
  const unsigned shape = number % kShapes;
  return {static_cast<AtomicKind>(number / kShapes), shape == 1 || shape >= 4, kLog2[shape]};
}

}  // namespace hindsight::wasm
