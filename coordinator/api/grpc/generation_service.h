// GenerationService: tandem.v1.Generation. UNAVAILABLE until Serving has begun.
//
// Messages are bytes here, parsed and serialized by us (wire.h): a request's memory is bounded, and
// a response's protobuf is gone before it is sent.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_

#include "coordinator/api/grpc/serving.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::coordinator {

// Of Tokenize and Detokenize: the longest text.
inline constexpr size_t kMaxTokenizeBytes = 1 << 20;
inline constexpr size_t kMaxDetokenizedBytes = 4 << 20;

using RawGeneration =
    v1::Generation::WithRawCallbackMethod_Generate<v1::Generation::WithRawCallbackMethod_Score<
        v1::Generation::WithRawCallbackMethod_Embed<v1::Generation::WithRawCallbackMethod_Tokenize<
            v1::Generation::WithRawCallbackMethod_Detokenize<
                v1::Generation::WithRawCallbackMethod_GetModelInfo<
                    v1::Generation::WithRawCallbackMethod_GetStats<
                        v1::Generation::WithRawCallbackMethod_ResetPrefixCache<
                            v1::Generation::Service>>>>>>>>;

// Thread-safe.
class GenerationService : public RawGeneration {
 public:
  explicit GenerationService(Serving& serving) : serving_(serving) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Score(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Embed(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ResetPrefixCache(grpc::CallbackServerContext* context,
                                             const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* response) override;

 private:
  Serving& serving_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_
