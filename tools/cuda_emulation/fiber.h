// Fiber: a coroutine with its own stack, by which one host thread runs all threads of a CUDA block.
//
// x86-64 only. Supports AddressSanitizer and ThreadSanitizer. Stacks are reused.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_
#define TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_

#include <cstddef>

namespace tandem::emulation {

class Fiber {
 public:
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
  void Yield();
  // Whether the entry has returned.
  bool done() const { return done_; }

 private:
  static void Enter();
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

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_FIBER_H_
