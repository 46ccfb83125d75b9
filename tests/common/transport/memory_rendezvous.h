// A rendezvous inside one process: tests, and the store behind the coordinator's registry. One
// object is one epoch.
#ifndef TANDEM_TESTS_COMMON_TRANSPORT_MEMORY_RENDEZVOUS_H_
#define TANDEM_TESTS_COMMON_TRANSPORT_MEMORY_RENDEZVOUS_H_

#include <map>
#include <string>

#include "common/base/mutex.h"
#include "common/transport/rendezvous.h"

namespace tandem::transport {

class MemoryRendezvous : public Rendezvous {
 public:
  absl::Status Put(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> values_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_COMMON_TRANSPORT_MEMORY_RENDEZVOUS_H_
