#include "kernels/host/thread_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

namespace tandem::kernels::host {
namespace {

// About 50 microseconds on current x86: longer than the gap between two entries, negligible
// otherwise.
constexpr int kSpins = 1500;
// About a microsecond.
constexpr int kSpinsBeforeStealing = 30;

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kInside = kOpen - 1;
constexpr int kGenerationShift = 32;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The first task of a thread's share of `tasks`: with fewer tasks than threads the first threads
// have one each.
uint32_t ShareBegin(uint64_t tasks, uint32_t thread, uint32_t threads) {
  return static_cast<uint32_t>((tasks * thread + threads - 1) / threads);
}

// A CPU that was switched off meanwhile costs speed, not the step.
void Warn(uint32_t thread, const absl::Status& restricted) {
  if (restricted.ok()) return;
  TANDEM_LOG(kWarning) << "thread " << thread << " " << restricted.message();
}

uint32_t Generation(uint64_t session) { return static_cast<uint32_t>(session >> kGenerationShift); }

}  // namespace

ThreadStream::ThreadStream(uint32_t threads, const CpuSet& cpus) {
  TANDEM_CHECK(threads >= 1) << threads << " threads";
  TANDEM_CHECK(cpus.empty() || cpus.size() >= threads) << cpus.size() << " CPUs";
  helpers_.reserve(threads - 1);
  for (uint32_t t = 1; t < threads; ++t) {
    helpers_.emplace_back([this, t] { HelperMain(t); });
    if (!cpus.empty()) Warn(t, RestrictThread(helpers_.back(), {cpus[t]}));
  }
  if (!cpus.empty()) Warn(0, RestrictThread({cpus[0]}));
}

ThreadStream::~ThreadStream() {
  TANDEM_CHECK(list_ == nullptr) << "a stream ended before its list was waited for";
  quit_.store(true);
  WakeParked();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadStream::Start(const OpList& list, const ScratchMemory& scratch, Deadline deadline) {
  TANDEM_CHECK(list_ == nullptr) << "started twice without Wait";
  const size_t entries = list.entries().size();
  if (entries > capacity_) {
    capacity_ = std::max(entries, 2 * capacity_);
    taken_ = std::make_unique<Taken[]>(capacity_ * threads());
    finished_ = std::make_unique<std::atomic<uint32_t>[]>(capacity_);
  }
  for (size_t i = 0; i < entries; ++i) {
    for (size_t t = 0; t < threads(); ++t) {
      taken_[t * capacity_ + i].store(0, std::memory_order_relaxed);
    }
    finished_[i].store(0, std::memory_order_relaxed);
  }
  list_ = &list;
  scratch_ = scratch;
  deadline_ = deadline;
  completed_.store(0, std::memory_order_relaxed);
  stopped_.store(false, std::memory_order_relaxed);
  const uint64_t generation = Generation(session_.load()) + uint64_t{1};
  session_.store((generation << kGenerationShift) | kOpen);
  if (!helpers_.empty() && entries != 0) WakeParked();
}

absl::Status ThreadStream::Wait() {
  TANDEM_CHECK(list_ != nullptr) << "Wait without Start";
  if (!list_->entries().empty() && deadline_.Passed()) {
    Fail(absl::DeadlineExceededError("the step's deadline passed before it began"));
  }
  RunList(0);
  // No helper may enter any more; those inside will see the end.
  session_.fetch_and(~kOpen);
  WaitFor([this] { return (session_.load() & kInside) == 0; }, nullptr);
  list_ = nullptr;
  MutexLock lock(mutex_);
  return std::exchange(error_, absl::OkStatus());
}

void ThreadStream::HelperMain(uint32_t thread) {
  uint32_t seen = 0;
  while (Join(&seen)) {
    RunList(thread);
    Leave();
  }
}

bool ThreadStream::Join(uint32_t* seen) {
  while (true) {
    WaitFor(
        [&] {
          const uint64_t session = session_.load();
          return quit_.load() || ((session & kOpen) != 0 && Generation(session) != *seen);
        },
        nullptr);
    if (quit_.load()) return false;
    uint64_t session = session_.load();
    while ((session & kOpen) != 0) {
      if (!session_.compare_exchange_weak(session, session + 1)) continue;
      *seen = Generation(session);
      return true;
    }
  }
}

void ThreadStream::Leave() {
  session_.fetch_sub(1);
  WakeParked();
}

bool ThreadStream::ListEnded(uint32_t after) const {
  return completed_.load() > after || stopped_.load();
}

void ThreadStream::RunList(uint32_t thread) {
  const auto entries = static_cast<uint32_t>(list_->entries().size());
  while (!stopped_.load()) {
    const uint32_t index = completed_.load();
    if (index == entries) return;
    RunTasks(index, thread);
    if (ListEnded(index)) continue;
    // Only the caller turns a passed deadline into an error; helpers wait for stopped_.
    const bool in_time =
        WaitFor([&] { return ListEnded(index); }, thread == 0 ? &deadline_ : nullptr);
    if (!in_time) Fail(absl::DeadlineExceededError("the step's deadline passed while it ran"));
  }
}

void ThreadStream::RunTasks(uint32_t index, uint32_t thread) {
  for (uint32_t i = 0; i < threads(); ++i) {
    if (i == 1) WaitBeforeStealing(index);
    if (ListEnded(index)) return;
    RunShare(index, (thread + i) % threads(), thread);
  }
}

void ThreadStream::RunShare(uint32_t index, uint32_t owner, uint32_t thread) {
  const OpList::Entry& entry = list_->entries()[index];
  TaskContext context{0, thread, scratch_.shared,
                      scratch_.per_thread + thread * scratch_.per_thread_stride};
  uint32_t ran = 0;
  for (; Take(index, owner, thread, &context.task); ++ran) {
    if (stopped_.load(std::memory_order_relaxed)) return;
    if (entry.run != nullptr) {
      entry.run(list_->params(entry), context);
    } else if (absl::Status status = list_->work(entry)(deadline_); !status.ok()) {
      return Fail(std::move(status));
    }
  }
  if (ran == 0) return;
  // acq_rel: the last thread to finish sees all the others' writes.
  if (finished_[index].fetch_add(ran, std::memory_order_acq_rel) + ran == entry.num_tasks) {
    Complete(index);
  }
}

bool ThreadStream::Take(uint32_t index, uint32_t owner, uint32_t thread, uint32_t* task) {
  constexpr uint64_t kOneOfEnd = uint64_t{1} << 32;
  const auto left = [](uint64_t size, uint64_t taken) {
    return static_cast<uint32_t>(taken) + (taken >> 32) < size;
  };
  const uint32_t tasks = list_->entries()[index].num_tasks;
  const uint32_t begin = ShareBegin(tasks, owner, threads());
  const uint32_t end = ShareBegin(tasks, owner + 1, threads());
  Taken& taken = taken_[owner * capacity_ + index];
  if (!left(end - begin, taken.load(std::memory_order_relaxed))) return false;
  const bool own = owner == thread;
  const uint64_t before = taken.fetch_add(own ? 1 : kOneOfEnd, std::memory_order_relaxed);
  if (!left(end - begin, before)) return false;
  *task =
      own ? begin + static_cast<uint32_t>(before) : end - 1 - static_cast<uint32_t>(before >> 32);
  return true;
}

void ThreadStream::WaitBeforeStealing(uint32_t index) const {
  for (int i = 0; i < kSpinsBeforeStealing && !ListEnded(index); ++i) Pause();
}

void ThreadStream::Complete(uint32_t index) {
  if (index + 1 < list_->entries().size() && deadline_.Passed()) {
    return Fail(absl::DeadlineExceededError("the step's deadline passed while it ran"));
  }
  completed_.store(index + 1);
  WakeParked();
}

void ThreadStream::Fail(absl::Status status) {
  {
    MutexLock lock(mutex_);
    if (error_.ok()) error_ = std::move(status);
  }
  stopped_.store(true);
  WakeParked();
}

template <typename Ready>
bool ThreadStream::WaitFor(Ready ready, const Deadline* deadline) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    Pause();
  }
  MutexLock lock(mutex_);
  // Sequentially consistent on both sides: a thread that makes `ready` true after this sees
  // parked_, or we see `ready`.
  parked_.fetch_add(1);
  bool in_time = true;
  if (deadline == nullptr) {
    wake_.Wait(lock, ready);
  } else {
    in_time = wake_.Wait(lock, *deadline, ready);
  }
  parked_.fetch_sub(1);
  return in_time;
}

void ThreadStream::WakeParked() {
  if (parked_.load() == 0) return;
  { MutexLock lock(mutex_); }
  wake_.NotifyAll();
}

}  // namespace tandem::kernels::host
