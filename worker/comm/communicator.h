// Communicator: collectives on tensors, enqueued on the backend's stream, never blocking the
// caller.
//
// The deadline is the step's (Backend::Submit). Every rank must enqueue the same collectives in the
// same order. Reductions on the host add rank 0's value first, then 1, 2, ...; a device's may use
// another order. Runs are reproducible bit for bit, and all ranks get the same bits. Errors (a rank
// missing at the deadline, named; an abort) are returned by Backend::Wait on every rank.
// Implementations: shared memory, TCP, NCCL (open_communicator.h chooses); threads of one process,
// for tests.
#ifndef TANDEM_WORKER_COMM_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_COMMUNICATOR_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"

namespace tandem::worker {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Called by all ranks, once, before the first collective; returns when all have joined.
  // DEADLINE_EXCEEDED naming the missing ranks if the implementation can, or the reason of an
  // abort, also of an earlier one.
  virtual absl::Status Join(Deadline deadline) = 0;

  // data[i] = sum over ranks of data[i], on every rank. `count` floats, in place.
  virtual void AllReduceSum(float* data, size_t count) = 0;
  // recv on rank `root` becomes (size, bytes): every rank's `send` in rank order; on other ranks
  // recv is unchanged. The root's `send` may be null: then its own part of recv is unchanged.
  virtual void Gather(const void* send, size_t bytes, void* recv, int root) = 0;
  // recv becomes (size, bytes) on every rank.
  virtual void AllGather(const void* send, size_t bytes, void* recv) = 0;
  // `data` of rank `root` on every rank.
  virtual void Broadcast(void* data, size_t bytes, int root) = 0;

  // This rank's time in the collectives that have run, waiting for other ranks included; none if
  // that is not measured: a device's stream tells no times without waiting for it. Between steps.
  virtual std::optional<Duration> TimeSpent() const { return std::nullopt; }

  // From any thread: Join and every pending and later collective, on every rank that shares this
  // communicator, end with `reason`. Other ranks over TCP are told once all have joined.
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_COMMUNICATOR_H_
