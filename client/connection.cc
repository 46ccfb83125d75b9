#include "client/connection.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"

namespace tandem::client {

absl::Status ValidateTls(const Connection& connection) {
  if (connection.tls_client_cert.empty() != connection.tls_client_key.empty()) {
    return absl::InvalidArgumentError("--tls-client-cert and --tls-client-key are given together");
  }
  if (!connection.tls_server_name.empty() && !connection.has_tls()) {
    return absl::InvalidArgumentError("--tls-server-name needs --tls or --tls-ca");
  }
  return absl::OkStatus();
}

absl::Status Validate(const Connection& connection) {
  TANDEM_RETURN_IF_ERROR(Annotate(ParseHostPort(connection.server).status(), "--server"));
  TANDEM_RETURN_IF_ERROR(ValidateTls(connection));
  const bool in_plain_text = !connection.has_tls() && !IsLoopback(connection.server);
  if (connection.token_file.empty() || !in_plain_text || connection.insecure) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file: a token goes to another machine, ", connection.server,
                   ", only by --tls or --tls-ca, or with --insecure"));
}

}  // namespace tandem::client
