// VllmService: vllm.grpc.engine.VllmEngine, so that routers made for vLLM can use a Tandem server.
// UNAVAILABLE until Serving has begun, but for HealthCheck.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_VLLM_VLLM_SERVICE_H_
#define TANDEM_COORDINATOR_API_VLLM_VLLM_SERVICE_H_

#include "common/base/clock.h"
#include "coordinator/api/grpc/running_calls.h"
#include "coordinator/api/grpc/serving.h"
#include "proto/vllm/vllm_engine.grpc.pb.h"

namespace tandem::coordinator {

using VllmEngine = vllm::grpc::engine::VllmEngine;
using RawVllmEngine = VllmEngine::WithRawCallbackMethod_Generate<
    VllmEngine::WithRawCallbackMethod_Abort<VllmEngine::WithRawCallbackMethod_HealthCheck<
        VllmEngine::WithRawCallbackMethod_GetModelInfo<
            VllmEngine::WithRawCallbackMethod_GetServerInfo<
                VllmEngine::WithRawCallbackMethod_GetLoads<
                    VllmEngine::WithRawCallbackMethod_FlushCache<VllmEngine::Service>>>>>>>;

class VllmService : public RawVllmEngine {
 public:
  explicit VllmService(Serving& serving) : serving_(serving) {}

  using Reactor = ::grpc::ServerUnaryReactor;
  using Context = ::grpc::CallbackServerContext;
  using Bytes = ::grpc::ByteBuffer;
  ::grpc::ServerWriteReactor<Bytes>* Generate(Context* context, const Bytes* request) override;
  Reactor* Abort(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* HealthCheck(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* GetModelInfo(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* GetServerInfo(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* GetLoads(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* FlushCache(Context* context, const Bytes* request, Bytes* response) override;

 private:
  Serving& serving_;
  RunningCalls running_;
  const TimePoint start_ = Clock::System().Now();
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_VLLM_VLLM_SERVICE_H_
