#include "tools/cuda_emulation/fiber.h"

#include <sys/mman.h>

#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tandem::emulation {
namespace {

constexpr size_t kPage = 4096;

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
  // The ABI requires the stack pointer to be 8 past a multiple of 16 at function entry.
  auto* top = reinterpret_cast<void**>(stack_ + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(&Fiber::Enter);
  stack_pointer_ = top;
}

void Fiber::Enter(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
#endif
  self->entry_(self->argument_);
  self->done_ = true;
  self->SwitchBack(/*last=*/true);
  __builtin_unreachable();
}

}  // namespace tandem::emulation
