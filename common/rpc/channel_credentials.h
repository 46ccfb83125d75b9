// The credentials of a gRPC channel: plain text or TLS.
#ifndef TANDEM_COMMON_RPC_CHANNEL_CREDENTIALS_H_
#define TANDEM_COMMON_RPC_CHANNEL_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/tls/tls_files.h"

namespace grpc {
class ChannelCredentials;
}

namespace tandem {

// Plain text if no files are named. The files are read now; without authorities the system's are
// trusted. INVALID_ARGUMENT as TlsIdentity::Open.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFlags& flags, const TlsFiles& files);

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_CHANNEL_CREDENTIALS_H_
