// WorkerClient: the coordinator's interface to one worker. State machine: docs/worker-protocol.md:
// Hello -> Configure -> Load -> Ready -> Step ... Implementations: a real process, a simulated
// worker (tests).
//
// Owned and called by one thread (the engine's), except Abort.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_CLIENT_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"
#include "common/step/result.h"

namespace tandem::coordinator {

// The reply of a loaded worker.
struct WorkerReady {
  std::vector<uint32_t> num_blocks;      // per KV group that this rank can hold
  std::vector<std::string> memory_plan;  // one line per item, for the log
};

class WorkerClient {
 public:
  virtual ~WorkerClient() = default;
  virtual int rank() const = 0;

  // Sends Configure; a running worker drops communicator and KV cache and keeps its weights.
  virtual absl::Status Configure(const config::WorkerConfig& config,
                                 const config::WorkerAssignment& assignment) = 0;
  // Sends Load (starts loading on all ranks before any is waited for).
  virtual absl::Status StartLoad() = 0;
  // Waits for the first Loading, which a worker answers as soon as it takes Load: until `answer`,
  // or until `last` if it is still loading for an earlier epoch. DEADLINE_EXCEEDED: it is stuck; a
  // process of ours is killed then. `cancelled` (may be null) is polled; CANCELLED then.
  virtual absl::Status AwaitLoading(Deadline answer, Deadline last,
                                    const std::function<bool()>& cancelled) = 0;
  // Waits for Ready. Errors name the rank; after DEADLINE_EXCEEDED it may be called again. ABORTED:
  // the worker timed out waiting for others.
  virtual absl::StatusOr<WorkerReady> FinishLoad(Deadline deadline) = 0;
  // Sends the number of blocks agreed on (the minimum over ranks); the worker then accepts steps.
  // Call it on all ranks before waiting for any: starting may be collective.
  virtual absl::Status Start(const std::vector<uint32_t>& num_blocks) = 0;
  // Waits for Started, as FinishLoad does for Ready.
  virtual absl::Status FinishStart(Deadline deadline) = 0;

  // Sends an encoded StepDescriptor (common/step/codec.h).
  virtual absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) = 0;
  // The next result, in submission order. UNAVAILABLE when the worker is lost, DEADLINE_EXCEEDED
  // when it is stuck.
  virtual absl::StatusOr<step::StepResult> Collect(Deadline deadline) = 0;

  // Asks the process for a sign of life, which it gives whatever it is doing.
  virtual void Ping() = 0;
  // Whether it has answered the last Ping by the deadline.
  virtual bool WaitPong(Deadline deadline) = 0;
  // OK while the worker is running; else the reason ("rank 1 exited with signal 9"). Never blocks.
  virtual absl::Status Health() const = 0;
  // Whether its process was killed or stopped by another one, or by the kernel when memory is
  // short: nothing that it computes can have done that. False if this is not known.
  virtual bool EndedFromOutside() const { return false; }
  // Ends a worker that does not respond: the process if it is ours, else its connection, so that
  // another one can have its rank.
  virtual void Kill() = 0;
  // From any thread: pending calls end with `reason`.
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_CLIENT_H_
