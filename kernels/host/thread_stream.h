// ThreadStream: runs an OpList on the caller and threads - 1 helpers.
//
// Start wakes the helpers and returns; in Wait the caller runs tasks too, until the list is done.
// Of every entry a thread has the same share, a run of neighbouring tasks, so that it reads what it
// wrote. When its share is done it waits for about a microsecond and then takes tasks from the ends
// of the others' shares. An entry is done when its tasks are, whichever threads ran them: a helper
// that wakes late delays nothing for long. Between entries, and between lists, a thread spins for
// some tens of microseconds and then parks on a condition variable, so an idle stream burns no CPU.
// With one thread, Wait runs the list.
//
// The first error (of host work, or the deadline passing between two entries) skips the rest of the
// list and is returned by Wait. Start, Wait and the destructor must be called by one thread.
#ifndef TANDEM_KERNELS_HOST_THREAD_STREAM_H_
#define TANDEM_KERNELS_HOST_THREAD_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/cpu_set.h"
#include "common/base/mutex.h"
#include "kernels/host/op_list.h"

namespace tandem::kernels::host {

// Scratch memory passed to the tasks.
struct ScratchMemory {
  std::byte* shared = nullptr;
  std::byte* per_thread = nullptr;  // (threads, per_thread_stride)
  size_t per_thread_stride = 0;
};

class ThreadStream {
 public:
  // With `cpus`, of which there are as many as threads or more, thread t runs on the t-th of them
  // alone once this returns: the helpers, and as the first the calling thread, with those that it
  // starts later.
  explicit ThreadStream(uint32_t threads, const CpuSet& cpus = {});
  // Joins the helpers. REQUIRES: a started list was waited for.
  ~ThreadStream();
  ThreadStream(const ThreadStream&) = delete;
  ThreadStream& operator=(const ThreadStream&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(helpers_.size()) + 1; }

  // `list` and `scratch` must not change until Wait returns.
  void Start(const OpList& list, const ScratchMemory& scratch, Deadline deadline);
  // The first error of the most recently started list.
  absl::Status Wait();

 private:
  // What has been taken of a thread's share of an entry: by the thread from the front in the lower
  // half, by others from the end in the upper. Both only grow, and more may be counted than there
  // is.
  using Taken = std::atomic<uint64_t>;

  void HelperMain(uint32_t thread);
  // Waits for a list newer than `seen` and joins it; false when the stream ends.
  bool Join(uint32_t* seen);
  void Leave();
  // Takes part in the current list until it is done or stopped.
  void RunList(uint32_t thread);
  // Runs what is left of an entry: the thread's own share, then the others'.
  void RunTasks(uint32_t index, uint32_t thread);
  void RunShare(uint32_t index, uint32_t owner, uint32_t thread);
  // Takes a task of `owner`'s share; false when there is none left.
  bool Take(uint32_t index, uint32_t owner, uint32_t thread, uint32_t* task);
  void WaitBeforeStealing(uint32_t index) const;
  void Complete(uint32_t index);
  void Fail(absl::Status status);
  bool ListEnded(uint32_t after) const;
  // Spins, then parks, until `ready()`; false when `deadline` passed first.
  template <typename Ready>
  bool WaitFor(Ready ready, const Deadline* deadline);
  void WakeParked();

  // The current list. Written by Start while no helper is inside.
  const OpList* list_ = nullptr;
  ScratchMemory scratch_;
  Deadline deadline_ = Deadline::At({});
  std::unique_ptr<Taken[]> taken_;                     // (threads, capacity_)
  std::unique_ptr<std::atomic<uint32_t>[]> finished_;  // (capacity_): tasks done
  size_t capacity_ = 0;                                // entries

  // Generation (upper 32 bits), open flag, number of helpers inside. Helpers enter only while it is
  // open.
  std::atomic<uint64_t> session_{0};
  std::atomic<uint32_t> completed_{0};  // entries done, all before it too
  std::atomic<bool> stopped_{false};    // an error: no further tasks
  std::atomic<bool> quit_{false};

  Mutex mutex_;
  CondVar wake_;
  std::atomic<int> parked_{0};  // threads inside wake_'s wait, or about to be
  absl::Status error_ TANDEM_GUARDED_BY(mutex_);

  std::vector<std::thread> helpers_;
};

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_THREAD_STREAM_H_
