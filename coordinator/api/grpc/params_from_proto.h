// Converts the gRPC API's GenerateRequest to GenerateParams.
#ifndef TANDEM_COORDINATOR_API_GRPC_PARAMS_FROM_PROTO_H_
#define TANDEM_COORDINATOR_API_GRPC_PARAMS_FROM_PROTO_H_

#include "coordinator/api/generate_params.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {

GenerateParams ParamsFromProto(const v1::GenerateRequest& proto);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_PARAMS_FROM_PROTO_H_
