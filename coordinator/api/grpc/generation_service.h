// GenerationService: tandem.v1.Generation. UNAVAILABLE until Serve.
//
// Messages are bytes here, parsed and serialized by us (wire.h): a request's memory is bounded, and
// a response's protobuf is gone before it is sent.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/api/byte_budget.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/tokenizer_pool.h"
#include "coordinator/engine/engine.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::coordinator {

// Of Tokenize and Detokenize: the longest text.
inline constexpr size_t kMaxTokenizeBytes = 1 << 20;
inline constexpr size_t kMaxDetokenizedBytes = 4 << 20;
// Of requests that are waiting for the tokenizer or being answered by it.
inline constexpr size_t kMaxRequestBytes = 32 << 20;

using RawGeneration = v1::Generation::WithRawCallbackMethod_Generate<
    v1::Generation::WithRawCallbackMethod_Tokenize<v1::Generation::WithRawCallbackMethod_Detokenize<
        v1::Generation::WithRawCallbackMethod_GetModelInfo<
            v1::Generation::WithRawCallbackMethod_GetStats<v1::Generation::Service>>>>>;

// Thread-safe, but for Serve.
class GenerationService : public RawGeneration {
 public:
  explicit GenerationService(OpenCalls& calls);
  ~GenerationService() override;

  // Calls are answered from here on. `engine` must outlive the server; the tokenizer's queue holds
  // `max_requests` texts. Once.
  void Serve(ServingModel model, EngineHandle& engine, size_t max_requests);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* context,
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

 private:
  // What calls need.
  struct Serving {
    ServingModel model;
    EngineHandle& engine;
    TokenizerPool pool;
  };
  class TextCall;
  using AnswerFn =
      std::function<absl::StatusOr<grpc::ByteBuffer>(const Serving&, const grpc::ByteBuffer&)>;

  // Answers on this thread: the work is small.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer& request, grpc::ByteBuffer* response,
                                   const AnswerFn& answer);
  // Answers on a thread of the pool, unless the client is gone by then.
  grpc::ServerUnaryReactor* AnswerFromPool(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response, AnswerFn answer);

  OpenCalls& calls_;
  ByteBudget budget_{kMaxRequestBytes};
  std::unique_ptr<Serving> owned_;          // set by Serve
  std::atomic<Serving*> serving_{nullptr};  // owned_, once calls may use it
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATION_SERVICE_H_
