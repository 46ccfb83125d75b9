// NcclConnection: NCCL's communicator of one rank: joined, watched and ended without blocking the
// thread that drives the GPU.
//
// The communicator is a blocking one (ncclConfig_t::blocking): a non-blocking one gives each
// collective to a new thread, so that a step would have to wait until its work is on the stream.
// What may block for ever runs as a BackgroundCall instead: joining, which includes the first use
// of each kind of collective, because NCCL connects peers then; and ncclCommAbort, which waits for
// the graphs that hold collectives. Destroy these before the connection. One thread, but for what
// the calls themselves do. Source: NCCL user guide, "Fault tolerance", "Using NCCL with CUDA
// graphs"; ncclCommAbort and commDestroySync in NCCL 2.28's init.cc.
#ifndef TANDEM_WORKER_COMM_NCCL_CONNECTION_H_
#define TANDEM_WORKER_COMM_NCCL_CONNECTION_H_

#include <nccl.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/comm/background_call.h"
#include "worker/comm/communicator_watch.h"

// Returns from the enclosing function when a call of NCCL fails; the error has file, line, the call
// and NCCL's words.
#define TANDEM_NCCL_RETURN_IF_ERROR(expr) \
  TANDEM_RETURN_IF_ERROR(::tandem::worker::NcclStatus((expr), #expr, __FILE__, __LINE__))

namespace tandem::worker {

absl::Status NcclStatus(ncclResult_t result, const char* call, const char* file, int line);

class NcclConnection : public AsyncConnection {
 public:
  // `stream` outlives this, and is on the present device.
  NcclConnection(int rank, int size, const ncclUniqueId& id, cudaStream_t stream);
  // Finalizes the communicator unless it was aborted. A communicator that does not end within a few
  // seconds is abandoned, with a log line.
  ~NcclConnection() override;

  // Begins to join; Done() says when all ranks have. The stream is NCCL's until then.
  void Join();
  // REQUIRES: Done() was true, and no Abort.
  ncclComm_t comm() const { return comm_; }

  // --- AsyncConnection ---
  absl::StatusOr<bool> Done() override;
  // Ends what is enqueued here. Returns at once.
  void Abort() override;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  BackgroundCall joining_;
  BackgroundCall ending_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_NCCL_CONNECTION_H_
