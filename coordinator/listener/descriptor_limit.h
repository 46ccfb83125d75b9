// The limit of open files of this process (ulimit -n), and what of it is for connections.
#ifndef TANDEM_COORDINATOR_LISTENER_DESCRIPTOR_LIMIT_H_
#define TANDEM_COORDINATOR_LISTENER_DESCRIPTOR_LIMIT_H_

#include <cstddef>

#include "absl/status/statusor.h"

namespace tandem::coordinator {

// Connections that the worker port takes beyond one for each rank: workers that are about to be
// refused, or are being replaced.
inline constexpr size_t kSpareWorkerConnections = 64;

// Raises the soft limit to the hard one, for this process and those that it starts. Returns how
// many connections the public port may have, so that enough descriptors are left for the server of
// `ranks` workers itself. RESOURCE_EXHAUSTED with the limit and the needed number if it is too low.
absl::StatusOr<size_t> RaiseDescriptorLimit(int ranks);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_DESCRIPTOR_LIMIT_H_
