// The parts from which a communicator is built.
#ifndef TANDEM_WORKER_COMM_COMMUNICATOR_PARTS_H_
#define TANDEM_WORKER_COMM_COMMUNICATOR_PARTS_H_

#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/transport/rendezvous.h"
#include "kernels/backend.h"

namespace tandem::worker {

// Pointers are borrowed: the stream outlives the communicator, `rendezvous` the call.
struct CommunicatorParts {
  int rank = 0;
  int size = 1;
  Epoch epoch;
  transport::Rendezvous& rendezvous;
  // The backend's: one of them, the other is null.
  kernels::HostStream* host_stream = nullptr;
  kernels::DeviceStream* device_stream = nullptr;
  // Of CPU ranks: whether they are connected by TCP, and where this rank listens then, as
  // HOST:PORT; empty: at all addresses of this machine, on a free port.
  bool over_tcp = false;
  std::string listen{};
  Deadline deadline;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_COMMUNICATOR_PARTS_H_
