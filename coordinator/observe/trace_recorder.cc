#include "coordinator/observe/trace_recorder.h"

#include <utility>

namespace tandem::coordinator {

absl::StatusOr<std::unique_ptr<TraceRecorder::Recording>> TraceRecorder::Start() {
  std::vector<TraceEvent> room;
  room.reserve(limits_.most_waiting);
  {
    MutexLock lock(mutex_);
    if (recording() != 0) {
      return absl::FailedPreconditionError(
          "another recording is being made; there is one at a time");
    }
    events_ = std::move(room);
    num_taken_ = 0;
    num_dropped_ = 0;
    recording_.store(++last_recording_, std::memory_order_relaxed);
  }
  return std::make_unique<Recording>(*this);
}

void TraceRecorder::Add(uint64_t recording, TraceEvent event) {
  MutexLock lock(mutex_);
  if (recording == 0 || recording != this->recording()) return;
  if (events_.size() >= limits_.most_waiting ||
      num_taken_ + events_.size() >= limits_.most_events) {
    ++num_dropped_;
    return;
  }
  events_.push_back(std::move(event));
}

TraceRecorder::Batch TraceRecorder::Take() {
  Batch batch;
  batch.events.reserve(limits_.most_waiting);
  MutexLock lock(mutex_);
  std::swap(batch.events, events_);
  num_taken_ += batch.events.size();
  batch.num_dropped = num_dropped_;
  return batch;
}

void TraceRecorder::Stop() {
  std::vector<TraceEvent> events;  // freed without the mutex
  MutexLock lock(mutex_);
  recording_.store(0, std::memory_order_relaxed);
  std::swap(events, events_);
}

}  // namespace tandem::coordinator
