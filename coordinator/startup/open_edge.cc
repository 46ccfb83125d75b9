#include "coordinator/startup/open_edge.h"

#include <utility>

#include "common/base/status.h"
#include "coordinator/api/auth/gate.h"
#include "coordinator/api/auth/token_store.h"

namespace tandem::coordinator {
namespace {

constexpr TlsFlags kTlsFlags{.cert = "--tls-cert", .key = "--tls-key", .ca = "--tls-client-ca"};

// Loopback: what passes here is what the gateway has taken out of TLS.
absl::Status OpenGatewayPort(OpenedEdge& opened) {
  TANDEM_ASSIGN_OR_RETURN(net::ListenSocket socket,
                          net::ListenSocket::Bind("the gateway's port", "127.0.0.1:0"));
  opened.gateway_address = socket.address();
  opened.edge.gateway_socket.emplace(std::move(socket));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenedEdge> OpenEdge(const config::ServerConfig& config) {
  const config::SecurityConfig& security = config.security;
  OpenedEdge opened;
  std::unique_ptr<TokenStore> tokens;
  if (!security.tls_cert.empty()) {
    TANDEM_ASSIGN_OR_RETURN(opened.edge.tls,
                            TlsIdentity::Open(kTlsFlags, {.cert = security.tls_cert,
                                                          .key = security.tls_key,
                                                          .ca = security.tls_client_ca}));
  }
  if (!security.tokens.empty()) {
    TANDEM_ASSIGN_OR_RETURN(tokens, TokenStore::Open("--tokens", security.tokens));
  }
  const bool guarded = tokens != nullptr || opened.edge.tls != nullptr;
  std::string gateway_token;
  if (guarded && !config.http_listen.empty()) {
    gateway_token = DrawToken();
    TANDEM_ASSIGN_OR_RETURN(opened.gateway_token, SecretFile::Create(gateway_token));
    if (opened.edge.tls != nullptr) TANDEM_RETURN_IF_ERROR(OpenGatewayPort(opened));
  }
  if (guarded) opened.edge.gate = std::make_shared<Gate>(std::move(tokens), gateway_token);
  return opened;
}

std::vector<std::string> GatewayFlags(const config::ServerConfig& config, const OpenedEdge& opened,
                                      const std::string& address) {
  const config::SecurityConfig& security = config.security;
  std::vector<std::string> flags = {
      "--server",     opened.gateway_address.empty() ? address : opened.gateway_address,
      "--listen",     config.http_listen,
      "--log-level",  config::NameOf(config.log_level),
      "--log-format", config::NameOf(config.log_format)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags.insert(flags.end(), {flag, value});
  };
  add("--tls-cert", security.tls_cert);
  add("--tls-key", security.tls_key);
  add("--tls-client-ca", security.tls_client_ca);
  if (opened.gateway_token != nullptr) add("--parent-token-file", opened.gateway_token->path());
  if (security.insecure) flags.emplace_back("--insecure");
  return flags;
}

}  // namespace tandem::coordinator
