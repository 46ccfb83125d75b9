// GenerateCall: one Generate RPC: tokenizes and admits its request on the pool, writes accumulated
// updates, one message in flight, and cancels the request if the client disconnects.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "coordinator/api/byte_budget.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/tokenizer_pool.h"
#include "coordinator/engine/engine.h"

namespace tandem::coordinator {

// Starts the call; gRPC owns the reactor from here on. `request` is a serialized GenerateRequest;
// `hold` is for its bytes, until it is admitted. `model`, `pool` and `engine` must outlive the
// server.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(
    OpenCalls& calls, const grpc::ByteBuffer& request, ByteBudget::Hold hold,
    const ServingModel& model, TokenizerPool& pool, EngineHandle& engine);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
