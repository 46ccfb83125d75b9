#include "coordinator/api/vllm/vllm_form.h"

#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

absl::Status Unsupported(const char* what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not supported"));
}

absl::Status CheckSupported(const vllm_api::GenerateRequest& proto) {
  if (proto.sampling_params().has_structural_tag()) {
    return Unsupported("sampling_params.structural_tag");
  }
  if (proto.has_mm_inputs() || proto.extra_mm_inputs_size() > 0) return Unsupported("mm_inputs");
  if (proto.has_media_refs()) return Unsupported("media_refs");
  if (proto.has_kv_transfer_params() || proto.has_kv_transfer_params_json()) {
    return Unsupported("kv_transfer_params");
  }
  if (proto.data_parallel_rank() != 0) return Unsupported("a data_parallel_rank other than 0");
  return absl::OkStatus();
}

absl::StatusOr<int32_t> Signed(const char* field, uint32_t value) {
  if (value <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(value);
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", at most 2147483647"));
}

absl::StatusOr<std::vector<TokenId>> Ids(const char* field,
                                         const google::protobuf::RepeatedField<uint32_t>& values) {
  std::vector<TokenId> ids;
  ids.reserve(static_cast<size_t>(values.size()));
  for (const uint32_t value : values) {
    TANDEM_ASSIGN_OR_RETURN(ids.emplace_back(), Signed(field, value));
  }
  return ids;
}

// REQUIRES: supported.
Constraint ConstraintOf(const vllm_api::SamplingParams& sampling) {
  using Kind = Constraint::Kind;
  if (sampling.has_json_schema()) {
    return {.kind = Kind::kJsonSchema, .text = sampling.json_schema()};
  }
  if (sampling.json_object()) return {.kind = Kind::kJsonObject};
  if (sampling.has_regex()) return {.kind = Kind::kRegex, .text = sampling.regex()};
  if (sampling.has_grammar()) return {.kind = Kind::kGrammar, .text = sampling.grammar()};
  if (!sampling.has_choice()) return {};
  const auto& texts = sampling.choice().choices();
  return {.kind = Kind::kChoice, .choices = {texts.begin(), texts.end()}};
}

absl::Status FillSampling(const vllm_api::SamplingParams& sampling, GenerateParams& params) {
  if (sampling.has_temperature()) params.temperature = sampling.temperature();
  if (sampling.top_p() != 0) params.top_p = sampling.top_p();
  TANDEM_ASSIGN_OR_RETURN(params.top_k, Signed("top_k", sampling.top_k()));
  params.min_p = sampling.min_p();
  params.penalties.frequency = sampling.frequency_penalty();
  params.penalties.presence = sampling.presence_penalty();
  if (sampling.repetition_penalty() != 0) {
    params.penalties.repetition = sampling.repetition_penalty();
  }
  if (sampling.has_max_tokens()) {
    TANDEM_ASSIGN_OR_RETURN(params.max_tokens, Signed("max_tokens", sampling.max_tokens()));
  }
  TANDEM_ASSIGN_OR_RETURN(params.min_tokens, Signed("min_tokens", sampling.min_tokens()));
  params.stop = {sampling.stop().begin(), sampling.stop().end()};
  params.include_stop = sampling.include_stop_str_in_output();
  TANDEM_ASSIGN_OR_RETURN(params.stop_token_ids, Ids("stop_token_ids", sampling.stop_token_ids()));
  params.skip_special_tokens = sampling.skip_special_tokens();
  params.ignore_eos = sampling.ignore_eos();
  if (sampling.n() != 0) {
    TANDEM_ASSIGN_OR_RETURN(params.n, Signed("n", sampling.n()));
  }
  if (sampling.has_logprobs()) params.logprobs = sampling.logprobs();
  if (sampling.has_prompt_logprobs()) params.prompt_logprobs = sampling.prompt_logprobs();
  if (sampling.has_seed()) params.seed = static_cast<uint64_t>(int64_t{sampling.seed()});
  params.logit_bias = {sampling.logit_bias().begin(), sampling.logit_bias().end()};
  params.constraint = ConstraintOf(sampling);
  if (sampling.has_truncate_prompt_tokens()) {
    params.truncate_prompt_tokens = sampling.truncate_prompt_tokens();
  }
  return absl::OkStatus();
}

void FillTop(const TokenLogprobs& from, vllm_api::TopLogProbs& out) {
  for (const step::TokenLogprob& top : from.top) {
    out.add_values(top.logprob);
    out.add_token_ids(static_cast<uint32_t>(top.token));
  }
}

