#include "jit/baseline/stubs.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "jit/abi/builtins.h"
#include "jit/abi/vm_context.h"

namespace hindsight::jit::baseline {
namespace {

// What a stub leaves on its stack, from low to high addresses.
struct Saved {
  uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags;
  uint64_t frame;        // rbp
  uint64_t return_to;    // the call
  uint64_t pushed[2];    // by the code, of a value
};
static_assert(offsetof(Saved, flags) == 72 && offsetof(Saved, pushed) == 96);

bool holds(uint32_t condition, uint64_t flags) {
  const bool carry = (flags & 1) != 0, parity = (flags & 4) != 0, zero = (flags & 0x40) != 0;
  const bool sign = (flags & 0x80) != 0, overflow = (flags & 0x800) != 0;
  bool result = false;
  switch (condition >> 1) {
    case 0:
      result = overflow;
      break;
    case 1:
      result = carry;
      break;
    case 2:
      result = zero;
      break;
    case 3:
      result = carry || zero;
      break;
    case 4:
      result = sign;
      break;
    case 5:
      result = parity;
      break;
    case 6:
      result = sign != overflow;
      break;
    default:
      result = zero || sign != overflow;
      break;
  }
  return result != ((condition & 1) != 0);
}

int32_t distance_at(const uint8_t* code) {
  int32_t distance;
  std::memcpy(&distance, code, sizeof distance);
  return distance;
}

}  // namespace

// Used by the assembly below.
extern "C" {
[[gnu::used]] static void hindsight_record_instructions(VmContext* context, const uint8_t* pc, const Saved*) {
  context->builtins->lwp_instructions_retired(context, pc);
}

// Follows the jumps as the processor will.
[[gnu::used]] static void hindsight_record_branch(VmContext* context, const uint8_t* pc, const Saved* saved) {
  const uint8_t* at = pc;
  for (;;) {
    if (*at == 0x0f) {  // jcc, 32 bits
      const uint8_t* next = at + 6;
      if (holds(at[1] & 15u, saved->flags))
        return context->builtins->lwp_branch_retired(context, pc, 1, next + distance_at(at + 2));
      at = next;
    } else if ((*at & 0xf0) == 0x70) {  // jcc, 8 bits
      const bool jumps = holds(*at & 15u, saved->flags);
      at += 2 + (jumps ? static_cast<int8_t>(at[1]) : 0);
    } else {  // jmp, 32 bits
      return context->builtins->lwp_branch_retired(context, pc, 0, at + 5 + distance_at(at + 1));
    }
  }
}

[[gnu::used]] static void hindsight_record_jump(VmContext* context, const uint8_t* pc, const Saved*) {
  context->builtins->lwp_branch_retired(context, pc, 1, pc + 5 + distance_at(pc + 1));
}

[[gnu::used]] static void hindsight_record_computed_jump(VmContext* context, const uint8_t* pc,
                                                         const Saved* saved) {
  context->builtins->lwp_branch_retired(context, pc, 1, reinterpret_cast<const void*>(saved->r11));
}

[[gnu::used]] static void hindsight_record_value(VmContext* context, const uint8_t* pc, const Saved* saved) {
  context->builtins->lwp_value_sampled(context, pc, static_cast<uint32_t>(saved->pushed[0]), saved->r11,
                                       static_cast<uint32_t>(saved->pushed[1]));
}

[[gnu::used]] static void hindsight_empty_trace(VmContext* context, const uint8_t*, const Saved*) {
  context->builtins->trace_full(context);
}

[[gnu::used]] static void hindsight_check_stack(VmContext*, const uint8_t*, const Saved* saved) {
  auto* context = reinterpret_cast<VmContext*>(saved->rdi);
  context->builtins->stack_check_failed(context);
}
}

// The frame is found by backtraces, which skip return addresses that are none of generated code. Only the lower
// halves of vector registers are alive in generated code of this tier.
// clang-format off
#define HINDSIGHT_STUB(name, function)                                                          \
  asm(".text\n .p2align 4\n .globl hindsight_stub_" #name "\n .hidden hindsight_stub_" #name "\n" \
      ".type hindsight_stub_" #name ", @function\n hindsight_stub_" #name ":\n"                 \
      "pushq %rbp\n movq %rsp, %rbp\n pushfq\n"                                                 \
      "pushq %rax\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n"                        \
      "pushq %r8\n pushq %r9\n pushq %r10\n pushq %r11\n"                                       \
      "movq 8(%rbp), %rsi\n movq %rsp, %rdx\n movq %rbx, %rdi\n"                                \
      "subq $256, %rsp\n andq $-16, %rsp\n"                                                     \
      "movaps %xmm0, (%rsp)\n movaps %xmm1, 16(%rsp)\n movaps %xmm2, 32(%rsp)\n"                \
      "movaps %xmm3, 48(%rsp)\n movaps %xmm4, 64(%rsp)\n movaps %xmm5, 80(%rsp)\n"              \
      "movaps %xmm6, 96(%rsp)\n movaps %xmm7, 112(%rsp)\n movaps %xmm8, 128(%rsp)\n"            \
      "movaps %xmm9, 144(%rsp)\n movaps %xmm10, 160(%rsp)\n movaps %xmm11, 176(%rsp)\n"         \
      "movaps %xmm12, 192(%rsp)\n movaps %xmm13, 208(%rsp)\n movaps %xmm14, 224(%rsp)\n"        \
      "movaps %xmm15, 240(%rsp)\n"                                                              \
      "cld\n call " #function "\n"                                                              \
      "movaps (%rsp), %xmm0\n movaps 16(%rsp), %xmm1\n movaps 32(%rsp), %xmm2\n"                \
      "movaps 48(%rsp), %xmm3\n movaps 64(%rsp), %xmm4\n movaps 80(%rsp), %xmm5\n"              \
      "movaps 96(%rsp), %xmm6\n movaps 112(%rsp), %xmm7\n movaps 128(%rsp), %xmm8\n"            \
      "movaps 144(%rsp), %xmm9\n movaps 160(%rsp), %xmm10\n movaps 176(%rsp), %xmm11\n"         \
      "movaps 192(%rsp), %xmm12\n movaps 208(%rsp), %xmm13\n movaps 224(%rsp), %xmm14\n"        \
      "movaps 240(%rsp), %xmm15\n"                                                              \
      "leaq -80(%rbp), %rsp\n"                                                                  \
      "popq %r11\n popq %r10\n popq %r9\n popq %r8\n"                                           \
      "popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %rax\n"                             \
      "popfq\n popq %rbp\n ret\n"                                                               \
      ".size hindsight_stub_" #name ", .-hindsight_stub_" #name "\n")

HINDSIGHT_STUB(instructions, hindsight_record_instructions);
HINDSIGHT_STUB(branch, hindsight_record_branch);
HINDSIGHT_STUB(jump, hindsight_record_jump);
HINDSIGHT_STUB(computed_jump, hindsight_record_computed_jump);
HINDSIGHT_STUB(value, hindsight_record_value);
HINDSIGHT_STUB(trace_full, hindsight_empty_trace);
HINDSIGHT_STUB(stack_check, hindsight_check_stack);
// clang-format on

// The builtin finds the code's return address as its own.
static_assert(kVmBuiltins == 24 && offsetof(Builtins, trap) == 0);
asm(".text\n .p2align 4\n .globl hindsight_stub_trap\n .hidden hindsight_stub_trap\n"
    ".type hindsight_stub_trap, @function\n hindsight_stub_trap:\n"
    "movq %rbx, %rdi\n movq 24(%rbx), %rax\n jmp *(%rax)\n"
    ".size hindsight_stub_trap, .-hindsight_stub_trap\n");

}  // namespace hindsight::jit::baseline
