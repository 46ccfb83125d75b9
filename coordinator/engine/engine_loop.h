// EngineLoop: EngineCore on a thread of its own behind a bounded inbox, and the writers that hand
// its updates to streams; what the API edge talks to.
//
// States:  kServing --worker lost--> kLost      every request ends with UNAVAILABLE naming the
// rank, on_lost is called
//          kServing --Shutdown-----> kStopping --> kStopped     every request ends with kCancelled
//          kLost    --Shutdown-----> kStopped
// (Recovery will be one more way out of kLost, back to kServing with a higher epoch.)
//
// Thread-safe. Streams are called on writers' threads, with no lock held: they may call Add and
// Cancel, not Shutdown.
#ifndef TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_
#define TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/queue.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/engine/request_check.h"
#include "coordinator/engine/stream_writers.h"

namespace tandem::coordinator {

class EngineLoop final : public EngineHandle {
 public:
  enum class State { kServing, kStopping, kLost, kStopped };
  // Called once on the engine thread, after every request's end has gone to its writer. Must not
  // call Shutdown or destroy the loop.
  using LostFn = std::function<void(const absl::Status&)>;

  static constexpr size_t kNumWriters = 2;

  // Starts the threads.
  EngineLoop(std::unique_ptr<EngineCore> core, LostFn on_lost, size_t num_writers = kNumWriters);
  ~EngineLoop() override;  // Shutdown

  absl::StatusOr<RequestHandle> Add(Request request) override;
  void Cancel(RequestHandle handle) override;
  EngineStats Stats() const override;

  // Ends every request with kCancelled after the step in flight, and the threads; every stream has
  // its end then. Idempotent. Takes at most a step's timeout.
  void Shutdown();

  State state() const;
  EngineStepTimings Timings() const;

 private:
  struct Cancelled {};
  struct Stopped {};  // by its stream
  using Event = std::variant<Request, Cancelled, Stopped>;
  struct InboxEvent {
    RequestHandle handle;
    Event event;
  };
  struct InFlight {
    std::string id;
    bool ending = false;  // so that the inbox holds at most two events of a request in flight
  };

  void Run();
  void HandleInbox();
  // Accounts for every block, unless there are too many for that. A block with a wrong count of
  // owners would end up in two sequences, whose tokens would silently be wrong: so a mismatch ends
  // the engine as a lost worker does. UNAVAILABLE saying what does not agree.
  absl::Status CheckIdle() const;
  // The request's id is free, and there is room for another: its stream has its end.
  void Release(RequestHandle handle, bool stopped);
  void Push(RequestHandle handle, Event event);  // with mutex_ held
  void Lose(const absl::Status& status);
  // Ends what is in flight and what is still in the inbox, once the state lets nothing more in.
  void EndAll(const absl::Status& status, FinishReason reason);
  // Publishes what Stats and Timings answer.
  void PublishStats();
  void Transition(State to);  // with mutex_ held
  size_t capacity() const;

  const std::unique_ptr<EngineCore> core_;  // the engine thread's, but for config()
  const LostFn on_lost_;
  const RequestCheck check_;
  BoundedQueue<InboxEvent> inbox_;

  mutable std::mutex mutex_;
  State state_ = State::kServing;                           // guarded by mutex_
  std::string lost_message_;                                // guarded by mutex_
  absl::flat_hash_map<RequestHandle, InFlight> in_flight_;  // guarded by mutex_
  absl::flat_hash_set<std::string> ids_in_flight_;          // guarded by mutex_
  RequestHandle last_handle_ = 0;                           // guarded by mutex_
  EngineStats stats_;                                       // guarded by mutex_
  EngineStepTimings timings_;                               // guarded by mutex_

  StreamWriters writers_;
  std::mutex shutdown_mutex_;  // one Shutdown joins
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_ENGINE_LOOP_H_
