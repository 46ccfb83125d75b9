// WorkerLink: the control stream of one worker, without gRPC: messages out, events in, and its end.
//
// The gRPC stream feeds it (Deliver, CloseFromStream) and drains it through the sender; the
// engine's thread sends and waits for events. Thread-safe.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_LINK_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_LINK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/queue.h"
#include "proto/tandem/v1/worker.pb.h"

namespace tandem::coordinator {

class WorkerLink {
 public:
  // Sends a message; UNAVAILABLE once the stream ended.
  using Sender = std::function<absl::Status(v1::CoordinatorMessage)>;
  // Ends the stream without waiting for the worker; it calls CloseFromStream then.
  using Canceller = std::function<void()>;
  using ClosedCallback = std::function<void(const absl::Status&)>;
  using StepResultCallback = std::function<void(std::string frame)>;

  WorkerLink(v1::Hello hello, Sender sender, Canceller canceller = nullptr);

  const v1::Hello& hello() const { return hello_; }
  // "pid 123 on HOST", for display.
  std::string ProcessName() const;

  // A stream that does not take a message is ended: its worker would miss it.
  absl::Status Send(v1::CoordinatorMessage message);
  // Sends Shutdown; the worker's exit code says whether `end` is OK.
  void AskToExit(const absl::Status& end);
  // The next Loading, Ready, Started or Failed. UNAVAILABLE once the stream ended,
  // DEADLINE_EXCEEDED.
  absl::StatusOr<v1::WorkerMessage> NextEvent(Deadline deadline);
  // Asks for a sign of life; WaitPong: whether the answer has come by the deadline. One thread.
  absl::Status Ping();
  bool WaitPong(Deadline deadline);
  // Ends the stream of a worker that does not respond. It counts as ended at once: the call's own
  // end follows on another thread.
  void Cancel();
  // OK while the stream is open.
  absl::Status status() const;

  // Called immediately if the stream has ended; else when it ends, on a thread of the stream, or on
  // that whose Send or Cancel has ended it.
  void OnClosed(ClosedCallback callback);
  // Receiver of step results (step transport grpc). Set before the first step.
  void OnStepResult(StepResultCallback callback);

  // --- from the stream ---
  void Deliver(v1::WorkerMessage message);
  void CloseFromStream(const absl::Status& status);

 private:
  void End(const absl::Status& reason);

  const v1::Hello hello_;
  mutable Mutex mutex_;
  Sender sender_ TANDEM_GUARDED_BY(mutex_);        // null once closed
  Canceller canceller_ TANDEM_GUARDED_BY(mutex_);  // null once closed
  absl::Status status_ TANDEM_GUARDED_BY(mutex_);
  ClosedCallback on_closed_ TANDEM_GUARDED_BY(mutex_);
  StepResultCallback on_step_result_ TANDEM_GUARDED_BY(mutex_);
  BoundedQueue<v1::WorkerMessage> events_{1024};
  CondVar ponged_;
  uint64_t last_ping_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t last_pong_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_LINK_H_
