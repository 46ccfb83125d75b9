#include "common/transport/shared_futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "common/base/cpu_set.h"

namespace tandem::transport {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Wakes all waiters. Spurious wakes are harmless.
void Wake(std::atomic<uint32_t>& value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// steady_clock is CLOCK_MONOTONIC, which FUTEX_WAIT_BITSET takes as an absolute time.
timespec ToTimespec(TimePoint when) {
  const int64_t ns = when.time_since_epoch().count();
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

void Park(SharedWord& word, uint32_t seen, Deadline deadline) {
  const timespec until = ToTimespec(deadline.when());
  word.waiters.fetch_add(1, std::memory_order_seq_cst);
  if (word.value.load(std::memory_order_seq_cst) == seen) {
    // EAGAIN (the word changed), EINTR and ETIMEDOUT all mean: check again.
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word.value), FUTEX_WAIT_BITSET, seen, &until,
            nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  word.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

// True when the word changed before `until`.
template <typename Relax>
bool LookUntil(const SharedWord& word, uint32_t seen, TimePoint until, int looks_per_clock,
               Relax relax) {
  do {
    for (int i = 0; i < looks_per_clock; ++i) {
      if (word.value.load(std::memory_order_acquire) != seen) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

// Of the process, so counted as it starts: a thread that waits may be kept to one of them since.
const int kUsableCores = std::max<int>(1, static_cast<int>(UsableCpus().size()));

}  // namespace

SpinPolicy SpinPolicy::For(int parties, Duration spin, Duration yield) {
  if (parties > kUsableCores) return {.spin = Duration::zero(), .yield = yield};
  return {.spin = spin, .yield = yield};
}

void AddAndNotify(SharedWord& word, uint32_t delta) {
  word.value.fetch_add(delta, std::memory_order_seq_cst);
  if (word.waiters.load(std::memory_order_seq_cst) != 0) Wake(word.value);
}

void SetBitsAndNotify(SharedWord& word, uint32_t bits) {
  word.value.fetch_or(bits, std::memory_order_seq_cst);
  if (word.waiters.load(std::memory_order_seq_cst) != 0) Wake(word.value);
}

void WaitWhile(SharedWord& word, uint32_t seen, const SpinPolicy& policy, Deadline deadline) {
  if (word.value.load(std::memory_order_acquire) != seen) return;
  const TimePoint start = std::chrono::steady_clock::now();
  if (policy.spin.count() > 0 &&
      LookUntil(word, seen, std::min(start + policy.spin, deadline.when()), 64, Pause)) {
    return;
  }
  if (policy.yield.count() > 0 &&
      LookUntil(word, seen, std::min(start + policy.spin + policy.yield, deadline.when()), 1,
                [] { sched_yield(); })) {
    return;
  }
  Park(word, seen, deadline);
}

}  // namespace tandem::transport
