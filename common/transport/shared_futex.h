// Waiting on a 32-bit word that several processes share: spin, then yield, then park in the kernel
// until the word changes or the deadline passes. (std::atomic::wait uses private futexes, which do
// not work between processes.)
#ifndef TANDEM_COMMON_TRANSPORT_SHARED_FUTEX_H_
#define TANDEM_COMMON_TRANSPORT_SHARED_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "common/base/clock.h"

namespace tandem::transport {

// A word in shared memory and the number of threads that may be parked on it. All zero at first.
// Each writer of `value` calls Notify afterwards; a waiter never misses a change: both sides write
// their own half before they read the other's, and all four are sequentially consistent.
struct SharedWord {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> waiters;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "atomics are shared between processes");

// How long a wait polls before it parks.
struct SpinPolicy {
  Duration spin{};   // with pause instructions only
  Duration yield{};  // then with sched_yield between polls

  // For `parties` threads that wait for each other: no spinning if the process has fewer cores.
  static SpinPolicy For(int parties, Duration spin, Duration yield);
};

// Adds to the word and wakes the threads parked on it.
void AddAndNotify(SharedWord& word, uint32_t delta);
// Sets bits of the word and wakes the threads parked on it.
void SetBitsAndNotify(SharedWord& word, uint32_t bits);

// Returns once the word differs from `seen` or the deadline passed; the caller checks which.
void WaitWhile(SharedWord& word, uint32_t seen, const SpinPolicy& policy, Deadline deadline);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_SHARED_FUTEX_H_
