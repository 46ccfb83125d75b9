// The communicator of CUDA devices, over NCCL: collectives are enqueued on the worker's stream, one
// device per rank, on one host or several.
//
// Built on a non-blocking NCCL communicator (async_life.h): all calls return at once and are
// polled; a deadline, an error of a peer or an Abort ends them by ncclCommAbort. Which order NCCL
// adds in is its own business and may differ between sizes and machines; repeated runs on one
// machine agree. All that NCCL would connect on first use is connected in Join, so that steps and
// graph captures find it done. Source: NCCL user guide, "Creating a communicator with options",
// "Fault tolerance", "Using NCCL with CUDA graphs".
#ifndef TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"
#include "worker/comm/communicator_parts.h"

namespace tandem::worker {

// Exchanges NCCL's id: rank 0 makes it and puts it, the others get it. The calling thread drives
// the communicator from here on, and its device is the current one (Backend sees to that). The
// communicator watches `parts.device_stream` from Join on. Errors of NCCL carry file, line,
// expression and its own words.
absl::StatusOr<std::unique_ptr<Communicator>> OpenNcclCommunicator(const CommunicatorParts& parts);

// Makes it the communicator of device streams. First thing in main, before there are other threads:
// it sets a variable of the environment that NCCL reads.
void RegisterNcclCommunicator();

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_NCCL_COMMUNICATOR_H_
