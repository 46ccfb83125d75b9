#include "tools/cuda_emulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Saves the callee-saved registers of the System V ABI on the current stack, stores its pointer,
// and switches to another stack.
extern "C" void tandem_switch_stack(void** save, void* load);
asm(R"(
.text
.globl tandem_switch_stack
.type tandem_switch_stack, @function
tandem_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tandem_switch_stack, .-tandem_switch_stack
)");

namespace tandem::emulation {
namespace {

constexpr size_t kPage = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif
constexpr int kSavedRegisters = 6;

// The fiber that Start prepared and Resume enters for the first time.
thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber() {
  void* const map = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TANDEM_CHECK(map != MAP_FAILED) << "no memory for an emulated thread's stack";
  mprotect(map, kPage, PROT_NONE);
  stack_ = static_cast<std::byte*>(map) + kPage;
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (sanitizer_ != nullptr) __tsan_destroy_fiber(sanitizer_);
#endif
  munmap(stack_ - kPage, kStackBytes + kPage);
}

void Fiber::Start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  done_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (sanitizer_ == nullptr) sanitizer_ = __tsan_create_fiber(0);
#endif
  // As if Enter had been interrupted at its start: registers, then the return address. The ABI
  // requires the stack pointer to be 8 past a multiple of 16 at function entry.
  auto* top = reinterpret_cast<void**>(stack_ + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(&Fiber::Enter);
  stack_pointer_ = top - kSavedRegisters;
}

void Fiber::Enter() {
  Fiber* const self = entering;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
#endif
  self->entry_(self->argument_);
  self->done_ = true;
  self->SwitchBack(/*last=*/true);
  __builtin_unreachable();
}

void Fiber::Resume() {
  entering = this;
#if defined(__SANITIZE_THREAD__)
  caller_sanitizer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
#endif
  tandem_switch_stack(&caller_stack_pointer_, stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::Yield() { SwitchBack(/*last=*/false); }

void Fiber::SwitchBack([[maybe_unused]] bool last) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(caller_sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, caller_stack_, caller_stack_bytes_);
#endif
  tandem_switch_stack(&stack_pointer_, caller_stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &caller_stack_, &caller_stack_bytes_);
#endif
}

}  // namespace tandem::emulation
