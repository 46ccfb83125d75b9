#include "client/answer.h"

#include <nlohmann/json.hpp>

namespace tandem::client {
namespace {

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
  if (response.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) return;
  finish_reason = response.finish_reason();
  usage = response.usage();
}

std::string ToJson(const Answer& answer) {
  nlohmann::ordered_json json;
  json["text"] = answer.text;
  json["token_ids"] = answer.token_ids;
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
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tandem::client