void FillOutputLogprobs(const std::vector<TokenLogprobs>& from, vllm_api::OutputLogProbs& out) {
  for (const TokenLogprobs& one : from) {
    out.add_token_logprobs(one.token.logprob);
    out.add_token_ids(static_cast<uint32_t>(one.token.token));
    if (!one.top.empty()) FillTop(one, *out.add_top_logprobs());
  }
}

// An entry of rank 0 is the prompt's first token, which has no log-probability.
void FillInputLogprobs(const std::vector<TokenLogprobs>& from, TokenId first_token,
                       vllm_api::InputLogProbs& out) {
  const bool wants_top = !from.back().top.empty();
  for (const TokenLogprobs& one : from) {
    const bool is_first = one.token.rank == 0;
    vllm_api::InputTokenLogProb& value = *out.add_token_logprobs();
    if (!is_first) value.set_value(one.token.logprob);
    out.add_token_ids(static_cast<uint32_t>(is_first ? first_token : one.token.token));
    if (wants_top) FillTop(one, *out.add_top_logprobs());
  }
}

const char* NameOf(FinishReason reason) {
  if (reason == FinishReason::kStop) return "stop";
  return reason == FinishReason::kLength ? "length" : "abort";
}

// What a chunk and a GenerateComplete have in common.
template <typename Message>
void FillCounts(const TextUpdate& update, uint32_t index, TokenId first_token, Message& out) {
  out.set_index(index);
  out.set_prompt_tokens(update.usage.prompt_tokens);
  out.set_completion_tokens(static_cast<uint32_t>(update.tokens.size()));
  out.set_cached_tokens(update.usage.cached_tokens);
  if (!update.logprobs.empty()) {
    FillOutputLogprobs(update.logprobs, *out.mutable_output_logprobs());
  }
  if (!update.prompt_logprobs.empty()) {
    FillInputLogprobs(update.prompt_logprobs, first_token, *out.mutable_input_logprobs());
  }
}

vllm_api::GenerateResponse Chunk(const TextUpdate& update, uint32_t index, TokenId first_token) {
  vllm_api::GenerateResponse response;
  vllm_api::GenerateStreamChunk& chunk = *response.mutable_chunk();
  chunk.mutable_token_ids()->Add(update.tokens.begin(), update.tokens.end());
  FillCounts(update, index, first_token, chunk);
  return response;
}

vllm_api::GenerateResponse Complete(const TextUpdate& update, uint32_t index, TokenId first_token) {
  vllm_api::GenerateResponse response;
  vllm_api::GenerateComplete& complete = *response.mutable_complete();
  complete.mutable_output_ids()->Add(update.tokens.begin(), update.tokens.end());
  complete.set_finish_reason(NameOf(update.reason));
  FillCounts(update, index, first_token, complete);
  if (const auto* text = std::get_if<std::string>(&update.matched_stop)) {
    complete.set_matched_stop_str(*text);
  }
  if (const auto* id = std::get_if<TokenId>(&update.matched_stop)) {
    complete.set_matched_token_id(static_cast<uint32_t>(*id));
  }
  return response;
}

}  // namespace

absl::StatusOr<GenerateParams> ParamsFromVllm(const vllm_api::GenerateRequest& proto) {
  TANDEM_RETURN_IF_ERROR(CheckSupported(proto));
  GenerateParams params;
  params.request_id = proto.request_id();
  if (proto.has_text()) params.prompt = proto.text();
  if (proto.has_tokenized()) {
    TANDEM_ASSIGN_OR_RETURN(params.prompt, Ids("input_ids", proto.tokenized().input_ids()));
  }
  TANDEM_RETURN_IF_ERROR(FillSampling(proto.sampling_params(), params));
  return params;
}

absl::StatusOr<CallPlan> VllmForm::Parse(const grpc::ByteBuffer& request) {
  vllm_api::GenerateRequest proto;
  TANDEM_RETURN_IF_ERROR(coordinator::Parse(request, proto));
  stream_ = proto.stream();
  TANDEM_ASSIGN_OR_RETURN(GenerateParams params, ParamsFromVllm(proto));
  return CallPlan::Of(std::move(params));
}

void VllmForm::AppendMessages(const std::string&, uint32_t index, TextUpdate update,
                              std::deque<grpc::ByteBuffer>& messages) {
  update.text.clear();  // the client detokenizes
  if (stream_) {
    if (update.tokens.empty() && update.prompt_logprobs.empty() && !update.last()) return;
    messages.push_back(Serialize(Chunk(update, index, first_token_)));
    if (update.last()) messages.push_back(Serialize(Complete(update, index, first_token_)));
    return;
  }
  if (gathered_.size() <= index) gathered_.resize(index + 1);
  gathered_[index].Append(std::move(update));
  if (!gathered_[index].last()) return;
  messages.push_back(Serialize(Complete(gathered_[index], index, first_token_)));
}

}  // namespace tandem::coordinator
