// TraceRecorder: takes events from the engine's thread while somebody records, and holds them until
// they are taken. Nobody waits for a reader: what finds no room is dropped, and counted.
//
//   if (const uint64_t recording = recorder.recording(); recording != 0) recorder.Add(...)
//
// Thread-safe. While nothing is recorded, recording() is a relaxed load. Add holds a mutex that
// others hold for a few instructions, and moves its event into memory that was reserved before.
#ifndef TANDEM_COORDINATOR_OBSERVE_TRACE_RECORDER_H_
#define TANDEM_COORDINATOR_OBSERVE_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "coordinator/observe/trace_event.h"

namespace tandem::coordinator {

class TraceRecorder {
 public:
  struct Limits {
    size_t most_waiting = 1 << 15;  // events that were not taken yet
    size_t most_events = 1 << 20;   // of one recording
  };
  struct Batch {
    std::vector<TraceEvent> events{};  // since the last Take, in order
    uint64_t num_dropped = 0;          // since the start
  };

  // A recording, as long as it lives; the recorder must outlive it.
  class Recording {
   public:
    explicit Recording(TraceRecorder& recorder) : recorder_(recorder) {}
    ~Recording() { recorder_.Stop(); }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    Batch Take() { return recorder_.Take(); }

   private:
    TraceRecorder& recorder_;
  };

  TraceRecorder() : TraceRecorder(Limits()) {}
  explicit TraceRecorder(Limits limits) : limits_(limits) {}

  // FAILED_PRECONDITION while there is another recording.
  absl::StatusOr<std::unique_ptr<Recording>> Start();

  // The number of the recording, which differs from the one before; 0: there is none.
  uint64_t recording() const { return recording_.load(std::memory_order_relaxed); }
  // No effect if `recording` is over.
  void Add(uint64_t recording, TraceEvent event);

 private:
  void Stop();
  Batch Take();

  const Limits limits_;
  std::atomic<uint64_t> recording_{0};  // written under the mutex
  Mutex mutex_;
  uint64_t last_recording_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::vector<TraceEvent> events_ TANDEM_GUARDED_BY(mutex_);
  size_t num_taken_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t num_dropped_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_TRACE_RECORDER_H_
