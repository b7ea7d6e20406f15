// What this room knows of x86-64: the registers in a signal's frame, and the few jumps that C++ has no words for.
// Everything here may be used in a signal handler.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace hindsight::rt::x86_64 {

// Below the stack pointer a leaf function may keep data.
inline constexpr uintptr_t kRedZoneBytes = 128;

inline uintptr_t pc_of(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}
inline uintptr_t sp_of(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}
inline uintptr_t fp_of(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RBP]);
}

// Has the interrupted thread call `function`, which does not return, in place of going on.
inline void redirect(ucontext_t& context, void (*function)()) {
  constexpr greg_t kDirectionFlag = 0x400;
  const uintptr_t sp = sp_of(context);
  greg_t* const registers = context.uc_mcontext.gregs;
  // As if the function had been called: the stack is 16-byte aligned before a return address is pushed.
  registers[REG_RSP] = static_cast<greg_t>(((sp - kRedZoneBytes) & ~uintptr_t{15}) - 8);
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
  registers[REG_EFL] &= ~kDirectionFlag;
}

// Every word that a register may hold an address in, halves of vectors included.
template <typename Each>
void for_each_register(const ucontext_t& context, Each each) noexcept {
  for (int i = 0; i <= REG_RIP; i++) each(static_cast<uintptr_t>(context.uc_mcontext.gregs[i]));
  if (context.uc_mcontext.fpregs == nullptr) return;
  for (const auto& xmm : context.uc_mcontext.fpregs->_xmm) {
    each(xmm.element[0] | uintptr_t{xmm.element[1]} << 32);
    each(xmm.element[2] | uintptr_t{xmm.element[3]} << 32);
  }
}

// Reads, for the function that it is inlined into, what the registers hold that a callee has to keep. rbp is a
// frame's. What they held when the function was called is then there, or where the function has saved it, in its frame.
inline constexpr size_t kKeptRegisters = 5;
[[gnu::always_inline]] inline void read_kept_registers(uint64_t (&to)[kKeptRegisters]) {
  asm volatile(
      "mov %%rbx, 0(%0)\n\tmov %%r12, 8(%0)\n\tmov %%r13, 16(%0)\n\tmov %%r14, 24(%0)\n\tmov %%r15, 32(%0)"
      :
      : "r"(to)
      : "memory");
}

// Goes on at `pc` with a first argument.
[[noreturn, gnu::always_inline]] inline void jump(const void* pc, const void* argument) {
  asm volatile("jmp *%0" : : "r"(pc), "D"(argument) : "memory");
  __builtin_unreachable();
}

// Goes on at `pc` in the frame that sp and fp are of, with a result of the call that the code there made.
[[noreturn, gnu::always_inline]] inline void jump_into_frame(const void* pc, uintptr_t sp, uintptr_t fp,
                                                             const void* result) {
  asm volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tjmp *%2"
               :
               : "c"(sp), "d"(fp), "S"(pc), "a"(result)
               : "memory");
  __builtin_unreachable();
}

}  // namespace hindsight::rt::x86_64
