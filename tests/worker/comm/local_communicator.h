// A communicator between threads of one process. The last rank to arrive does the work for all,
// under one lock: simple, not fast.
#ifndef TANDEM_TESTS_WORKER_COMM_LOCAL_COMMUNICATOR_H_
#define TANDEM_TESTS_WORKER_COMM_LOCAL_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "worker/comm/communicator.h"

namespace tandem::worker {

// One communicator per rank, each on its rank's stream; streams outlive them. In a group of one
// nothing is enqueued for what changes nothing (sums, broadcasts).
std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(
    const std::vector<kernels::HostStream*>& streams);

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_COMM_LOCAL_COMMUNICATOR_H_
