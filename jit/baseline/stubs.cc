#include "jit/baseline/stubs.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "jit/abi/builtins.h"
#include "jit/abi/vm_context.h"
#include "jit/baseline/operators/comparison.h"

namespace hindsight::jit::baseline {
namespace {

// What a stub leaves on its stack, from low to high addresses.
struct Saved {
  uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags;
  uint64_t frame;      // rbp
  uint64_t return_to;  // the call
  uint64_t pushed[2];  // by the code, of a value

  // By their numbers, those that generated code of this tier compares: what the stub saved, and rbp.
  RegisterFile registers() const {
    RegisterFile file{};
    file[0] = rax, file[1] = rcx, file[2] = rdx, file[5] = frame, file[6] = rsi, file[7] = rdi;
    file[8] = r8, file[9] = r9, file[10] = r10, file[11] = r11;
    return file;
  }
};
static_assert(offsetof(Saved, flags) == 72 && offsetof(Saved, pushed) == 96);

}  // namespace

// Used by the assembly below.
extern "C" {
[[gnu::used]] static void hindsight_record_instructions(VmContext* context, const uint8_t* pc, const Saved*,
                                                        const VectorHalves*) {
  context->builtins->lwp_instructions_retired(context, pc);
}

static void record_branch_at(VmContext* context, const uint8_t* pc, const uint8_t* code, const Saved* saved,
                             const VectorHalves* vectors, bool taken_where_it_jumps) {
  const Outcome outcome = outcome_at(code, saved->registers(), *vectors);
  context->builtins->lwp_branch_retired(context, pc, outcome.jumps == taken_where_it_jumps ? 1 : 0,
                                        outcome.target);
}

// Called out of line: the code that comes next is where the jump after the call leads.
[[gnu::used]] static void hindsight_record_branch(VmContext* context, const uint8_t* pc, const Saved* saved,
                                                  const VectorHalves* vectors) {
  record_branch_at(context, pc, jump_target(pc), saved, vectors, true);
}

[[gnu::used]] static void hindsight_record_branch_not_taken(VmContext* context, const uint8_t* pc,
                                                            const Saved* saved, const VectorHalves* vectors) {
  record_branch_at(context, pc, jump_target(pc), saved, vectors, false);
}

[[gnu::used]] static void hindsight_record_jump(VmContext* context, const uint8_t* pc, const Saved*,
                                                const VectorHalves*) {
  context->builtins->lwp_branch_retired(context, pc, 1, jump_target(jump_target(pc)));
}

// The code counted instructions, and a branch only where no record of them is due. Whether it is due now.
static bool record_run(VmContext* context, const uint8_t* pc) {
  if (context->thread->lwp_instructions >= 0) return true;
  context->builtins->lwp_instructions_retired(context, pc);
  return --context->thread->lwp_branches < 0;
}

[[gnu::used]] static void hindsight_record_run_and_branch(VmContext* context, const uint8_t* pc,
                                                          const Saved* saved, const VectorHalves* vectors) {
  if (record_run(context, pc)) record_branch_at(context, pc, pc, saved, vectors, true);
}

[[gnu::used]] static void hindsight_record_run_and_branch_not_taken(VmContext* context, const uint8_t* pc,
                                                                    const Saved* saved,
                                                                    const VectorHalves* vectors) {
  if (record_run(context, pc)) record_branch_at(context, pc, pc, saved, vectors, false);
}

[[gnu::used]] static void hindsight_record_run_and_jump(VmContext* context, const uint8_t* pc, const Saved*,
                                                        const VectorHalves*) {
  if (record_run(context, pc)) context->builtins->lwp_branch_retired(context, pc, 1, jump_target(pc));
}

[[gnu::used]] static void hindsight_record_computed_jump(VmContext* context, const uint8_t* pc,
                                                         const Saved* saved, const VectorHalves*) {
  context->builtins->lwp_branch_retired(context, pc, 1, reinterpret_cast<const void*>(saved->r11));
}

[[gnu::used]] static void hindsight_record_value(VmContext* context, const uint8_t* pc, const Saved* saved,
                                                 const VectorHalves*) {
  context->builtins->lwp_value_sampled(context, pc, static_cast<uint32_t>(saved->pushed[0]), saved->r11,
                                       static_cast<uint32_t>(saved->pushed[1]));
}

[[gnu::used]] static void hindsight_empty_trace(VmContext* context, const uint8_t*, const Saved*,
                                                const VectorHalves*) {
  context->builtins->trace_full(context);
}

[[gnu::used]] static void hindsight_check_stack(VmContext*, const uint8_t*, const Saved* saved,
                                                const VectorHalves*) {
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
      "movq %rsp, %rcx\n cld\n call " #function "\n"                                                              \
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
HINDSIGHT_STUB(branch_not_taken, hindsight_record_branch_not_taken);
HINDSIGHT_STUB(jump, hindsight_record_jump);
HINDSIGHT_STUB(run_and_branch, hindsight_record_run_and_branch);
HINDSIGHT_STUB(run_and_branch_not_taken, hindsight_record_run_and_branch_not_taken);
HINDSIGHT_STUB(run_and_jump, hindsight_record_run_and_jump);
HINDSIGHT_STUB(computed_jump, hindsight_record_computed_jump);
HINDSIGHT_STUB(value, hindsight_record_value);
HINDSIGHT_STUB(trace_full, hindsight_empty_trace);
HINDSIGHT_STUB(stack_check, hindsight_check_stack);
// clang-format on

// The builtin finds the code's return address as its own.
static_assert(kVmBuiltins == 24 && offsetof(Builtins, trap) == 0);
asm(".text\n .p2align 4\n .globl hindsight_stub_trap\n .hidden hindsight_stub_trap\n"
    ".type hindsight_stub_trap, @function\n hindsight_stub_trap:\n"
    "popq %rdx\n popq %rsi\n pushq %rdx\n"
    "movq %rbx, %rdi\n movq 24(%rbx), %rax\n jmp *(%rax)\n"
    ".size hindsight_stub_trap, .-hindsight_stub_trap\n");

extern "C" {
void hindsight_stub_instructions();
void hindsight_stub_branch();
void hindsight_stub_branch_not_taken();
void hindsight_stub_jump();
void hindsight_stub_run_and_branch();
void hindsight_stub_run_and_branch_not_taken();
void hindsight_stub_run_and_jump();
void hindsight_stub_computed_jump();
void hindsight_stub_stack_check();
void hindsight_stub_trap();
}

const void* rare_stub(RareStub stub) {
  static constexpr void (*kStubs[])() = {
      hindsight_stub_instructions, hindsight_stub_branch,         hindsight_stub_branch_not_taken,
      hindsight_stub_jump,         hindsight_stub_run_and_branch, hindsight_stub_run_and_branch_not_taken,
      hindsight_stub_run_and_jump, hindsight_stub_computed_jump,  hindsight_stub_stack_check,
      hindsight_stub_trap};
  static_assert(std::size(kStubs) == kRareStubs);
  return reinterpret_cast<const void*>(kStubs[static_cast<uint32_t>(stub)]);
}

}  // namespace hindsight::jit::baseline
