// A communicator between processes of one host, over one memfd segment (shm_group.h): ranks write
// their data into their own buffers, and read each other's. Large tensors go in chunks.
//
// All-reduce: with up to two ranks, or few bytes, every rank sums all buffers itself (one-shot: one
// barrier per chunk). More ranks and more bytes: each rank sums its part of the chunk, then all
// collect the parts (two-shot: two barriers, but every byte crosses between cores twice rather than
// size - 1 times). Both add in rank order, so both give the same bits.
#ifndef TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "kernels/backend.h"
#include "worker/comm/communicator_parts.h"
#include "worker/comm/host_communicator.h"
#include "worker/comm/shm_group.h"

namespace tandem::worker {

class ShmCommunicator : public HostCommunicator {
 public:
  // Over `parts.host_stream`. Rank 0 makes the segment and puts its address, the others get it.
  static absl::StatusOr<std::unique_ptr<Communicator>> Open(const CommunicatorParts& parts);
  // Over a group made by the caller. `stream` outlives the communicator.
  ShmCommunicator(std::unique_ptr<ShmGroup> group, kernels::HostStream& stream)
      : HostCommunicator(stream), group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  absl::Status Join(Deadline deadline) override;
  void Abort(const absl::Status& reason) override { group_->Abort(reason); }

 private:
  absl::Status RunAllReduce(float* data, size_t count, Deadline deadline) override;
  absl::Status RunGather(const std::byte* send, size_t bytes, std::byte* recv, int root,
                         Deadline deadline) override;
  absl::Status RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                            Deadline deadline) override;
  absl::Status RunBroadcast(std::byte* data, size_t bytes, int root, Deadline deadline) override;

  absl::Status ReduceChunk(float* data, size_t count, Deadline deadline);
  absl::Status ReduceChunkInParts(float* data, size_t count, Deadline deadline);
  // All ranks' bytes at `offset` of their `total`, into recv (size, total).
  absl::Status Collect(const std::byte* send, size_t offset, size_t bytes, size_t total,
                       std::byte* recv, Deadline deadline);

  const std::unique_ptr<ShmGroup> group_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_SHM_COMMUNICATOR_H_
