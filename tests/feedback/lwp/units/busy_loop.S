    .text
    .globl hindsight_test_busy_loop, hindsight_test_busy_loop_begin, hindsight_test_busy_loop_end
    .type hindsight_test_busy_loop, @function
hindsight_test_busy_loop:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov $0x5A5A00, %rax
    mov $0x5A5A01, %rcx
    mov $0x5A5A02, %rdx
    mov $0x5A5A03, %rbx
    mov $0x5A5A05, %rbp
    mov $0x5A5A06, %rsi
    mov $0x5A5A08, %r8
    mov $0x5A5A09, %r9
    mov $0x5A5A0A, %r10
    mov $0x5A5A0B, %r11
    mov $0x5A5A0C, %r12
    mov $0x5A5A0D, %r13
    mov $0x5A5A0E, %r14
    mov $0x5A5A0F, %r15
hindsight_test_busy_loop_begin:
    dec %rdi
    jnz hindsight_test_busy_loop_begin
hindsight_test_busy_loop_end:
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size hindsight_test_busy_loop, . - hindsight_test_busy_loop

    .globl hindsight_test_gather_loop, hindsight_test_gather_loop_begin, hindsight_test_gather_loop_end
    .type hindsight_test_gather_loop, @function
hindsight_test_gather_loop:
    vmovdqu (%rsi), %ymm9
    vmovdqu 32(%rsi), %ymm10
hindsight_test_gather_loop_begin:
    vpcmpeqd %ymm1, %ymm1, %ymm1
    vpgatherdd %ymm1, 4(%rsi,%ymm9,4), %ymm0
    vpcmpeqd %ymm1, %ymm1, %ymm1
    vpgatherqq %ymm1, (%rsi,%ymm10,8), %ymm0
    dec %rdi
    jnz hindsight_test_gather_loop_begin
hindsight_test_gather_loop_end:
    vzeroupper
    ret
    .size hindsight_test_gather_loop, . - hindsight_test_gather_loop
    .section .note.GNU-stack, "", @progbits
