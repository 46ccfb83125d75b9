// GenerateCall: one Generate RPC: tokenizes and admits its request on the pool, writes accumulated
// updates, one message in flight, and cancels the request if the client disconnects.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "coordinator/api/serving_model.h"
#include "coordinator/api/tokenizer_pool.h"
#include "coordinator/engine/engine.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {

// Starts the call; gRPC owns the reactor from here on. `model`, `pool` and `engine` must outlive
// the server.
grpc::ServerWriteReactor<v1::GenerateResponse>* StartGenerateCall(
    const v1::GenerateRequest& request, const ServingModel& model, TokenizerPool& pool,
    EngineHandle& engine);

// The same code and message.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
