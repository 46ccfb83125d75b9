// "HOST:PORT" as in flags and ready lines. IPv6 hosts are in brackets.
#ifndef TANDEM_COMMON_BASE_ADDRESS_H_
#define TANDEM_COMMON_BASE_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tandem {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;
};

// INVALID_ARGUMENT naming what is wrong: no port, a port outside [0, 65535], an empty host.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// Whether the address can be reached only from this machine: 127.0.0.0/8, [::1] or localhost.
bool IsLoopback(std::string_view address);

// `address` with its port replaced: turns "HOST:0" into the bound address.
std::string WithPort(std::string_view address, int port);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_ADDRESS_H_
