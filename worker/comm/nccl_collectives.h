// Collectives of NCCL as Communicator has them, enqueued on a stream. Return when NCCL has taken
// them; the first use of a kind waits for the peers.
#ifndef TANDEM_WORKER_COMM_NCCL_COLLECTIVES_H_
#define TANDEM_WORKER_COMM_NCCL_COLLECTIVES_H_

#include <nccl.h>

#include <cstddef>

namespace tandem::worker {

struct NcclRank {
  ncclComm_t comm = nullptr;
  int rank = 0;
  int size = 1;
  cudaStream_t stream = nullptr;
};

inline ncclResult_t NcclAllReduceSum(const NcclRank& self, float* data, size_t count) {
  return ncclAllReduce(data, data, count, ncclFloat32, ncclSum, self.comm, self.stream);
}

inline ncclResult_t NcclGather(const NcclRank& self, const void* send, size_t bytes, void* recv,
                               int root) {
  if (const ncclResult_t begun = ncclGroupStart(); begun != ncclSuccess) return begun;
  const bool sends = send != nullptr || self.rank != root;
  ncclResult_t result = ncclSuccess;
  if (sends) result = ncclSend(send, bytes, ncclInt8, root, self.comm, self.stream);
  for (int peer = 0; self.rank == root && peer < self.size && result == ncclSuccess; ++peer) {
    if (peer == root && !sends) continue;
    void* const part = static_cast<std::byte*>(recv) + static_cast<size_t>(peer) * bytes;
    result = ncclRecv(part, bytes, ncclInt8, peer, self.comm, self.stream);
  }
  const ncclResult_t ended = ncclGroupEnd();  // in any case
  return result == ncclSuccess ? ended : result;
}

inline ncclResult_t NcclAllGather(const NcclRank& self, const void* send, size_t bytes,
                                  void* recv) {
  return ncclAllGather(send, recv, bytes, ncclInt8, self.comm, self.stream);
}

inline ncclResult_t NcclBroadcast(const NcclRank& self, void* data, size_t bytes, int root) {
  return ncclBroadcast(data, data, bytes, ncclInt8, root, self.comm, self.stream);
}

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_NCCL_COLLECTIVES_H_
