#include "tests/load/completion_event.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tandem::load {
namespace {

using Json = nlohmann::json;

uint32_t Count(const Json& usage, const char* key) {
  const auto found = usage.find(key);
  if (found == usage.end() || !found->is_number_unsigned()) return 0;
  return found->get<uint32_t>();
}

}  // namespace

std::string CompletionBody(const LoadRequest& request, const std::string& model,
                           const RequestSettings& settings) {
  Json body = {{"model", model},
               {"max_tokens", request.output_tokens},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (request.token_ids.empty()) {
    body["prompt"] = request.text;
  } else {
    body["prompt"] = request.token_ids;
  }
  if (settings.ignore_eos) body["ignore_eos"] = true;
  if (settings.temperature.has_value()) body["temperature"] = *settings.temperature;
  if (settings.priority.has_value()) body["priority"] = *settings.priority;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<CompletionEvent> ParseCompletionEvent(const std::string& data) {
  CompletionEvent event;
  if (data == "[DONE]") {
    event.finished = true;
    return event;
  }
  const Json json = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InternalError(absl::StrCat("not a JSON object: ", data.substr(0, 80)));
  }
  if (json.contains("error")) {
    return absl::InternalError(absl::StrCat(
        "the server reports ", json["error"].dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  if (const auto choices = json.find("choices");
      choices != json.end() && choices->is_array() && !choices->empty()) {
    event.has_choice = true;
    const Json& choice = choices->front();
    event.finished = choice.is_object() && choice.contains("finish_reason") &&
                     !choice["finish_reason"].is_null();
  }
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    event.usage = {Count(*usage, "prompt_tokens"), Count(*usage, "completion_tokens")};
  }
  return event;
}

absl::StatusOr<std::string> FirstModel(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("data") && json["data"].is_array() &&
      !json["data"].empty()) {
    const Json& model = json["data"].front();
    if (model.is_object() && model.contains("id") && model["id"].is_string()) {
      return model["id"].get<std::string>();
    }
  }
  return absl::InternalError("the server's /v1/models names no model");
}

}  // namespace tandem::load
