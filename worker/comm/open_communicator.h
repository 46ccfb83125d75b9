// OpenCommunicator: the communicator that fits a backend's stream.
//
// A program that links a communicator for device streams registers it at the start of main, so that
// other programs do not depend on it.
#ifndef TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_
#define TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"
#include "worker/comm/communicator_parts.h"

namespace tandem::worker {

// Exchanges addresses through the rendezvous. The result still has to be joined; until then only
// Abort may be called. Shared memory or TCP for a host stream, else the communicator registered for
// device streams. Errors of the rendezvous; UNIMPLEMENTED if this program has no communicator for
// the stream, or there is no stream.
absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator(const CommunicatorParts& parts);

using CommunicatorOpener =
    std::function<absl::StatusOr<std::unique_ptr<Communicator>>(const CommunicatorParts& parts)>;

// Not thread-safe: call before other threads start.
void RegisterDeviceCommunicator(CommunicatorOpener opener);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_OPEN_COMMUNICATOR_H_
