// The communicator of device streams, where this program has one: a program that links it says so
// once, first thing in main, so that all others have no trace of it.
#ifndef TANDEM_WORKER_COMM_DEVICE_COMMUNICATORS_H_
#define TANDEM_WORKER_COMM_DEVICE_COMMUNICATORS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/transport/rendezvous.h"
#include "kernels/backend.h"
#include "worker/comm/communicator.h"

namespace tandem::worker {

// A communicator that all ranks still have to join; until then only Abort may be called.
class JoinableCommunicator : public Communicator {
 public:
  // Called by all ranks at once; returns when all have joined. DEADLINE_EXCEEDED, or why it was
  // aborted.
  virtual absl::Status Join(Deadline deadline) = 0;
};

// Borrowed, but for the values; `stream` outlives the communicator, `rendezvous` the call.
struct DeviceCommunicatorParts {
  int rank = 0;
  int size = 1;
  Epoch epoch;
  transport::Rendezvous& rendezvous;
  kernels::DeviceStream& stream;
  Deadline deadline;
};

using DeviceCommunicatorMaker = std::function<absl::StatusOr<std::unique_ptr<JoinableCommunicator>>(
    const DeviceCommunicatorParts& parts)>;

// Not thread-safe: before other threads.
void RegisterDeviceCommunicator(DeviceCommunicatorMaker maker);

// UNIMPLEMENTED where none was registered.
absl::StatusOr<std::unique_ptr<JoinableCommunicator>> OpenDeviceCommunicator(
    const DeviceCommunicatorParts& parts);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_DEVICE_COMMUNICATORS_H_
