// EngineLoop: EngineCore on its own thread behind a bounded inbox, and the writers that pass its
// updates to streams; the Engine used by the API.
//
// States:  kServing --StopAdmission--> kDraining    Add is refused, requests in flight are finished
//          kServing, kDraining --Shutdown--> kStopping --> kStopped    every request ends with
//                                                                      kCancelled
//          kServing, kDraining --loss that is final--> kLost    every request ends with UNAVAILABLE
//                                                               naming the rank, on_lost is called
//          kLost --Shutdown--> kStopped
// A loss that `recover` repairs leaves the state as it is: requests wait meanwhile.
//
// Thread-safe. Streams are called on writers' threads, with no lock held: they may call Add and
// Cancel, not Shutdown.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/queue.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/engine/request_check.h"
#include "coordinator/engine/stream_writers.h"

namespace tandem::coordinator {

class EngineLoop final : public EngineHandle {
 public:
  enum class State { kServing, kDraining, kStopping, kLost, kStopped };
  // Called once on the engine thread, after every request's last update was passed to its writer.
  // Must not call Shutdown or destroy the loop.
  using LostFn = std::function<void(const absl::Status&)>;

  // Called on the engine thread after a worker was lost: returns workers of the next epoch, or why
  // there are none, with the loss. Polls `cancelled`, which serves the inbox meanwhile.
  using RecoverFn = std::function<absl::StatusOr<ReadyWorkers>(
      const absl::Status& loss, const std::function<bool()>& cancelled)>;

  static constexpr size_t kNumWriters = 2;

  // Starts the threads. Without `recover` the first loss is final. `clock` must outlive this; the
  // engine thread alone reads it. With `num_writers` 0 no thread is started: the owner calls Run,
  // and meanwhile Write, all on one thread (simulations).
  EngineLoop(std::unique_ptr<EngineCore> core, LostFn on_lost, RecoverFn recover = nullptr,
             size_t num_writers = kNumWriters, const Clock& clock = Clock::System());
  ~EngineLoop() override;  // Shutdown

  absl::StatusOr<std::vector<RequestHandle>> AddAll(std::vector<Request> requests) override;
  void Cancel(RequestHandle handle) override;
  absl::Status ResetPrefixCache() override;
  EngineStats Stats() const override;

  // From now on Add is refused. Calls `on_drained` once, when no request is in flight any more: on
  // this thread or a writer's, with a lock held; it must not call this object. Not called if a
  // worker is lost or Shutdown comes first. At most one call.
  void StopAdmission(std::function<void()> on_drained);

  // Ends every request with kCancelled after the step in flight, then the threads; every stream has
  // ended then. Idempotent. Takes at most a step's timeout.
  void Shutdown();

  // Without threads: serves until Stop or a loss that is final; then only Shutdown may be called.
  void Run();
  // Without threads: passes what was computed to the streams.
  void Write() { writers_.Write(); }
  // Begins Shutdown: from now on the engine thread ends every request.
  void Stop();

  // The most requests at a time, running and queued.
  size_t capacity() const;
  State state() const;
  // Whether the engine's thread has given no sign of life for longer than a step and the
  // replacement of its workers allow: it is stuck, not busy. On the system's clock.
  bool Late() const;
  EngineStepTimings Timings() const;

 private:
  struct Cancelled {};
  struct Stopped {};           // by its stream
  struct PrefixCacheReset {};  // of no request
  using Event = std::variant<Request, Cancelled, Stopped, PrefixCacheReset>;
  struct InboxEvent {
    RequestHandle handle;
    Event event;
  };
  struct InFlight {
    std::string id;
    bool ending = false;  // so that the inbox holds at most two events of a request in flight
    uint64_t queued_tokens = 0;  // its prompt's, until it has a token
  };

  void HandleInbox();
  void HandleReset();
  // Checks the accounting of every block, unless there are too many. A block with a wrong reference
  // count would end up in two sequences and silently corrupt their tokens, so a mismatch ends the
  // engine like a lost worker. UNAVAILABLE naming the inconsistency.
  absl::Status CheckIdle() const;
  // Why nothing is added any more; OK while serving.
  absl::Status Refusal() const TANDEM_REQUIRES(mutex_);
  // RESOURCE_EXHAUSTED if there is no room for so many requests with such a prompt.
  absl::Status CheckRoom(size_t num_requests, uint64_t prompt_tokens) const TANDEM_REQUIRES(mutex_);
  // Requests whose first tokens these are no longer count as queued.
  void LeaveQueue(const std::vector<Delivery>& deliveries);
  void LeaveQueue(InFlight& request) TANDEM_REQUIRES(mutex_);
  // The engine's thread is alive, and will say so again in time.
  void ShowLife();
  // Frees the request's id and its place: its stream has ended.
  void Release(RequestHandle handle, bool stopped);
  void Push(RequestHandle handle, Event event) TANDEM_REQUIRES(mutex_);
  // Whether the loop may continue, on other workers.
  bool Recover(const absl::Status& loss);
  void Lose(const absl::Status& status);
  // Ends requests in flight and in the inbox, once the state admits no more.
  void EndAll(const absl::Status& status, FinishReason reason);
  // Publishes the values of Stats and Timings.
  void PublishStats();
  void Transition(State to) TANDEM_REQUIRES(mutex_);
  bool Computes() const TANDEM_REQUIRES(mutex_);
  void ReportDrained() TANDEM_REQUIRES(mutex_);

  const std::unique_ptr<EngineCore> core_;  // used by the engine thread only, except config()
  const LostFn on_lost_;
  const RecoverFn recover_;
  const Clock& clock_;
  const RequestCheck check_;
  BoundedQueue<InboxEvent> inbox_;

  mutable Mutex mutex_;
  State state_ TANDEM_GUARDED_BY(mutex_) = State::kServing;
  std::string lost_message_ TANDEM_GUARDED_BY(mutex_);
  std::function<void()> on_drained_ TANDEM_GUARDED_BY(mutex_);
  absl::flat_hash_map<RequestHandle, InFlight> in_flight_ TANDEM_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> ids_in_flight_ TANDEM_GUARDED_BY(mutex_);
  RequestHandle last_handle_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool reset_is_pending_ TANDEM_GUARDED_BY(mutex_) = false;  // so that the inbox holds one at most
  uint64_t queued_tokens_ TANDEM_GUARDED_BY(mutex_) = 0;     // of all in flight
  EngineStats stats_ TANDEM_GUARDED_BY(mutex_);
  EngineStepTimings timings_ TANDEM_GUARDED_BY(mutex_);

  std::atomic<TimePoint> due_;  // the latest moment of the next ShowLife
  StreamWriters writers_;
  Mutex shutdown_mutex_;  // one Shutdown joins
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_
