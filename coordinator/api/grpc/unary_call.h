// The unary calls of the public services: a function from a request's bytes to an answer's.
#ifndef TANDEM_COORDINATOR_API_GRPC_UNARY_CALL_H_
#define TANDEM_COORDINATOR_API_GRPC_UNARY_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>

#include "absl/status/statusor.h"
#include "coordinator/api/grpc/serving.h"

namespace tandem::coordinator {

using AnswerFn =
    std::function<absl::StatusOr<grpc::ByteBuffer>(Serving::Parts&, const grpc::ByteBuffer&)>;

// Answers on this thread: for small work. UNAVAILABLE before there is a model.
grpc::ServerUnaryReactor* Answer(const Serving& serving, grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer& request, grpc::ByteBuffer* response,
                                 const AnswerFn& answer);
// Answers on a thread of the tokenizer's pool, unless the client is gone by then.
// RESOURCE_EXHAUSTED if the call's token has reached a limit, or there is no room for the request's
// bytes or no place in the queue.
grpc::ServerUnaryReactor* AnswerFromPool(Serving& serving, grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, AnswerFn answer);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_UNARY_CALL_H_
