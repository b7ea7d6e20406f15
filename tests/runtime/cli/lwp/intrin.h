/* What a program written for Microsoft's compiler finds in <intrin.h> of Lightweight Profiling, for GCC and
 * Clang. The intrinsics are the real instructions, whoever executes them. Only x86; no compiler option is
 * needed. */
#ifndef HINDSIGHT_TESTS_INTRIN_H
#define HINDSIGHT_TESTS_INTRIN_H

#include <emmintrin.h> /* __m128d */

#define __int64 long long
#if defined(__x86_64__)
#define _M_X64 100
#else
#define _M_IX86 600
#endif

/* A processor without LWP says so, and CPUID cannot be trapped everywhere. Then this answers for the
 * emulation, with the registers of leaves 80000001h and 8000001Ch that the build was given
 * (HINDSIGHT_LWP_CPUID_...). */
static void __cpuid(int* info, int leaf) {
  unsigned a = (unsigned)leaf, b, c = 0, d;
  __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  info[0] = (int)a;
  info[1] = (int)b;
  info[2] = (int)c;
  info[3] = (int)d;
  if ((unsigned)leaf == 0x80000001u) info[2] |= (int)HINDSIGHT_LWP_CPUID_1_ECX;
  if ((unsigned)leaf == 0x8000001Cu && !(a & 1)) {
    info[0] = (int)HINDSIGHT_LWP_CPUID_1C_EAX;
    info[1] = (int)HINDSIGHT_LWP_CPUID_1C_EBX;
    info[2] = (int)HINDSIGHT_LWP_CPUID_1C_ECX;
    info[3] = (int)HINDSIGHT_LWP_CPUID_1C_EDX;
  }
}

static inline void __llwpcb(void* block) {
  __asm__ __volatile__("llwpcb %0" : : "r"(block) : "memory");
}
static inline void* __slwpcb(void) {
  void* block;
  __asm__ __volatile__("slwpcb %0" : "=r"(block) : : "memory");
  return block;
}

/* Macros, because the last operand has to be a constant. */
#define HINDSIGHT_LWPVAL(type, data2, data1, flags)                                     \
  __asm__ __volatile__("lwpval %2, %1, %0"                                              \
                       :                                                                \
                       : "r"((type)(data2)), "rm"((unsigned)(data1)), "i"((int)(flags)) \
                       : "memory")
#define HINDSIGHT_LWPINS(type, data2, data1, flags)                                       \
  __extension__({                                                                         \
    unsigned char full_;                                                                  \
    __asm__ __volatile__("lwpins %3, %2, %1\n\tsetc %0"                                   \
                         : "=qm"(full_)                                                   \
                         : "r"((type)(data2)), "rm"((unsigned)(data1)), "i"((int)(flags)) \
                         : "memory", "cc");                                               \
    full_;                                                                                \
  })
#define __lwpval32(data2, data1, flags) HINDSIGHT_LWPVAL(unsigned, data2, data1, flags)
#define __lwpins32(data2, data1, flags) HINDSIGHT_LWPINS(unsigned, data2, data1, flags)
#if defined(__x86_64__)
#define __lwpval64(data2, data1, flags) HINDSIGHT_LWPVAL(unsigned long long, data2, data1, flags)
#define __lwpins64(data2, data1, flags) HINDSIGHT_LWPINS(unsigned long long, data2, data1, flags)
#endif

#endif
