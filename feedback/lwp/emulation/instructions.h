// The four LWP instructions as functions, for code of this library that executes them itself. Each is one
// machine instruction: on a processor without LWP it raises #UD, so ask first (capabilities.h) or let the
// instructions be emulated (sigill_emulation.h). No compiler option is needed.
#pragma once

#include <cstdint>

namespace hindsight::lwp::instruction {

// LLWPCB: null switches off. The block and what it names are read and written without the compiler's
// knowledge.
inline void llwpcb(void* block) {
  asm volatile("llwpcb %0" : : "r"(block) : "memory");
}

// SLWPCB: the thread's block, or null.
inline void* slwpcb() {
  void* block;
  asm volatile("slwpcb %0" : "=r"(block) : : "memory");
  return block;
}

// LWPINS with an operand of 64 bits; true: the ring was full and the record is counted as missed.
template <uint16_t kFlags>
bool lwpins(uint64_t data2, uint32_t data1) {
  bool full;
  asm volatile("lwpins %3, %2, %1"
               : "=@ccc"(full)
               : "r"(data2), "rm"(data1), "i"(uint32_t{kFlags})
               : "memory");
  return full;
}

template <uint16_t kFlags>
void lwpval(uint64_t data2, uint32_t data1) {
  asm volatile("lwpval %2, %1, %0" : : "r"(data2), "rm"(data1), "i"(uint32_t{kFlags}) : "memory");
}

}  // namespace hindsight::lwp::instruction
