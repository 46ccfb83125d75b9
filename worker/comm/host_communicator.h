// HostCommunicator: what communicators on the CPU share: collectives run on the backend's host
// stream, in order, and are measured.
#ifndef TANDEM_WORKER_COMM_HOST_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_HOST_COMMUNICATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "kernels/backend.h"
#include "worker/comm/communicator.h"

namespace tandem::worker {

class HostCommunicator : public Communicator {
 public:
  void AllReduceSum(float* data, size_t count) final;
  void Gather(const void* send, size_t bytes, void* recv, int root) final;
  void AllGather(const void* send, size_t bytes, void* recv) final;
  void Broadcast(void* data, size_t bytes, int root) final;
  std::optional<Duration> TimeSpent() const final {
    return std::chrono::nanoseconds(spent_ns_.load(std::memory_order_relaxed));
  }

 protected:
  // `stream` outlives the communicator.
  explicit HostCommunicator(kernels::HostStream& stream) : stream_(stream) {}

  // The collectives, run on the stream's thread. `send` of the root may be null in a gather.
  virtual absl::Status RunAllReduce(float* data, size_t count, Deadline deadline) = 0;
  virtual absl::Status RunGather(const std::byte* send, size_t bytes, std::byte* recv, int root,
                                 Deadline deadline) = 0;
  virtual absl::Status RunAllGather(const std::byte* send, size_t bytes, std::byte* recv,
                                    Deadline deadline) = 0;
  virtual absl::Status RunBroadcast(std::byte* data, size_t bytes, int root, Deadline deadline) = 0;

 private:
  template <typename Run>
  void Enqueue(Run run);
  void CheckRoot(int root) const;

  kernels::HostStream& stream_;
  std::atomic<int64_t> spent_ns_{0};  // written by one of the stream's threads at a time
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_HOST_COMMUNICATOR_H_
