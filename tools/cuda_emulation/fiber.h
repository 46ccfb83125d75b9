// Fiber: a coroutine with its own stack, by which one host thread runs all threads of a CUDA block.
//
// x86-64 only. Supports AddressSanitizer and ThreadSanitizer. Stacks are reused. Switches are most
// of what emulated kernels do, and so inline.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_
#define TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_

#include <cstddef>

#include "tools/cuda_emulation/switch_stack.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tandem::emulation {

class Fiber {
 public:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t kStackBytes = 256 * 1024;
#else
  static constexpr size_t kStackBytes = 64 * 1024;
#endif

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From now on Resume runs `entry(argument)` from its start; an unfinished earlier entry is
  // dropped without running destructors.
  void Start(void (*entry)(void*), void* argument);
  // Runs the fiber until it calls Yield or its entry returns. Called by the thread's own stack.
  void Resume();
  // Goes back to Resume. Called on the fiber.
  void Yield() { SwitchBack(/*last=*/false); }
  // Whether the entry has returned.
  bool done() const { return done_; }

 private:
  [[noreturn]] static void Enter(Fiber* self);
  // Goes back to Resume; `last`: for good, so that the sanitizer can release its state of the
  // stack.
  void SwitchBack(bool last);

  std::byte* stack_;  // with a guard page below
  void* stack_pointer_ = nullptr;
  void* caller_stack_pointer_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
  void* sanitizer_ = nullptr;         // ThreadSanitizer's fiber
  void* caller_sanitizer_ = nullptr;  // and that of the thread
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
};

inline void Fiber::Resume() {
#if defined(__SANITIZE_THREAD__)
  caller_sanitizer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
#endif
  SwitchStack(&caller_stack_pointer_, stack_pointer_, this);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

inline void Fiber::SwitchBack([[maybe_unused]] bool last) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(caller_sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, caller_stack_, caller_stack_bytes_);
#endif
  SwitchStack(&stack_pointer_, caller_stack_pointer_, this);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &caller_stack_, &caller_stack_bytes_);
#endif
}

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_
