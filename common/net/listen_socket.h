// ListenSocket: a TCP address that is bound and listening: everything about a port that can fail,
// before anything else is started.
#ifndef TANDEM_COMMON_NET_LISTEN_SOCKET_H_
#define TANDEM_COMMON_NET_LISTEN_SOCKET_H_

#include <netdb.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem::net {

// Movable; closes its descriptors.
class ListenSocket {
 public:
  // Binds every address of HOST:PORT (a name may have several); port 0 takes a free one.
  // `flag` begins every error. INVALID_ARGUMENT for an address that can't be parsed, UNAVAILABLE
  // with the system's reason for one that can't be resolved or bound.
  static absl::StatusOr<ListenSocket> Bind(const std::string& flag, const std::string& address);
  ListenSocket(ListenSocket&& other) noexcept
      : address_(std::move(other.address_)), fds_(std::exchange(other.fds_, {})) {}
  ListenSocket& operator=(ListenSocket&&) = delete;
  ~ListenSocket();

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }
  // Not blocking.
  const std::vector<int>& fds() const { return fds_; }

 private:
  ListenSocket() = default;
  bool Has(const addrinfo& address) const;

  std::string address_;
  std::vector<int> fds_;
};

}  // namespace tandem::net

#endif  // TANDEM_COMMON_NET_LISTEN_SOCKET_H_
