// OpenCommunicator: the communicator that fits a backend's stream.
//
// A program that links a communicator for device streams registers it first thing in main, so that
// all others have no trace of it.
#ifndef TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"
#include "worker/comm/communicator_parts.h"

namespace tandem::worker {

// Exchanges through the rendezvous what ranks need to find each other. The result still has to be
// joined; until then only Abort may be called. Shared memory over a host stream, else what was
// registered over a device stream. Errors of the rendezvous; UNIMPLEMENTED where this program has
// no communicator for the stream, or there is no stream.
absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator(const CommunicatorParts& parts);

using CommunicatorOpener =
    std::function<absl::StatusOr<std::unique_ptr<Communicator>>(const CommunicatorParts& parts)>;

// Not thread-safe: before other threads.
void RegisterDeviceCommunicator(CommunicatorOpener opener);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_
