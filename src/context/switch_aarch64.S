// jump and the entry trampoline for aarch64, AAPCS64. The frame that jump leaves is described in switch_own.cpp (struct
// saved); both change together. FPCR is written only if it differs: the write drains the pipeline.
#if defined(__aarch64__) && !defined(WEFT_BOOST_SWITCH)
        .text
        .p2align 6
        .globl  weft_v1_context_jump
        .hidden weft_v1_context_jump
        .type   weft_v1_context_jump, %function
weft_v1_context_jump:                    // x0: from_sp, x1: to_sp, x2: arg
        .cfi_startproc
        sub     sp, sp, #176
        .cfi_def_cfa_offset 176
        stp     x29, x30, [sp, #0]
        .cfi_offset x29, -176
        .cfi_offset x30, -168
        stp     x19, x20, [sp, #16]
        .cfi_offset x19, -160
        .cfi_offset x20, -152
        stp     x21, x22, [sp, #32]
        .cfi_offset x21, -144
        .cfi_offset x22, -136
        stp     x23, x24, [sp, #48]
        .cfi_offset x23, -128
        .cfi_offset x24, -120
        stp     x25, x26, [sp, #64]
        .cfi_offset x25, -112
        .cfi_offset x26, -104
        stp     x27, x28, [sp, #80]
        .cfi_offset x27, -96
        .cfi_offset x28, -88
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        mov     x10, sp
        str     x10, [x0]
        mov     sp, x1                   // same layout on the other stack: the CFI above stays true
        ldr     x11, [sp, #160]
        cmp     x9, x11
        b.eq    1f
        msr     fpcr, x11
1:
        ldp     d14, d15, [sp, #144]
        ldp     d12, d13, [sp, #128]
        ldp     d10, d11, [sp, #112]
        ldp     d8, d9, [sp, #96]
        ldp     x27, x28, [sp, #80]
        ldp     x25, x26, [sp, #64]
        ldp     x23, x24, [sp, #48]
        ldp     x21, x22, [sp, #32]
        ldp     x19, x20, [sp, #16]
        ldp     x29, x30, [sp, #0]
        add     sp, sp, #176
        .cfi_def_cfa_offset 0
        .cfi_restore x30
        .cfi_restore x29
        .cfi_restore x28
        .cfi_restore x27
        .cfi_restore x26
        .cfi_restore x25
        .cfi_restore x24
        .cfi_restore x23
        .cfi_restore x22
        .cfi_restore x21
        .cfi_restore x20
        .cfi_restore x19
        mov     x0, x2
        ret
        .cfi_endproc
        .size   weft_v1_context_jump, . - weft_v1_context_jump

// The first return address of every flow: x19 is the entry function, x0 the first jump's arg, x29 0.
        .p2align 4
        .globl  weft_v1_context_start
        .hidden weft_v1_context_start
        .type   weft_v1_context_start, %function
        .cfi_startproc
        .cfi_undefined x30
        .cfi_undefined x29
        nop                              // unwinders look up pc - 1
weft_v1_context_start:
        mov     x30, xzr
        blr     x19
        brk     #1                       // an entry never returns
        .cfi_endproc
        .size   weft_v1_context_start, . - weft_v1_context_start
#endif
        .section .note.GNU-stack, "", %progbits
