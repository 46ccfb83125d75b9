// WorkerIdentity: which rank the certificate of a worker is for, by its names.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_IDENTITY_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_IDENTITY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem::coordinator {

struct WorkerIdentity {
  std::optional<int> rank{};  // empty: any

  // From the subject alternative names of a verified certificate: "tandem-worker" is of any rank,
  // "tandem-worker-3" of rank 3. PERMISSION_DENIED if none of the names is a worker's.
  static absl::StatusOr<WorkerIdentity> FromNames(const std::vector<std::string>& names);

  // The rank that a worker gets if it asks for `asked` (empty: any). PERMISSION_DENIED if that is
  // another than the certificate's.
  absl::StatusOr<std::optional<int>> Admit(std::optional<int> asked) const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_IDENTITY_H_
