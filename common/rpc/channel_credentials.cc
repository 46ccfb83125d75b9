#include "common/rpc/channel_credentials.h"

#include <grpcpp/security/credentials.h>

#include "common/base/status.h"
#include "common/tls/tls_identity.h"

namespace tandem {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFlags& flags, const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureChannelCredentials();
  TANDEM_ASSIGN_OR_RETURN(const auto identity, TlsIdentity::Open(flags, files));
  const std::shared_ptr<const TlsPem> pem = identity->Current();
  return grpc::SslCredentials(
      {.pem_root_certs = pem->ca, .pem_private_key = pem->key, .pem_cert_chain = pem->cert});
}

}  // namespace tandem
