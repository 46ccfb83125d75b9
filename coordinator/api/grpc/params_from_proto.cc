#include "coordinator/api/grpc/params_from_proto.h"

#include <string>
#include <vector>

namespace tandem::coordinator {
namespace {

step::SamplingPenalties PenaltiesFromProto(const v1::SamplingParams& sampling) {
  step::SamplingPenalties penalties;
  if (sampling.has_frequency_penalty()) penalties.frequency = sampling.frequency_penalty();
  if (sampling.has_presence_penalty()) penalties.presence = sampling.presence_penalty();
  if (sampling.has_repetition_penalty()) penalties.repetition = sampling.repetition_penalty();
  if (sampling.has_penalty_window()) penalties.window = sampling.penalty_window();
  if (sampling.has_dry_multiplier()) penalties.dry_multiplier = sampling.dry_multiplier();
  if (sampling.has_dry_base()) penalties.dry_base = sampling.dry_base();
  if (sampling.has_dry_allowed_length()) {
    penalties.dry_allowed_length = sampling.dry_allowed_length();
  }
  if (sampling.has_dry_penalty_last_n()) {
    penalties.dry_penalty_last_n = sampling.dry_penalty_last_n();
  }
  return penalties;
}

Constraint FormFromProto(const v1::SamplingParams& sampling) {
  using Kind = Constraint::Kind;
  switch (sampling.constraint_case()) {
    case v1::SamplingParams::kJsonSchema:
      return {.kind = Kind::kJsonSchema, .text = sampling.json_schema()};
    case v1::SamplingParams::kJsonObject:
      return {.kind = sampling.json_object() ? Kind::kJsonObject : Kind::kNone};
    case v1::SamplingParams::kRegex:
      return {.kind = Kind::kRegex, .text = sampling.regex()};
    case v1::SamplingParams::kChoice: {
      const auto& texts = sampling.choice().texts();
      return {.kind = Kind::kChoice, .choices = {texts.begin(), texts.end()}};
    }
    case v1::SamplingParams::kGrammar:
      return {.kind = Kind::kGrammar, .text = sampling.grammar()};
    case v1::SamplingParams::CONSTRAINT_NOT_SET:
      break;
  }
  return {};
}

Constraint ConstraintFromProto(const v1::SamplingParams& sampling) {
  Constraint constraint = FormFromProto(sampling);
  if (sampling.has_reasoning()) {
    constraint.reasoning = {.start = sampling.reasoning().start(),
                            .end = sampling.reasoning().end(),
                            .answer_start = sampling.reasoning().answer_start()};
  }
  return constraint;
}

}  // namespace

GenerateParams ParamsFromProto(const v1::GenerateRequest& proto) {
  const v1::SamplingParams& sampling = proto.sampling();
  GenerateParams params{
      .request_id = proto.request_id(),
      .cache_salt = proto.cache_salt(),
      .adapter = proto.adapter(),
      .priority = proto.priority(),
      .ignore_eos = sampling.ignore_eos(),
      .stop = {sampling.stop().begin(), sampling.stop().end()},
      .include_stop = sampling.include_stop(),
      .stop_token_ids = {sampling.stop_token_ids().begin(), sampling.stop_token_ids().end()},
      .logit_bias = {sampling.logit_bias().begin(), sampling.logit_bias().end()},
      .bad_words = {sampling.bad_words().begin(), sampling.bad_words().end()},
      .dry_sequence_breakers = {sampling.dry_sequence_breakers().begin(),
                                sampling.dry_sequence_breakers().end()},
      .constraint = ConstraintFromProto(sampling)};
  if (proto.has_text()) params.prompt = proto.text();
  if (proto.has_token_ids()) {
    const auto& ids = proto.token_ids().ids();
    params.prompt = std::vector<TokenId>(ids.begin(), ids.end());
  }
  if (proto.has_add_special_tokens()) params.encode.add_special = proto.add_special_tokens();
  if (proto.has_parse_special_tokens()) params.encode.parse_special = proto.parse_special_tokens();
  if (sampling.has_temperature()) params.temperature = sampling.temperature();
  if (sampling.has_top_p()) params.top_p = sampling.top_p();
  if (sampling.has_min_p()) params.min_p = sampling.min_p();
  if (sampling.has_top_k()) params.top_k = sampling.top_k();
  if (sampling.has_max_tokens()) params.max_tokens = sampling.max_tokens();
  if (sampling.has_clamp_max_tokens()) params.clamp_max_tokens = sampling.clamp_max_tokens();
  if (sampling.has_min_tokens()) params.min_tokens = sampling.min_tokens();
  if (sampling.has_seed()) params.seed = sampling.seed();
  if (sampling.has_logprobs()) params.logprobs = sampling.logprobs();
  if (sampling.has_prompt_logprobs()) params.prompt_logprobs = sampling.prompt_logprobs();
  if (sampling.has_typical_p()) params.typical_p = sampling.typical_p();
  if (sampling.has_xtc_probability()) params.xtc_probability = sampling.xtc_probability();
  if (sampling.has_xtc_threshold()) params.xtc_threshold = sampling.xtc_threshold();
  if (sampling.has_speculation()) params.speculation = sampling.speculation();
  if (sampling.has_n()) params.n = sampling.n();
  if (proto.has_skip_special_tokens()) params.skip_special_tokens = proto.skip_special_tokens();
  params.penalties = PenaltiesFromProto(sampling);
  return params;
}

}  // namespace tandem::coordinator
