// CheckPorts: which addresses a server may listen on with which security.
#ifndef TANDEM_COMMON_CONFIG_PORT_CHECKS_H_
#define TANDEM_COMMON_CONFIG_PORT_CHECKS_H_

#include "absl/status/status.h"
#include "common/config/server_config.h"

namespace tandem::config {

// INVALID_ARGUMENT in one line: an address that is none; files of TLS that go together and are not;
// an address that other machines reach without what guards it.
absl::Status CheckPorts(const ServerConfig& config);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_PORT_CHECKS_H_
