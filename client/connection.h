// Connection: which server a command calls, and how it shows who it is.
#ifndef TANDEM_CLIENT_CONNECTION_H_
#define TANDEM_CLIENT_CONNECTION_H_

#include <string>

#include "absl/status/status.h"

namespace tandem::client {

inline constexpr char kDefaultServer[] = "127.0.0.1:50051";

struct Connection {
  std::string server = kDefaultServer;  // HOST:PORT
  bool tls = false;                     // also if a file of TLS is named
  std::string tls_ca{};                 // empty: the system's authorities
  std::string tls_client_cert{};
  std::string tls_client_key{};
  std::string tls_server_name{};  // empty: the host of `server`
  std::string token_file{};
  bool insecure = false;  // sends the token in plain text to other machines, too
  // Calls go to all addresses of the server's name in turn, instead of to one of them.
  bool all_addresses = false;

  bool has_tls() const { return tls || !tls_ca.empty() || !tls_client_cert.empty(); }
};

// INVALID_ARGUMENT for a certificate without its key, or a name to look for without TLS.
absl::Status ValidateTls(const Connection& connection);

// INVALID_ARGUMENT for a server that is no HOST:PORT, a certificate without its key, or a token
// that would go to another machine in plain text.
absl::Status Validate(const Connection& connection);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_CONNECTION_H_
