#include "worker/comm/host_communicator.h"

#include <chrono>

#include "common/base/check.h"

namespace tandem::worker {

template <typename Run>
void HostCommunicator::Enqueue(Run run) {
  stream_.Enqueue([this, run](Deadline deadline) {
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status = run(deadline);
    const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - begin;
    spent_ns_.fetch_add(spent.count(), std::memory_order_relaxed);
    return status;
  });
}

void HostCommunicator::CheckRoot(int root) const {
  TANDEM_CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
}

void HostCommunicator::AllReduceSum(float* data, size_t count) {
  Enqueue([this, data, count](Deadline deadline) { return RunAllReduce(data, count, deadline); });
}

void HostCommunicator::Gather(const void* send, size_t bytes, void* recv, int root) {
  CheckRoot(root);
  TANDEM_CHECK(send != nullptr || bytes == 0 || rank() == root) << "rank " << rank();
  Enqueue([this, send, bytes, recv, root](Deadline deadline) {
    return RunGather(static_cast<const std::byte*>(send), bytes, static_cast<std::byte*>(recv),
                     root, deadline);
  });
}

void HostCommunicator::AllGather(const void* send, size_t bytes, void* recv) {
  Enqueue([this, send, bytes, recv](Deadline deadline) {
    return RunAllGather(static_cast<const std::byte*>(send), bytes, static_cast<std::byte*>(recv),
                        deadline);
  });
}

void HostCommunicator::Broadcast(void* data, size_t bytes, int root) {
  CheckRoot(root);
  Enqueue([this, data, bytes, root](Deadline deadline) {
    return RunBroadcast(static_cast<std::byte*>(data), bytes, root, deadline);
  });
}

}  // namespace tandem::worker
