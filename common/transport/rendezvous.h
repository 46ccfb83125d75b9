// Rendezvous: a small key-value store by which ranks exchange segments, ids and addresses.
//
// Keys belong to one epoch. Thread-safe. Implementations: in memory; the coordinator's registry
// over the control stream.
#ifndef TANDEM_COMMON_TRANSPORT_RENDEZVOUS_H_
#define TANDEM_COMMON_TRANSPORT_RENDEZVOUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::transport {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // ALREADY_EXISTS when the key was put before in this epoch.
  virtual absl::Status Put(const std::string& key, const std::string& value) = 0;
  // Waits for the key. DEADLINE_EXCEEDED naming it.
  virtual absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) = 0;
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_RENDEZVOUS_H_
