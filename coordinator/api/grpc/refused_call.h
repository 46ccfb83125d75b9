// RefusedCall: a call that ends as soon as it begins.
#ifndef TANDEM_COORDINATOR_API_GRPC_REFUSED_CALL_H_
#define TANDEM_COORDINATOR_API_GRPC_REFUSED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

namespace tandem::coordinator {

// Deletes itself.
class RefusedStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

inline grpc::ServerUnaryReactor* FinishAtOnce(grpc::CallbackServerContext* context,
                                              const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_REFUSED_CALL_H_
