// What calibration needs of x86-64 and no compiler writes by itself: fences, flushed lines, and loops whose every
// instruction is known. Internal to this room.
#pragma once

#include <cstdint>

namespace hindsight::lwp::x86_64 {

// Loads after it start when all instructions before it are done.
inline void wait_for_loads() {
  __builtin_ia32_lfence();
}

// The clock of base/ticks.h, read when all loads before are done.
inline uint64_t read_ticks_after_loads() {
  unsigned processor;
  return __builtin_ia32_rdtscp(&processor);
}

// Out of all caches; wait_for_flushes() says when.
inline void flush_line(const void* at) {
  __builtin_ia32_clflush(at);
}
inline void wait_for_flushes() {
  __builtin_ia32_mfence();
}

// 32 instructions a round that take a cycle each: exclusive ors that depend on each other, of which no processor
// removes any.
inline constexpr uint64_t kCyclesPerRound = 32;
inline void spend_cycles(uint64_t rounds) {
  uint64_t value = 1;
  const uint64_t other = 5;
  static_assert(kCyclesPerRound == 32);  // .rept
  asm volatile(
      "1:\n"
      ".rept 32\n"
      "xorq %[other], %[value]\n"
      ".endr\n"
      "decq %[rounds]\n"
      "jnz 1b\n"
      : [value] "+r"(value), [rounds] "+r"(rounds)
      : [other] "r"(other)
      : "cc");
}

// Executes so many branches on pseudo-random bits. Precondition: `seed` is not 0. With mask 1 each goes as a coin
// does, with 0 all go the same way. The instructions are the same.
inline void branch_on_bits(uint64_t seed, uint64_t branches, uint64_t mask) {
  uint64_t bit = 0, shifted = 0;
  asm volatile(
      "1:\n"
      "movq %[x], %[shifted]\n shlq $13, %[shifted]\n xorq %[shifted], %[x]\n"
      "movq %[x], %[shifted]\n shrq $7, %[shifted]\n xorq %[shifted], %[x]\n"
      "movq %[x], %[shifted]\n shlq $17, %[shifted]\n xorq %[shifted], %[x]\n"
      "movq %[x], %[bit]\n shrq $40, %[bit]\n"
      "testq %[mask], %[bit]\n"
      "jnz 2f\n"
      "nop\n"
      "2:\n"
      "decq %[left]\n"
      "jnz 1b\n"
      : [x] "+r"(seed), [left] "+r"(branches), [bit] "+r"(bit), [shifted] "+r"(shifted)
      : [mask] "r"(mask)
      : "cc");
}

}  // namespace hindsight::lwp::x86_64
