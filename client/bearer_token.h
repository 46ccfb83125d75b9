// BearerToken: an interceptor that shows a token to the server in every call of a channel.
#ifndef TANDEM_CLIENT_BEARER_TOKEN_H_
#define TANDEM_CLIENT_BEARER_TOKEN_H_

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::client {

using Interceptors =
    std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

// For CreateCustomChannelWithInterceptors; none for an empty token.
Interceptors ShowToken(const std::string& token);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BEARER_TOKEN_H_
