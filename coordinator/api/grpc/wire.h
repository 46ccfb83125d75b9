// Messages to and from the wire: bytes from clients are parsed here rather than by gRPC, so that
// errors have a message.
#ifndef TANDEM_COORDINATOR_API_GRPC_WIRE_H_
#define TANDEM_COORDINATOR_API_GRPC_WIRE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tandem::coordinator {

// INVALID_ARGUMENT naming the message, and the field that is not UTF-8 if it is that.
absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);
grpc::ByteBuffer Serialize(const google::protobuf::Message& message);

// The same code and message.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_WIRE_H_
