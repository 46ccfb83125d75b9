// The credentials of a gRPC port: plain text or TLS with certificates that may change, and a check
// of every call's head.
#ifndef TANDEM_COMMON_RPC_SERVER_CREDENTIALS_H_
#define TANDEM_COMMON_RPC_SERVER_CREDENTIALS_H_

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/tls/tls_identity.h"

namespace grpc {
class ServerCredentials;
}

namespace tandem {

// What is known of a call before a service sees it.
struct CallHead {
  std::string_view method;  // "/tandem.v1.Generation/Generate", or anything else
  std::vector<std::pair<std::string_view, std::string_view>> headers;

  // The header's value; empty if there is none, or more than one, which could be read either way.
  std::string_view Header(std::string_view name) const;
};

// Any status but OK ends the call with it: no service sees it, and none of its message is read.
// Called on gRPC's threads, several at a time.
using CallCheck = std::function<absl::Status(const CallHead& head)>;

// `tls` may be null: plain text. If it has authorities, clients must have a certificate of theirs.
// Handshakes use the files as they are then; connections that stand are not touched. `check` may be
// empty. For one port; the credentials, and what `tls` refers to, must last as long as it accepts.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(TlsIdentity* tls, CallCheck check);

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_SERVER_CREDENTIALS_H_
