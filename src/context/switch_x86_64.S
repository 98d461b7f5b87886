// jump and the entry trampoline for x86-64, System V ABI. The frame that jump leaves is described in switch_own.cpp
// (struct saved); both change together.
//
// Control words, measured on Zen 3 with every branch predicted (ns per jump): none 4.3; both stored and always loaded 7.4;
// MXCSR always, x87 only if it differs 7.1 (this); both only if they differ 9.3; the same as one 64-bit compare 13.3, because
// such a load over two smaller stores misses store forwarding. Comparing MXCSR is no use anyway: its sticky flags differ.
//
// The jump ends in `ret`, not in an indirect branch: tasks mostly switch from the same few places, and then the return
// stack predicts the whole way out (7.1 against 19.7; from two different places 12.8 against 11.7).
#if defined(__x86_64__) && !defined(WEFT_BOOST_SWITCH)
        .text
        .p2align 6
        .globl  weft_v1_context_jump
        .hidden weft_v1_context_jump
        .type   weft_v1_context_jump, @function
weft_v1_context_jump:                    // rdi: from_sp, rsi: to_sp, rdx: arg
        .cfi_startproc
        stmxcsr -56(%rsp)                // where the pushes below leave the stack pointer: they do not wait for it
        fnstcw  -52(%rsp)
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        .cfi_remember_state
        movzwl  4(%rsp), %ecx
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp               // same layout on the other stack: the CFI above stays true
        ldmxcsr (%rsp)
        cmpw    4(%rsp), %cx
        jne     2f
1:
        movq    %rdx, %rax
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        ret
2:                                       // out of the way; CFI as at label 1
        .cfi_restore_state
        fldcw   4(%rsp)
        jmp     1b
        .cfi_endproc
        .size   weft_v1_context_jump, . - weft_v1_context_jump

// The first return address of every flow: rbx is the entry function, rax the first jump's arg, rbp 0. Undefined rip tells
// DWARF unwinders, rbp 0 tells frame walkers that nothing called us.
        .p2align 4
        .globl  weft_v1_context_start
        .hidden weft_v1_context_start
        .type   weft_v1_context_start, @function
        .cfi_startproc
        .cfi_undefined rip
        .cfi_undefined rbp
        nop                              // unwinders look up pc - 1
weft_v1_context_start:
        movq    %rax, %rdi
        callq   *%rbx
        ud2                              // an entry never returns
        .cfi_endproc
        .size   weft_v1_context_start, . - weft_v1_context_start
#endif
        .section .note.GNU-stack, "", %progbits
