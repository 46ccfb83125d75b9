#include "client/answer.h"

#include <nlohmann/json.hpp>

namespace tandem::client {
namespace {

using Json = nlohmann::ordered_json;

// Of TokenLogprobs and TopLogprob.
template <typename Message>
Json LogprobJson(const Message& one) {
  return {{"token_id", one.token_id()}, {"logprob", one.logprob()}, {"rank", one.rank()}};
}

Json LogprobsJson(const std::vector<v1::TokenLogprobs>& all) {
  Json list = Json::array();
  for (const v1::TokenLogprobs& one : all) {
    Json entry;  // null if unknown
    if (one.rank() > 0) {
      entry = LogprobJson(one);
      entry["top"] = Json::array();
      for (const v1::TopLogprob& top : one.top()) entry["top"].push_back(LogprobJson(top));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

const char* Name(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_STOP:
      return "stop";
    case v1::FINISH_REASON_LENGTH:
      return "length";
    case v1::FINISH_REASON_CANCELLED:
      return "cancelled";
    default:
      return "unspecified";
  }
}

}  // namespace

void Answer::Append(const v1::GenerateResponse& response) {
  text += response.text();
  token_ids.insert(token_ids.end(), response.token_ids().begin(), response.token_ids().end());
  logprobs.insert(logprobs.end(), response.logprobs().begin(), response.logprobs().end());
  prompt_logprobs.insert(prompt_logprobs.end(), response.prompt_logprobs().begin(),
                         response.prompt_logprobs().end());
  if (response.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) return;
  finish_reason = response.finish_reason();
  usage = response.usage();
}

std::string ToJson(const Answer& answer) {
  Json json;
  json["text"] = answer.text;
  json["token_ids"] = answer.token_ids;
  if (!answer.logprobs.empty()) json["logprobs"] = LogprobsJson(answer.logprobs);
  if (!answer.prompt_logprobs.empty()) {
    json["prompt_logprobs"] = LogprobsJson(answer.prompt_logprobs);
  }
  if (answer.status.ok()) {
    json["finish_reason"] = Name(answer.finish_reason);
    json["usage"] = {{"prompt_tokens", answer.usage.prompt_tokens()},
                     {"completion_tokens", answer.usage.completion_tokens()},
                     {"cached_tokens", answer.usage.cached_tokens()}};
  } else {
    json["finish_reason"] = nullptr;
    json["usage"] = nullptr;
    json["error"] = std::string(answer.status.message());
    json["code"] = absl::StatusCodeToString(answer.status.code());
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem::client
