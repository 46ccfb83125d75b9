// SecurityConfig: certificates and tokens of the ports that clients use. Only for the coordinator.
#ifndef TANDEM_COMMON_CONFIG_SECURITY_CONFIG_H_
#define TANDEM_COMMON_CONFIG_SECURITY_CONFIG_H_

#include <string>

#include "common/config/field.h"

namespace tandem::config {

struct SecurityConfig {
  std::string tls_cert{};
  std::string tls_key{};
  std::string tls_client_ca{};
  std::string tokens{};
  bool insecure = false;

  void ForEach(FieldList& visit) {
    visit.BeginSection("Security");
    visit(tls_cert, {.flag = "--tls-cert",
                     .help = "PEM file with the certificate chain of the gRPC and HTTP ports; "
                             "without, they are plain text"});
    visit(tls_key, {.flag = "--tls-key",
                    .help = "PEM file with its key; a change of these files is noticed"});
    visit(tls_client_ca, {.flag = "--tls-client-ca",
                          .help = "PEM file with authorities: clients must have a certificate of "
                                  "one of them"});
    visit(tokens, {.flag = "--tokens",
                   .help = "file with the bearer tokens that clients must show, their scopes and "
                           "limits (docs/security.md); a change is noticed"});
    visit(insecure, {.flag = "--insecure",
                     .help = "listen on addresses that other machines reach without TLS or without "
                             "tokens"});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_SECURITY_CONFIG_H_
