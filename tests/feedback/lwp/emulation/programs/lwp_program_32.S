// The instructions in 32-bit code, without a C library. Ends with 0, or with the number of the check that failed.
        .code32
        .intel_syntax noprefix
        .globl _start
        .text

.macro check number
        jne     1f
        jmp     2f
1:      mov     ebx, \number
        jmp     leave
2:
.endm

_start:
        slwpcb  eax
        test    eax, eax
        check   1
        mov     dword ptr [block + 8], offset ring
        mov     eax, offset block
        llwpcb  eax
        xor     edx, edx
        slwpcb  edx
        cmp     edx, offset block
        check   2

        mov     esi, 0x11111111
        mov     edi, 0x22222222
        lwpval  edi, esi, 0x33           # registers
        lwpins  edi, dword ptr [cells + 4], 0x44   # an absolute address: relative in 64-bit code
        setc    al
        test    al, al
        check   3
        mov     ebx, offset cells
        mov     ecx, 2
        lwpins  esi, dword ptr [ebx + ecx*4 - 8 + 0], 0x55
        // Four slots hold three records.
        stc
        lwpins  esi, esi, 0x66
        setc    al
        cmp     al, 1
        check   4

        cmp     dword ptr [block + 16], 96     # head
        check   5
        cmp     dword ptr [block + 24], 1      # missed
        check   6
        cmp     dword ptr [ring], 0x00330001   # event 1, flags
        check   7
        cmp     dword ptr [ring + 4], 0x11111111
        check   8
        cmp     dword ptr [ring + 16], 0x22222222
        check   9
        cmp     dword ptr [ring + 20], 0
        check   10
        cmp     dword ptr [ring + 32], 0x004400FF
        check   11
        cmp     dword ptr [ring + 36], 501
        check   12
        cmp     dword ptr [ring + 64], 0x005500FF
        check   13
        cmp     dword ptr [ring + 68], 500
        check   14
        xor     eax, eax
        llwpcb  eax
        slwpcb  eax
        test    eax, eax
        check   15
        xor     ebx, ebx
leave:
        mov     eax, 1                         # exit
        int     0x80

        .data
        .balign 64
block:  .long   2, 128                         # value samples; four records
        .fill   42, 4, 0
        .balign 64
ring:   .fill   32, 4, 0
cells:  .long   500, 501, 502, 503
        .section .note.GNU-stack, "", @progbits
