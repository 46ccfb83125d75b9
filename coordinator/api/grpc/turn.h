// What a call's token says of it: its turn by the token's limits, and whose it is.
#ifndef TANDEM_COORDINATOR_API_GRPC_TURN_H_
#define TANDEM_COORDINATOR_API_GRPC_TURN_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "coordinator/api/auth/gate.h"

namespace tandem::coordinator {

// Sets `turn`, of `count` requests, which lasts as long as the hold. `gate` may be null: there are
// no limits. RESOURCE_EXHAUSTED, with the time to come again (retry_hint.h), if they are reached.
grpc::Status TakeTurn(Gate* gate, grpc::CallbackServerContext& context, TokenUsage::Hold& turn,
                      uint32_t count = 1);
// The name of the call's token; empty without one. `gate` may be null.
std::string CallerOf(const Gate* gate, const grpc::CallbackServerContext& context);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TURN_H_
