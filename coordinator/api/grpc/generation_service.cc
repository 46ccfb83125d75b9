#include "coordinator/api/grpc/generation_service.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tokenizer/detokenizer.h"
#include "coordinator/api/grpc/embed_form.h"
#include "coordinator/api/grpc/generate_call.h"
#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/score_form.h"
#include "coordinator/api/grpc/tandem_form.h"
#include "coordinator/api/grpc/unary_call.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

absl::Status CheckTextBytes(size_t bytes) {
  if (bytes <= kMaxTokenizeBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("text has ", bytes, " bytes, at most ", kMaxTokenizeBytes, " are tokenized"));
}

absl::StatusOr<grpc::ByteBuffer> Tokenize(const ServingModel& model,
                                          const grpc::ByteBuffer& bytes) {
  v1::TokenizeRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  TANDEM_RETURN_IF_ERROR(CheckTextBytes(request.text().size()));
  tokenizer::EncodeOptions options;
  if (request.has_add_special_tokens()) options.add_special = request.add_special_tokens();
  if (request.has_parse_special_tokens()) options.parse_special = request.parse_special_tokens();
  TANDEM_ASSIGN_OR_RETURN(auto ids, model.tokenizer->Encode(request.text(), options));
  v1::TokenizeResponse response;
  for (TokenId id : ids) {
    TANDEM_ASSIGN_OR_RETURN(std::string_view piece, model.tokenizer->TokenBytes(id));
    response.add_ids(id);
    response.add_token_bytes(piece.data(), piece.size());
  }
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> Detokenize(const ServingModel& model,
                                            const grpc::ByteBuffer& bytes) {
  v1::DetokenizeRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  v1::DetokenizeResponse response;
  size_t text_bytes = 0;
  for (TokenId id : request.ids()) {
    TANDEM_ASSIGN_OR_RETURN(std::string_view piece, model.tokenizer->TokenBytes(id));
    text_bytes += piece.size();
    if (request.want_token_bytes() && text_bytes <= kMaxDetokenizedBytes) {
      response.add_token_bytes(piece.data(), piece.size());
    }
  }
  if (text_bytes > kMaxDetokenizedBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text of ids has ", text_bytes, " bytes, at most ", kMaxDetokenizedBytes));
  }
  TANDEM_ASSIGN_OR_RETURN(
      *response.mutable_text(),
      tokenizer::Decode(*model.tokenizer, {request.ids().begin(), request.ids().end()},
                        {.skip_special = true, .at_start = true}));
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> ModelInfo(const ServingModel& model,
                                           const grpc::ByteBuffer& bytes) {
  v1::GetModelInfoRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  v1::GetModelInfoResponse response;
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
  for (const std::string& name : model.adapters) response.add_adapters(name);
  response.set_tensor_parallel_size(model.tensor_parallel_size);
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> Stats(const EngineStats& stats, const grpc::ByteBuffer& bytes) {
  v1::GetStatsRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  v1::GetStatsResponse response;
  stats.ForEach([&](int64_t value, const Metric& metric) {
    v1::Metric& out = *response.add_metrics();
    out.set_name(metric.name);
    out.set_help(metric.help);
    out.set_kind(metric.kind == Metric::Kind::kCounter ? v1::Metric::COUNTER : v1::Metric::GAUGE);
    out.set_value(value);
  });
  return Serialize(response);
}

absl::StatusOr<grpc::ByteBuffer> ResetPrefixCache(EngineHandle& engine,
                                                  const grpc::ByteBuffer& bytes) {
  v1::ResetPrefixCacheRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  TANDEM_RETURN_IF_ERROR(engine.ResetPrefixCache());
  return Serialize(v1::ResetPrefixCacheResponse());
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartGenerateCall(serving_, *context, *request, std::make_unique<TandemForm>());
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::Score(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartGenerateCall(serving_, *context, *request, std::make_unique<ScoreForm>());
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::Embed(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartGenerateCall(serving_, *context, *request, std::make_unique<EmbedForm>());
}

grpc::ServerUnaryReactor* GenerationService::Tokenize(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  // Far too long: it takes no one's place in the queue.
  if (request->Length() > 2 * kMaxTokenizeBytes) {
    serving_.refusals.Add(absl::StatusCode::kInvalidArgument, RefusalCounts::kInvalid);
    return FinishAtOnce(context, ToGrpc(CheckTextBytes(request->Length())));
  }
  return AnswerFromPool(serving_, context, *request, response,
                        [](const Serving::Parts& serving, const grpc::ByteBuffer& bytes) {
                          return coordinator::Tokenize(serving.model, bytes);
                        });
}

grpc::ServerUnaryReactor* GenerationService::Detokenize(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return AnswerFromPool(serving_, context, *request, response,
                        [](const Serving::Parts& serving, const grpc::ByteBuffer& bytes) {
                          return coordinator::Detokenize(serving.model, bytes);
                        });
}

grpc::ServerUnaryReactor* GenerationService::GetModelInfo(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request,
                                                          grpc::ByteBuffer* response) {
  return Answer(serving_, context, *request, response,
                [](const Serving::Parts& serving, const grpc::ByteBuffer& bytes) {
                  return ModelInfo(serving.model, bytes);
                });
}

grpc::ServerUnaryReactor* GenerationService::GetStats(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Answer(serving_, context, *request, response,
                [](const Serving::Parts& serving, const grpc::ByteBuffer& bytes) {
                  return Stats(serving.engine.Stats(), bytes);
                });
}

grpc::ServerUnaryReactor* GenerationService::ResetPrefixCache(grpc::CallbackServerContext* context,
                                                              const grpc::ByteBuffer* request,
                                                              grpc::ByteBuffer* response) {
  return Answer(serving_, context, *request, response,
                [](const Serving::Parts& serving, const grpc::ByteBuffer& bytes) {
                  return coordinator::ResetPrefixCache(serving.engine, bytes);
                });
}

}  // namespace tandem::coordinator
