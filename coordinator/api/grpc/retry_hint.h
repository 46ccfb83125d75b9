// When a refused call is worth another try, told in both of gRPC's ways: google.rpc.RetryInfo in
// the status' details, and the trailing metadata "grpc-retry-pushback-ms", which a client's own
// retry policy obeys (https://github.com/grpc/proposal/blob/master/A6-client-retries.md).
#ifndef TANDEM_COORDINATOR_API_GRPC_RETRY_HINT_H_
#define TANDEM_COORDINATOR_API_GRPC_RETRY_HINT_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <chrono>

#include "absl/status/status.h"

namespace tandem::coordinator {

// `status` for a call that is refused before it has answered anything. RESOURCE_EXHAUSTED (a full
// queue) and UNAVAILABLE (loading, draining) carry a hint, which is also added to `context`; call
// it before Finish.
grpc::Status Refusal(grpc::CallbackServerContext& context, const absl::Status& status);
// The same with a time that is known.
grpc::Status Refusal(grpc::CallbackServerContext& context, const absl::Status& status,
                     std::chrono::milliseconds delay);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_RETRY_HINT_H_
