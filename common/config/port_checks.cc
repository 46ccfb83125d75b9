#include "common/config/port_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"

namespace tandem::config {
namespace {

// Certificate and key are given together, and authorities with them; `all`: all three.
absl::Status CheckTls(const std::string& prefix, const std::string& cert, const std::string& key,
                      const std::string& ca_flag, const std::string& ca, bool all) {
  if (cert.empty() != key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "-cert and ", prefix, "-key are given together"));
  }
  if (!ca.empty() && cert.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(ca_flag, " needs ", prefix, "-cert"));
  }
  if (all && !cert.empty() && ca.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, "-cert needs ", ca_flag));
  }
  return absl::OkStatus();
}

// Other machines may reach a port only by TLS, and only if the server knows who is there.
absl::Status CheckExposure(const std::string& flag, const std::string& address,
                           const SecurityConfig& security) {
  TANDEM_RETURN_IF_ERROR(Annotate(ParseHostPort(address).status(), flag));
  if (IsLoopback(address) || security.insecure) return absl::OkStatus();
  const bool knows = !security.tokens.empty() || !security.tls_client_ca.empty();
  if (!security.tls_cert.empty() && knows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " ", address, ": other machines reach this address, so it needs --tls-cert and ",
      "--tls-key, and --tokens or --tls-client-ca; or --insecure"));
}

absl::Status CheckClientPorts(const ServerConfig& config) {
  const SecurityConfig& security = config.security;
  TANDEM_RETURN_IF_ERROR(CheckTls("--tls", security.tls_cert, security.tls_key, "--tls-client-ca",
                                  security.tls_client_ca, /*all=*/false));
  TANDEM_RETURN_IF_ERROR(CheckExposure("--listen", config.listen, security));
  if (!config.metrics_listen.empty()) {
    TANDEM_RETURN_IF_ERROR(
        Annotate(ParseHostPort(config.metrics_listen).status(), "--metrics-listen"));
    if (!IsLoopback(config.metrics_listen) && !security.insecure) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--metrics-listen ", config.metrics_listen, ": other machines reach this address, and ",
          "the port has neither TLS nor tokens; --insecure says that they may"));
    }
  }
  if (config.http_listen.empty()) return absl::OkStatus();
  return CheckExposure("--http-listen", config.http_listen, security);
}

absl::Status CheckWorkerPort(const ClusterConfig& cluster) {
  TANDEM_RETURN_IF_ERROR(
      Annotate(ParseHostPort(cluster.worker_listen).status(), "--worker-listen"));
  TANDEM_RETURN_IF_ERROR(CheckTls("--worker-tls", cluster.worker_tls_cert, cluster.worker_tls_key,
                                  "--worker-tls-ca", cluster.worker_tls_ca, /*all=*/true));
  const bool external = cluster.workers == WorkerSource::kExternal;
  if (!cluster.worker_tls_cert.empty() && !external) {
    return absl::InvalidArgumentError("--worker-tls-cert is of --workers external");
  }
  if (!IsLoopback(cluster.worker_listen) && cluster.worker_tls_cert.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-listen ", cluster.worker_listen,
                     ": other machines reach this address, so it needs --worker-tls-cert, "
                     "--worker-tls-key and --worker-tls-ca"));
  }
  if (external && cluster.worker_token_file.empty()) {
    return absl::InvalidArgumentError("--workers external needs --worker-token-file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPorts(const ServerConfig& config) {
  TANDEM_RETURN_IF_ERROR(CheckClientPorts(config));
  return CheckWorkerPort(config.cluster);
}

}  // namespace tandem::config
