// GenerateCall: one Generate RPC, of any API, or a Score: tokenizes and admits its request on the
// pool, writes accumulated updates of its continuations, one message in flight, cancels them if the
// client disconnects, and ends the call of a client that reads too slowly.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "coordinator/api/grpc/generate_form.h"
#include "coordinator/api/grpc/running_calls.h"
#include "coordinator/api/grpc/serving.h"

namespace tandem::coordinator {

// Starts the call of `context`; gRPC owns the reactor from here on. `form` is of the call's API.
// `running`: where the call can be cancelled by its request's id; null: nowhere. `serving` and
// `running` must outlive the server.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(Serving& serving,
                                                              grpc::CallbackServerContext& context,
                                                              const grpc::ByteBuffer& request,
                                                              std::unique_ptr<GenerateForm> form,
                                                              RunningCalls* running = nullptr);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATE_CALL_H_
