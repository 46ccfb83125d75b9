// A communicator between processes of one host, over one memfd segment (shm_group.h): ranks write
// their data into their own buffers, and read each other's. Large tensors go in chunks.
//
// All-reduce: with up to two ranks, or few bytes, every rank sums all buffers itself (one-shot: one
// barrier per chunk). More ranks and more bytes: each rank sums its part of the chunk, then all
// collect the parts (two-shot: two barriers, but every byte crosses between cores twice rather than
// size - 1 times). Both add in rank order, so both give the same bits.
#ifndef TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "kernels/backend.h"
#include "worker/comm/communicator.h"
#include "worker/comm/communicator_parts.h"
#include "worker/comm/shm_group.h"

namespace tandem::worker {

class ShmCommunicator : public Communicator {
 public:
  // Over `parts.host_stream`. Rank 0 makes the segment and puts its address, the others get it.
  static absl::StatusOr<std::unique_ptr<Communicator>> Open(const CommunicatorParts& parts);
  // Over a group made by the caller. `stream` outlives the communicator.
  ShmCommunicator(std::unique_ptr<ShmGroup> group, kernels::HostStream& stream)
      : group_(std::move(group)), stream_(stream) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  absl::Status Join(Deadline deadline) override;
  void AllReduceSum(float* data, size_t count) override;
  void Gather(const void* send, size_t bytes, void* recv, int root) override;
  void AllGather(const void* send, size_t bytes, void* recv) override;
  void Broadcast(void* data, size_t bytes, int root) override;
  std::optional<Duration> TimeSpent() const override {
    return std::chrono::nanoseconds(spent_ns_.load(std::memory_order_relaxed));
  }
  void Abort(const absl::Status& reason) override { group_->Abort(reason); }

 private:
  // Runs a collective in stream order, and measures it.
  template <typename Run>
  void Enqueue(Run run);
  // The collectives, run on the stream's thread.
  absl::Status RunAllReduce(float* data, size_t count, Deadline deadline);
  absl::Status ReduceChunk(float* data, size_t count, Deadline deadline);
  absl::Status ReduceChunkInParts(float* data, size_t count, Deadline deadline);
  absl::Status RunGather(const std::byte* send, size_t bytes, std::byte* recv, int root,
                         Deadline deadline);
  absl::Status RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                            Deadline deadline);
  absl::Status RunBroadcast(std::byte* data, size_t bytes, int root, Deadline deadline);
  // All ranks' bytes at `offset` of their `total`, into recv (size, total).
  absl::Status Collect(const std::byte* send, size_t offset, size_t bytes, size_t total,
                       std::byte* recv, Deadline deadline);

  const std::unique_ptr<ShmGroup> group_;
  kernels::HostStream& stream_;
  std::atomic<int64_t> spent_ns_{0};  // written by one of the stream's threads at a time
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_
