// HostGroup: barrier, broadcast and exchange of small CPU values between ranks, each call with a
// deadline.
//
// The control plane's counterpart of worker::Communicator. All ranks make the same calls in the
// same order; one thread per rank. An error names the missing rank; after an error the group is
// broken and every later call fails.
#ifndef TANDEM_COMMON_TRANSPORT_HOST_GROUP_H_
#define TANDEM_COMMON_TRANSPORT_HOST_GROUP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::transport {

class HostGroup {
 public:
  virtual ~HostGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual absl::Status Barrier(Deadline deadline) = 0;
  // `value` of rank `root`, on every rank.
  virtual absl::StatusOr<std::string> Broadcast(const std::string& value, int root,
                                                Deadline deadline) = 0;
  // Every rank's value, in rank order.
  virtual absl::StatusOr<std::vector<std::string>> Exchange(const std::string& value,
                                                            Deadline deadline) = 0;
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_HOST_GROUP_H_
