#include "client/connection_flags.h"

namespace tandem::client {

void AddConnectionFlags(cli::Command& command, Connection& connection) {
  command.Add({connection.server, {.flag = "--server", .help = "HOST:PORT"}});
  command.Add({connection.tls,
               {.flag = "--tls", .help = "TLS, with the authorities that the system trusts"}});
  command.Add({connection.tls_ca,
               {.flag = "--tls-ca", .help = "TLS, with the authorities of this PEM file instead"}});
  command.Add({connection.tls_client_cert,
               {.flag = "--tls-client-cert",
                .help = "PEM file with the certificate chain to show to the server"}});
  command.Add(
      {connection.tls_client_key, {.flag = "--tls-client-key", .help = "PEM file with its key"}});
  command.Add({connection.tls_server_name,
               {.flag = "--tls-server-name",
                .help = "the name that the server's certificate must have (the host)"}});
  command.Add({connection.token_file,
               {.flag = "--token-file", .help = "file with the bearer token to show"}});
  command.Add(
      {connection.insecure,
       {.flag = "--insecure", .help = "send the token to another machine also in plain text"}});
  // TANDEM_INSECURE is the server's, and says nothing of this program's token.
  command.OnlyOnCommandLine("--insecure");
  command.OnCheck([&connection] { return Validate(connection); });
}

void AddTimeoutFlag(cli::Command& command, Duration& timeout, std::string_view help) {
  constexpr double kYear = 366 * 24 * 3600;
  command.Add({timeout, {.flag = "--timeout", .help = help, .least = 1e-3, .most = kYear}});
}

void AddAdapterFlag(cli::Command& command, std::string& adapter) {
  command.Add({adapter,
               {.flag = "--adapter",
                .help = "one of the server's LoRA adapters (default: the model alone)"}});
}

}  // namespace tandem::client
