#include "common/rpc/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <string>

#include "common/base/check.h"

namespace tandem {
namespace {

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

constexpr std::string_view kPath = ":path";  // of HTTP/2: a call's method

void CheckCall(void* state, grpc_auth_context*, const grpc_metadata* headers, size_t num_headers,
               grpc_process_auth_metadata_done_cb done, void* call) {
  CallHead head;
  for (size_t i = 0; i < num_headers; ++i) {
    const std::string_view name = View(headers[i].key);
    if (name == kPath) head.method = View(headers[i].value);
    head.headers.emplace_back(name, View(headers[i].value));
  }
  const absl::Status status = (*static_cast<const CallCheck*>(state))(head);
  done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
       std::string(status.message()).c_str());
}

// grpcpp has no credentials whose certificates change as a pair, nor a check of calls in plain
// text; gRPC's C interface, on which it stands, has both.
class PortCredentials : public grpc::ServerCredentials {
 public:
  PortCredentials(TlsIdentity* tls, CallCheck check) : tls_(tls), check_(std::move(check)) {}

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    TANDEM_CHECK(false) << "the check is set when the credentials are made";
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* credentials = Make();
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  grpc_server_credentials* Make() {
    grpc_server_credentials* credentials =
        tls_ == nullptr
            ? grpc_insecure_server_credentials_create()
            : grpc_ssl_server_credentials_create_with_options(
                  grpc_ssl_server_credentials_create_options_using_config_fetcher(
                      tls_->has_ca() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                     : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                      &Fetch, this));
    if (check_) {
      grpc_server_credentials_set_auth_metadata_processor(
          credentials, {.process = &CheckCall,
                        .destroy = [](void* state) { delete static_cast<CallCheck*>(state); },
                        .state = new CallCheck(check_)});
    }
    return credentials;
  }

  // Before each handshake, on the thread that accepts.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* state, grpc_ssl_server_certificate_config** config) {
    auto& self = *static_cast<PortCredentials*>(state);
    std::shared_ptr<const TlsPem> now = self.tls_->Current();
    if (now == self.given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{.private_key = now->key.c_str(),
                                          .cert_chain = now->cert.c_str()};
    // gRPC 1.51 needs authorities also where it asks no client for a certificate.
    *config = grpc_ssl_server_certificate_config_create(
        now->ca.empty() ? now->cert.c_str() : now->ca.c_str(), &pair, 1);
    self.given_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  TlsIdentity* const tls_;
  const CallCheck check_;
  std::shared_ptr<const TlsPem> given_;  // to gRPC, last
};

}  // namespace

std::string_view CallHead::Header(std::string_view name) const {
  std::string_view found;
  int count = 0;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    found = value;
    ++count;
  }
  return count == 1 ? found : std::string_view();
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(TlsIdentity* tls, CallCheck check) {
  return std::make_shared<PortCredentials>(tls, std::move(check));
}

}  // namespace tandem
