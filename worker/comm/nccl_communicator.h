// The communicator of CUDA devices, over NCCL: collectives are enqueued on the worker's stream, one
// device per rank, on one host or several.
//
// A deadline, an error of a peer or an Abort ends collectives by ncclCommAbort (nccl_connection.h).
// NCCL's order of addition may differ between sizes and machines; repeated runs on one machine
// agree. All connections that NCCL would make on first use are made in Join, before steps and graph
// captures. Graphs that hold collectives must be destroyed before the communicator. Source: NCCL
// user guide, "Fault tolerance", "Using NCCL with CUDA graphs".
#ifndef TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"
#include "worker/comm/communicator_parts.h"

namespace tandem::worker {

// Exchanges NCCL's id: rank 0 makes it and puts it, the others get it. From here on only the
// calling thread uses the communicator, with its device current (ensured by Backend). The
// communicator watches `parts.device_stream` from Join on. Errors of NCCL carry file, line,
// expression and NCCL's message.
absl::StatusOr<std::unique_ptr<Communicator>> OpenNcclCommunicator(const CommunicatorParts& parts);

// Registers it as the communicator of device streams. Call at the start of main, before other
// threads: it sets an environment variable read by NCCL.
void RegisterNcclCommunicator();

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_
