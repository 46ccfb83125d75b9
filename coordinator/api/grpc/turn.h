// TakeTurn: a call's turn by the limits of its token.
#ifndef TANDEM_COORDINATOR_API_GRPC_TURN_H_
#define TANDEM_COORDINATOR_API_GRPC_TURN_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "coordinator/api/auth/gate.h"

namespace tandem::coordinator {

// Sets `turn`, which lasts as long as the hold. `gate` may be null: there are no limits.
// RESOURCE_EXHAUSTED, with the time to come again (retry_hint.h), if they are reached.
grpc::Status TakeTurn(Gate* gate, grpc::CallbackServerContext& context, TokenUsage::Hold& turn);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TURN_H_
