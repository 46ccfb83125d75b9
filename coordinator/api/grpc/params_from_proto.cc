#include "coordinator/api/grpc/params_from_proto.h"

#include <string>
#include <vector>

namespace tandem::coordinator {

GenerateParams ParamsFromProto(const v1::GenerateRequest& proto) {
  const v1::SamplingParams& sampling = proto.sampling();
  GenerateParams params{
      .request_id = proto.request_id(),
      .ignore_eos = sampling.ignore_eos(),
      .stop = {sampling.stop().begin(), sampling.stop().end()},
      .stop_token_ids = {sampling.stop_token_ids().begin(), sampling.stop_token_ids().end()}};
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
  return params;
}

}  // namespace tandem::coordinator
