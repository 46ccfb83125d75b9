#include "client/connection_flags.h"

namespace tandem::client {

void VisitConnection(Connection& connection, config::FieldList& visit) {
  visit(connection.tls,
        {.flag = "--tls", .help = "TLS, with the authorities that the system trusts"});
  visit(connection.tls_ca,
        {.flag = "--tls-ca", .help = "TLS, with the authorities of this PEM file instead"});
  visit(connection.tls_client_cert,
        {.flag = "--tls-client-cert",
         .help = "PEM file with the certificate chain to show to the server"});
  visit(connection.tls_client_key, {.flag = "--tls-client-key", .help = "PEM file with its key"});
  visit(connection.tls_server_name,
        {.flag = "--tls-server-name",
         .help = "the name that the server's certificate must have (the host)"});
  visit(connection.token_file,
        {.flag = "--token-file", .help = "file with the bearer token to show"});
  visit(connection.insecure,
        {.flag = "--insecure", .help = "send the token to another machine also in plain text"});
}

void AddConnectionFlags(cli::Command& command, Connection& connection) {
  command.Add({connection.server, {.flag = "--server", .help = "HOST:PORT"}});
  config::FieldList fields;
  fields.BeginSection("");
  VisitConnection(connection, fields);
  for (const config::Field& field : fields.All()) command.Add(field);
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
