// A communicator between CPU ranks of several hosts, over encrypted connections of each pair of
// ranks (tcp_group.h).
//
// All-reduce: with two ranks, or few bytes, every rank gets all of the others' values and sums them
// itself (one message's time). More ranks and more bytes: each rank sums its part and sends it to
// all (two messages' time, and 2 (size - 1) / size times the bytes instead of size - 1 times). Both
// add in rank order, so the bits are those of ranks on one host.
#ifndef TANDEM_WORKER_COMM_TCP_TCP_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_TCP_TCP_COMMUNICATOR_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/comm/communicator_parts.h"
#include "worker/comm/host_communicator.h"
#include "worker/comm/tcp/tcp_group.h"

namespace tandem::worker {

class TcpCommunicator : public HostCommunicator {
 public:
  struct Options {
    // Of each rank's data; more goes in pieces. A multiple of 4.
    size_t chunk_bytes = size_t{1} << 20;
    // From which on the parts of an all-reduce are summed by different ranks, if there are more
    // than two.
    size_t parts_bytes = size_t{32} << 10;
  };

  // Over `parts.host_stream`.
  static absl::StatusOr<std::unique_ptr<Communicator>> Open(const CommunicatorParts& parts);
  TcpCommunicator(std::unique_ptr<TcpGroup> group, kernels::HostStream& stream,
                  const Options& options);

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  absl::Status Join(Deadline deadline) override { return group_->Join(deadline); }
  void Abort(const absl::Status& reason) override { group_->Abort(reason); }

 private:
  absl::Status RunAllReduce(float* data, size_t count, Deadline deadline) override;
  absl::Status RunGather(const std::byte* send, size_t bytes, std::byte* recv, int root,
                         Deadline deadline) override;
  absl::Status RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                            Deadline deadline) override;
  absl::Status RunBroadcast(std::byte* data, size_t bytes, int root, Deadline deadline) override;

  // One chunk of an all-reduce of `tag`.
  absl::Status ReduceAll(const CollectiveTag& tag, std::span<float> data, Deadline deadline);
  absl::Status ReduceInParts(const CollectiveTag& tag, std::span<float> data, Deadline deadline);
  // data += the others' values, which lie in their slots, in rank order.
  void AddSlots(std::span<float> data) const;
  // A rank's room in the scratch, of `count` values.
  std::span<float> Slot(int rank, size_t count) const;
  // Calls part(begin, bytes) for every chunk of `bytes`; the first error ends it.
  template <typename Part>
  absl::Status InChunks(size_t bytes, Part part) const;
  template <typename Each>
  void ForOthers(Each each) const;

  const std::unique_ptr<TcpGroup> group_;
  const Options options_;
  const size_t slot_floats_;
  const std::unique_ptr<float[]> scratch_;  // (size, slot_floats_)
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_TCP_TCP_COMMUNICATOR_H_
