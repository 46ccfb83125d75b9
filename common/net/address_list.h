// The socket addresses of a HOST:PORT, as the system's resolver gives them.
#ifndef TANDEM_COMMON_NET_ADDRESS_LIST_H_
#define TANDEM_COMMON_NET_ADDRESS_LIST_H_

#include <netdb.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/address.h"

namespace tandem::net {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// For stream sockets; `flags` are getaddrinfo's. UNAVAILABLE with the resolver's reason.
absl::StatusOr<AddressList> Resolve(const HostPort& address, int flags);

}  // namespace tandem::net

#endif  // TANDEM_COMMON_NET_ADDRESS_LIST_H_
