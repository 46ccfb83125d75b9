// SwitchStack: from one stack of a host thread to another. x86-64.
//
// Inline, with a jump in place of a call and a return: a processor predicts returns from the calls
// that it has seen on any stack, and so would be wrong at every switch.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_SWITCH_STACK_H_
#define TANDEM_TOOLS_CUDA_EMULATION_SWITCH_STACK_H_

#if defined(__AVX512F__)
#error "SwitchStack does not save the registers that AVX-512 has added"
#endif

namespace tandem::emulation {

// Leaves this stack, storing in `*save` the pointer that resumes it, and resumes the stack `load`:
// a pointer that an earlier switch stored, or, for a new stack, the address of its topmost word,
// which holds the address of the function to call with `argument`.
[[gnu::always_inline]] inline void SwitchStack(void** save, void* load, void* argument) {
  // 128 bytes: what the System V ABI lets a function use below its stack pointer. Of the registers
  // that a function must keep, the compiler saves those that hold something.
  asm volatile(R"(
    leaq -128(%%rsp), %%rsp
    pushq %%rbp
    leaq 1f(%%rip), %%rax
    pushq %%rax
    movq %%rsp, (%%rsi)
    movq %%rdx, %%rsp
    popq %%rax
    jmp *%%rax
  1:
    popq %%rbp
    leaq 128(%%rsp), %%rsp
  )"
               : "+S"(save), "+d"(load), "+D"(argument)
               :
               : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
                 "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_SWITCH_STACK_H_
