// A host group of threads in one process.
#ifndef TANDEM_COMMON_TRANSPORT_IN_PROCESS_HOST_GROUP_H_
#define TANDEM_COMMON_TRANSPORT_IN_PROCESS_HOST_GROUP_H_

#include <memory>
#include <vector>

#include "common/transport/host_group.h"

namespace tandem::transport {

// One end per rank, to be used by a thread each. A size of 1 or more.
std::vector<std::unique_ptr<HostGroup>> MakeInProcessHostGroup(int size);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_IN_PROCESS_HOST_GROUP_H_
