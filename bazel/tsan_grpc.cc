// Makes the locks of Debian's gRPC and Abseil visible to ThreadSanitizer. Linked into every program
// under --config=tsan only.
//
// Those libraries are not instrumented, so data passed between our threads through gRPC would look
// like a race. Their calls to absl::Mutex, absl::CondVar and gRPC's lock-free queue go through the
// dynamic linker; the functions below interpose on the real ones, call them, and annotate their
// ordering for ThreadSanitizer. This hides nothing: our own races are still reported.
//
// Symbols: Abseil 20220623 (inline namespace debian3), gRPC 1.51. Itanium C++ ABI: `this` is the
// first argument; absl::Duration (12 bytes) and absl::Time travel in two registers.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>

namespace {

struct TwoRegisters {
  long first;
  long second;
};

// The function that would have been called without this file.
template <typename Function>
Function* Next(std::atomic<void*>& cache, const char* symbol) {
  void* address = cache.load(std::memory_order_acquire);
  if (address == nullptr) {
    address = dlsym(RTLD_NEXT, symbol);
    cache.store(address, std::memory_order_release);
  }
  return reinterpret_cast<Function*>(address);
}

}  // namespace

#define TANDEM_NEXT(function, symbol)                   \
  [] {                                                  \
    static constinit std::atomic<void*> cache{nullptr}; \
    return Next<decltype(function)>(cache, symbol);     \
  }()

#define MUTEX_LOCK "_ZN4absl7debian35Mutex4LockEv"
#define MUTEX_TRY_LOCK "_ZN4absl7debian35Mutex7TryLockEv"
#define MUTEX_UNLOCK "_ZN4absl7debian35Mutex6UnlockEv"
#define CONDVAR_WAIT "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE"
#define CONDVAR_WAIT_TIMEOUT "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"
#define CONDVAR_WAIT_DEADLINE "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE"
#define QUEUE_PUSH "_ZN9grpc_core32MultiProducerSingleConsumerQueue4PushEPNS0_4NodeE"
#define QUEUE_POP "_ZN9grpc_core32MultiProducerSingleConsumerQueue14PopAndCheckEndEPb"
#define CALL_SCHEDULE_ON_DONE "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb"

extern "C" {

void MutexLock(void* mutex) asm(MUTEX_LOCK);
bool MutexTryLock(void* mutex) asm(MUTEX_TRY_LOCK);
void MutexUnlock(void* mutex) asm(MUTEX_UNLOCK);
void CondVarWait(void* self, void* mutex) asm(CONDVAR_WAIT);
bool CondVarWaitTimeout(void* self, void* mutex, TwoRegisters timeout) asm(CONDVAR_WAIT_TIMEOUT);
bool CondVarWaitDeadline(void* self, void* mutex, TwoRegisters time) asm(CONDVAR_WAIT_DEADLINE);
bool QueuePush(void* self, void* node) asm(QUEUE_PUSH);
void* QueuePop(void* self, bool* empty) asm(QUEUE_POP);
void CallScheduleOnDone(void* self, bool inlineable) asm(CALL_SCHEDULE_ON_DONE);

void MutexLock(void* mutex) {
  TANDEM_NEXT(MutexLock, MUTEX_LOCK)(mutex);
  __tsan_acquire(mutex);
}

bool MutexTryLock(void* mutex) {
  const bool locked = TANDEM_NEXT(MutexTryLock, MUTEX_TRY_LOCK)(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

void MutexUnlock(void* mutex) {
  __tsan_release(mutex);
  TANDEM_NEXT(MutexUnlock, MUTEX_UNLOCK)(mutex);
}

void CondVarWait(void* self, void* mutex) {
  __tsan_release(mutex);
  TANDEM_NEXT(CondVarWait, CONDVAR_WAIT)(self, mutex);
  __tsan_acquire(mutex);
}

bool CondVarWaitTimeout(void* self, void* mutex, TwoRegisters timeout) {
  __tsan_release(mutex);
  const bool expired = TANDEM_NEXT(CondVarWaitTimeout, CONDVAR_WAIT_TIMEOUT)(self, mutex, timeout);
  __tsan_acquire(mutex);
  return expired;
}

bool CondVarWaitDeadline(void* self, void* mutex, TwoRegisters time) {
  __tsan_release(mutex);
  const bool expired = TANDEM_NEXT(CondVarWaitDeadline, CONDVAR_WAIT_DEADLINE)(self, mutex, time);
  __tsan_acquire(mutex);
  return expired;
}

bool QueuePush(void* self, void* node) {
  __tsan_release(node);
  return TANDEM_NEXT(QueuePush, QUEUE_PUSH)(self, node);
}

void* QueuePop(void* self, bool* empty) {
  void* node = TANDEM_NEXT(QueuePop, QUEUE_POP)(self, empty);
  if (node != nullptr) __tsan_acquire(node);
  return node;
}

// The last to release a server call runs this; the others released it through the count of
// outstanding callbacks, which follows the vtable pointer and another int.
void CallScheduleOnDone(void* self, bool inlineable) {
  __tsan_acquire(static_cast<char*>(self) + sizeof(void*) + sizeof(int));
  TANDEM_NEXT(CallScheduleOnDone, CALL_SCHEDULE_ON_DONE)(self, inlineable);
}

}  // extern "C"
