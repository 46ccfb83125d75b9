#include "coordinator/api/grpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <functional>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"
#include "common/tokenizer/detokenizer.h"
#include "coordinator/api/grpc/generate_call.h"
#include "coordinator/api/tokenizer_pool.h"
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
  stats.ForEach([&](int64_t value, const Metric& metric) {
    v1::Metric& out = *response.add_metrics();
    out.set_name(metric.name);
    out.set_help(metric.help);
    out.set_kind(metric.kind == Metric::Kind::kCounter ? v1::Metric::COUNTER : v1::Metric::GAUGE);
    out.set_value(value);
  });
}

class GenerationService : public v1::Generation::CallbackService {
 public:
  GenerationService(ServingModel model, EngineHandle& engine, size_t max_requests)
      : model_(std::move(model)),
        engine_(engine),
        pool_(TokenizerPool::Limits::For(max_requests)) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext*, const v1::GenerateRequest* request) override {
    return StartGenerateCall(*request, model_, pool_, engine_);
  }

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override {
    return AnswerFromPool(context, request->text().size(),
                          [=, this] { return coordinator::Tokenize(model_, *request, *response); });
  }

  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override {
    return AnswerFromPool(context, request->ids().size() * sizeof(TokenId), [=, this] {
      return coordinator::Detokenize(model_, *request, *response);
    });
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

  // Replies on a thread of the pool, unless the client is gone by then.
  grpc::ServerUnaryReactor* AnswerFromPool(grpc::CallbackServerContext* context, size_t bytes,
                                           std::function<absl::Status()> answer) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const absl::Status queued = pool_.Run(bytes, [=, answer = std::move(answer)] {
      const bool gone = context->IsCancelled();
      reactor->Finish(ToGrpc(gone ? absl::CancelledError("the client is gone") : answer()));
    });
    if (!queued.ok()) reactor->Finish(ToGrpc(queued));
    return reactor;
  }

  const ServingModel model_;
  EngineHandle& engine_;
  TokenizerPool pool_;
};

}  // namespace

struct GrpcServer::Impl {
  absl::Status Listen(const std::string& listen_address) {
    static std::once_flag plugins;
    std::call_once(plugins, [] {
      grpc::EnableDefaultHealthCheckService(true);
      grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    });
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(listen_address, grpc::InsecureServerCredentials(), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    if (server == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", listen_address));
    }
    address = WithPort(listen_address, port);
    server->GetHealthCheckService()->SetServingStatus(true);
    server->GetHealthCheckService()->SetServingStatus("tandem.v1.Generation", true);
    return absl::OkStatus();
  }

  GenerationService service;
  std::unique_ptr<grpc::Server> server{};
  std::string address{};
};

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address,
                                                              ServingModel model,
                                                              EngineHandle& engine,
                                                              size_t max_requests) {
  TANDEM_RETURN_IF_ERROR(ParseHostPort(address).status());
  auto impl = std::unique_ptr<Impl>(new Impl{.service = {std::move(model), engine, max_requests}});
  TANDEM_RETURN_IF_ERROR(impl->Listen(address));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcServer::~GrpcServer() { Shutdown(Deadline::After(Duration::zero())); }

const std::string& GrpcServer::address() const { return impl_->address; }

void GrpcServer::StopServing() {
  if (impl_->server != nullptr) impl_->server->GetHealthCheckService()->SetServingStatus(false);
}

void GrpcServer::Shutdown(Deadline deadline) {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + deadline.Left());
  impl_->server->Wait();
  impl_->server = nullptr;
}

}  // namespace tandem::coordinator
