// RendezvousRegistry: the coordinator's side of transport::Rendezvous: blobs exchanged by ranks
// within one epoch.
//
// Get replies through a callback, immediately or when the key is put. Thread-safe; callbacks run on
// the thread that put, unlocked.
#ifndef TANDEM_COORDINATOR_CLUSTER_RENDEZVOUS_REGISTRY_H_
#define TANDEM_COORDINATOR_CLUSTER_RENDEZVOUS_REGISTRY_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

class RendezvousRegistry {
 public:
  using Answer = std::function<void(absl::StatusOr<std::string>)>;

  // Removes every key; pending gets of other epochs end with ABORTED.
  void SetEpoch(Epoch epoch);
  // ALREADY_EXISTS for a second put; FAILED_PRECONDITION for another epoch; RESOURCE_EXHAUSTED
  // above the bounds.
  absl::Status Put(Epoch epoch, const std::string& key, const std::string& value);
  void Get(Epoch epoch, const std::string& key, Answer answer);

  static constexpr size_t kMaxKeys = 4096;
  static constexpr size_t kMaxValueBytes = 1 << 16;
  static constexpr size_t kMaxWaiters = 4096;

 private:
  absl::Status CheckEpoch(Epoch epoch) const TANDEM_REQUIRES(mutex_);

  Mutex mutex_;
  Epoch epoch_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::string> values_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Answer>> waiters_ TANDEM_GUARDED_BY(mutex_);
  size_t num_waiters_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_RENDEZVOUS_REGISTRY_H_
