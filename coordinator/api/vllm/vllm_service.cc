#include "coordinator/api/vllm/vllm_service.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "coordinator/api/grpc/generate_call.h"
#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/turn.h"
#include "coordinator/api/grpc/unary_call.h"
#include "coordinator/api/grpc/wire.h"
#include "coordinator/api/vllm/vllm_form.h"

namespace tandem::coordinator {
namespace {

// Parses a request of type `Request`, which says nothing.
template <typename Request>
absl::Status CheckEmpty(const grpc::ByteBuffer& bytes) {
  Request request;
  return Parse(bytes, request);
}

absl::StatusOr<grpc::ByteBuffer> ModelInfo(const ServingModel& model,
                                           const grpc::ByteBuffer& bytes) {
  TANDEM_RETURN_IF_ERROR(CheckEmpty<vllm_api::GetModelInfoRequest>(bytes));
  vllm_api::GetModelInfoResponse response;
  response.set_model_path(model.name);
  response.set_served_model_name(model.name);
  response.set_model_type(model.architecture);
  response.add_architectures(model.architecture);
  response.set_is_generation(true);
  response.set_max_context_length(model.max_model_len);
  response.set_max_req_input_len(static_cast<int32_t>(model.max_model_len) - 1);
  response.set_vocab_size(model.vocab_size);
  const tokenizer::SpecialTokens& special = model.tokenizer->special_tokens();
  response.set_bos_token_id(special.bos);
  response.set_pad_token_id(tokenizer::kNoToken);
  for (const TokenId id : model.tokenizer->end_of_generation_ids()) response.add_eos_token_ids(id);
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> ServerInfo(const Serving::Parts& serving, Duration uptime,
                                            const grpc::ByteBuffer& bytes) {
  TANDEM_RETURN_IF_ERROR(CheckEmpty<vllm_api::GetServerInfoRequest>(bytes));
  const EngineStats stats = serving.engine.Stats();
  vllm_api::GetServerInfoResponse response;
  response.set_active_requests(static_cast<uint32_t>(stats.running + stats.waiting));
  response.set_uptime_seconds(std::chrono::duration<double>(uptime).count());
  response.set_server_type("tandem");
  response.set_data_parallel_size(1);
  response.set_max_num_seqs(static_cast<int32_t>(serving.model.max_num_seqs));
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> Loads(const Serving::Parts& serving,
                                       const grpc::ByteBuffer& bytes) {
  TANDEM_RETURN_IF_ERROR(CheckEmpty<vllm_api::GetLoadsRequest>(bytes));
  const EngineStats stats = serving.engine.Stats();
  vllm_api::GetLoadsResponse response;
  response.set_timestamp(absl::FormatTime(absl::RFC3339_full, absl::Now(), absl::UTCTimeZone()));
  response.set_version(BuildVersion());
  response.set_dp_rank_count(1);
  vllm_api::SchedulerLoad& load = *response.add_loads();
  load.set_num_running_reqs(static_cast<int32_t>(stats.running));
  load.set_num_waiting_reqs(static_cast<int32_t>(stats.waiting));
  load.set_num_total_reqs(static_cast<int32_t>(stats.running + stats.waiting));
  if (stats.total_blocks > 0) {
    load.set_token_usage(1 - static_cast<double>(stats.free_blocks) /
                                 static_cast<double>(stats.total_blocks));
  }
  load.set_max_running_requests(static_cast<int32_t>(serving.model.max_num_seqs));
  return Serialize(response);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* VllmService::Generate(Context* context,
                                                                  const Bytes* request) {
  return StartGenerateCall(serving_, *context, *request, std::make_unique<VllmForm>(), &running_);
}

VllmService::Reactor* VllmService::Abort(Context* context, const Bytes* request, Bytes* response) {
  return Answer(serving_, context, *request, response,
                [this, context](Serving::Parts&, const Bytes& bytes) -> absl::StatusOr<Bytes> {
                  vllm_api::AbortRequest abort;
                  TANDEM_RETURN_IF_ERROR(Parse(bytes, abort));
                  const std::string caller = CallerOf(serving_.gate, *context);
                  for (const std::string& id : abort.request_ids()) running_.Cancel(caller, id);
                  return Serialize(vllm_api::AbortResponse());
                });
}

VllmService::Reactor* VllmService::HealthCheck(Context* context, const Bytes* request,
                                               Bytes* response) {
  absl::Status status = CheckEmpty<vllm_api::HealthCheckRequest>(*request);
  vllm_api::HealthCheckResponse health;
  const absl::Status ready = serving_.Get().status();
  health.set_healthy(ready.ok());
  health.set_message(ready.ok() ? "ready" : std::string(ready.message()));
  *response = Serialize(health);
  return FinishAtOnce(context, ToGrpc(status));
}

VllmService::Reactor* VllmService::GetModelInfo(Context* context, const Bytes* request,
                                                Bytes* response) {
  return Answer(serving_, context, *request, response,
                [](const Serving::Parts& serving, const Bytes& bytes) {
                  return ModelInfo(serving.model, bytes);
                });
}

VllmService::Reactor* VllmService::GetServerInfo(Context* context, const Bytes* request,
                                                 Bytes* response) {
  return Answer(serving_, context, *request, response,
                [this](const Serving::Parts& serving, const Bytes& bytes) {
                  return ServerInfo(serving, Clock::System().Now() - start_, bytes);
                });
}

VllmService::Reactor* VllmService::GetLoads(Context* context, const Bytes* request,
                                            Bytes* response) {
  return Answer(
      serving_, context, *request, response,
      [](const Serving::Parts& serving, const Bytes& bytes) { return Loads(serving, bytes); });
}

VllmService::Reactor* VllmService::FlushCache(Context* context, const Bytes* request,
                                              Bytes* response) {
  return Answer(serving_, context, *request, response,
                [](const Serving::Parts& serving, const Bytes& bytes) -> absl::StatusOr<Bytes> {
                  TANDEM_RETURN_IF_ERROR(CheckEmpty<smg::grpc::common::FlushCacheRequest>(bytes));
                  TANDEM_RETURN_IF_ERROR(serving.engine.ResetPrefixCache());
                  smg::grpc::common::FlushCacheResponse flushed;
                  flushed.set_success(true);
                  return Serialize(flushed);
                });
}

}  // namespace tandem::coordinator
