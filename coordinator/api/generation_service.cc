#include "coordinator/api/generation_service.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"
#include "common/tokenizer/detokenizer.h"
#include "coordinator/api/generate_call.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::coordinator {
namespace {

absl::Status Tokenize(const ServingModel& model, const v1::TokenizeRequest& request,
                      v1::TokenizeResponse& response) {
  tokenizer::EncodeOptions options;
  if (request.has_add_special_tokens()) options.add_special = request.add_special_tokens();
  if (request.has_parse_special_tokens()) options.parse_special = request.parse_special_tokens();
  TANDEM_ASSIGN_OR_RETURN(auto ids, model.tokenizer->Encode(request.text(), options));
  for (TokenId id : ids) {
    TANDEM_ASSIGN_OR_RETURN(std::string_view bytes, model.tokenizer->TokenBytes(id));
    response.add_ids(id);
    response.add_token_bytes(bytes.data(), bytes.size());
  }
  return absl::OkStatus();
}

absl::Status Detokenize(const ServingModel& model, const v1::DetokenizeRequest& request,
                        v1::DetokenizeResponse& response) {
  TANDEM_ASSIGN_OR_RETURN(
      *response.mutable_text(),
      tokenizer::Decode(*model.tokenizer, {request.ids().begin(), request.ids().end()},
                        {.skip_special = true, .at_start = true}));
  return absl::OkStatus();
}

void FillModelInfo(const ServingModel& model, v1::GetModelInfoResponse& response) {
  const tokenizer::SpecialTokens& special = model.tokenizer->special_tokens();
  response.set_name(model.name);
  response.set_architecture(model.architecture);
  response.set_context_length(static_cast<int32_t>(model.max_model_len));
  response.set_vocab_size(static_cast<int32_t>(model.vocab_size));
  if (special.bos != tokenizer::kNoToken) response.set_bos_id(special.bos);
  if (special.eos != tokenizer::kNoToken) response.set_eos_id(special.eos);
  for (TokenId id : model.tokenizer->end_of_generation_ids()) {
    response.add_end_of_generation_ids(id);
  }
  response.set_chat_template(std::string(model.tokenizer->chat_template()));
  response.set_quantization(model.quantization);
  response.set_tensor_parallel_size(model.tensor_parallel_size);
}

void FillStats(const EngineStats& stats, v1::GetStatsResponse& response) {
  response.set_blocks_total(stats.blocks_total);
  response.set_blocks_free(stats.blocks_free);
  response.set_blocks_cached(stats.blocks_cached);
  response.set_running(stats.running);
  response.set_waiting(stats.waiting);
  response.set_preemptions(stats.preemptions);
  response.set_steps(stats.steps);
  response.set_epoch(stats.epoch);
}

class GenerationService : public v1::Generation::CallbackService {
 public:
  GenerationService(ServingModel model, EngineHandle& engine)
      : model_(std::move(model)), engine_(engine) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext*, const v1::GenerateRequest* request) override {
    return StartGenerateCall(*request, model_, engine_);
  }

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override {
    return Answer(context, coordinator::Tokenize(model_, *request, *response));
  }

  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override {
    return Answer(context, coordinator::Detokenize(model_, *request, *response));
  }

  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest*,
                                         v1::GetModelInfoResponse* response) override {
    FillModelInfo(model_, *response);
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* context,
                                     const v1::GetStatsRequest*,
                                     v1::GetStatsResponse* response) override {
    FillStats(engine_.Stats(), *response);
    return Answer(context, absl::OkStatus());
  }

 private:
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

  const ServingModel model_;
  EngineHandle& engine_;
};

class GrpcApiServer : public ApiServer {
 public:
  GrpcApiServer(ServingModel model, EngineHandle& engine) : service_(std::move(model), engine) {}
  ~GrpcApiServer() override { Shutdown(Deadline::After(Duration::zero())); }

  absl::Status Listen(const std::string& address) {
    static std::once_flag plugins;
    std::call_once(plugins, [] {
      grpc::EnableDefaultHealthCheckService(true);
      grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    });
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
    }
    address_ = WithPort(address, port);
    server_->GetHealthCheckService()->SetServingStatus(true);
    server_->GetHealthCheckService()->SetServingStatus("tandem.v1.Generation", true);
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

  void StopServing() override {
    if (server_ != nullptr) server_->GetHealthCheckService()->SetServingStatus(false);
  }

  void Shutdown(Deadline deadline) override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + deadline.Left());
    server_->Wait();
    server_ = nullptr;
  }

 private:
  GenerationService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(const std::string& address,
                                                            ServingModel model,
                                                            EngineHandle& engine) {
  TANDEM_RETURN_IF_ERROR(ParseHostPort(address).status());
  auto server = std::make_unique<GrpcApiServer>(std::move(model), engine);
  TANDEM_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace tandem::coordinator
