#include "client/prompt_file.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/input.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

// In the order of the text: a schema's properties come in it.
using Json = nlohmann::ordered_json;
using Setter = absl::Status (*)(const std::string& name, const Json& value,
                                v1::GenerateRequest& out);

absl::Status Wrong(const std::string& name, const char* needed, const Json& found) {
  std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = absl::StrCat(text.substr(0, 40), "...");
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' must be ", needed, ", found ", text));
}

absl::StatusOr<int32_t> Int32(const std::string& name, const Json& value) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool in_range = value.is_number_integer() &&
                        (value.is_number_unsigned()
                             ? value.get<uint64_t>() <= static_cast<uint64_t>(kMost)
                             : value.get<int64_t>() >= kLeast && value.get<int64_t>() <= kMost);
  if (!in_range) return Wrong(name, "a 32-bit integer", value);
  return value.get<int32_t>();
}

absl::Status Int32s(const std::string& name, const Json& value,
                    google::protobuf::RepeatedField<int32_t>& out) {
  if (!value.is_array()) return Wrong(name, "a list of token ids", value);
  out.Clear();
  for (const Json& entry : value) {
    TANDEM_ASSIGN_OR_RETURN(const int32_t id, Int32(name, entry));
    out.Add(id);
  }
  return absl::OkStatus();
}

// Setters of one type of field, over the member function of the generated class.
template <void (v1::SamplingParams::*kSet)(int32_t)>
absl::Status SetInt(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  TANDEM_ASSIGN_OR_RETURN(const int32_t number, Int32(name, value));
  (out.mutable_sampling()->*kSet)(number);
  return absl::OkStatus();
}

absl::Status SetPriority(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  TANDEM_ASSIGN_OR_RETURN(const int32_t number, Int32(name, value));
  out.set_priority(number);
  return absl::OkStatus();
}

template <void (v1::SamplingParams::*kSet)(float)>
absl::Status SetFloat(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_number()) return Wrong(name, "a number", value);
  (out.mutable_sampling()->*kSet)(value.get<float>());
  return absl::OkStatus();
}

template <typename Message, Message* (*kPart)(v1::GenerateRequest&), void (Message::*kSet)(bool)>
absl::Status SetBool(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_boolean()) return Wrong(name, "true or false", value);
  (kPart(out)->*kSet)(value.get<bool>());
  return absl::OkStatus();
}

v1::GenerateRequest* Whole(v1::GenerateRequest& request) { return &request; }
v1::SamplingParams* Sampling(v1::GenerateRequest& request) { return request.mutable_sampling(); }

template <std::string* (v1::GenerateRequest::*kText)()>
absl::Status SetText(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_string()) return Wrong(name, "a string", value);
  *(out.*kText)() = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status SetPromptIds(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  return Int32s(name, value, *out.mutable_token_ids()->mutable_ids());
}

absl::Status SetSeed(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_number_unsigned()) return Wrong(name, "an integer of at least 0", value);
  out.mutable_sampling()->set_seed(value.get<uint64_t>());
  return absl::OkStatus();
}

template <google::protobuf::RepeatedPtrField<std::string>* (v1::SamplingParams::*kList)()>
absl::Status SetTexts(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  auto& texts = *(out.mutable_sampling()->*kList)();
  texts.Clear();
  if (value.is_string()) {
    texts.Add(value.get<std::string>());
    return absl::OkStatus();
  }
  if (!value.is_array()) return Wrong(name, "a string or a list of strings", value);
  for (const Json& entry : value) {
    if (!entry.is_string()) return Wrong(name, "a string or a list of strings", entry);
    texts.Add(entry.get<std::string>());
  }
  return absl::OkStatus();
}

// As OpenAI's: an object of ids, as text, and biases.
absl::Status SetLogitBias(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  constexpr char kNeeded[] = "an object of token ids and numbers";
  if (!value.is_object()) return Wrong(name, kNeeded, value);
  auto& biases = *out.mutable_sampling()->mutable_logit_bias();
  biases.clear();
  for (const auto& [text, bias] : value.items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(text, &id) || id < 0 || !bias.is_number()) {
      return Wrong(name, kNeeded, value);
    }
    biases[id] = bias.get<float>();
  }
  return absl::OkStatus();
}

// As an object, or as text.
absl::Status SetJsonSchema(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_object() && !value.is_string()) return Wrong(name, "an object or its text", value);
  out.mutable_sampling()->set_json_schema(value.is_string() ? value.get<std::string>()
                                                            : value.dump());
  return absl::OkStatus();
}

template <std::string* (v1::SamplingParams::*text)()>
absl::Status SetText(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_string()) return Wrong(name, "a string", value);
  *(out.mutable_sampling()->*text)() = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status SetChoice(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  if (!value.is_array()) return Wrong(name, "a list of strings", value);
  v1::Choices& choice = *out.mutable_sampling()->mutable_choice();
  choice.clear_texts();
  for (const Json& text : value) {
    if (!text.is_string()) return Wrong(name, "a list of strings", text);
    choice.add_texts(text.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status SetReasoning(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  constexpr char kNeeded[] = "an object of strings: start, end, answer_start";
  if (!value.is_object()) return Wrong(name, kNeeded, value);
  v1::Reasoning& reasoning = *out.mutable_sampling()->mutable_reasoning();
  reasoning.Clear();
  for (const auto& [key, text] : value.items()) {
    std::string* const field = key == "start"          ? reasoning.mutable_start()
                               : key == "end"          ? reasoning.mutable_end()
                               : key == "answer_start" ? reasoning.mutable_answer_start()
                                                       : nullptr;
    if (field == nullptr || !text.is_string()) return Wrong(name, kNeeded, value);
    *field = text.get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status SetStopIds(const std::string& name, const Json& value, v1::GenerateRequest& out) {
  return Int32s(name, value, *out.mutable_sampling()->mutable_stop_token_ids());
}

using P = v1::SamplingParams;
using R = v1::GenerateRequest;

constexpr std::pair<const char*, Setter> kFields[] = {
    {"prompt", SetText<&R::mutable_text>},
    {"prompt_token_ids", SetPromptIds},
    {"request_id", SetText<&R::mutable_request_id>},
    {"cache_salt", SetText<&R::mutable_cache_salt>},
    {"adapter", SetText<&R::mutable_adapter>},
    {"priority", SetPriority},
    {"n", SetInt<&P::set_n>},
    {"temperature", SetFloat<&P::set_temperature>},
    {"top_p", SetFloat<&P::set_top_p>},
    {"top_k", SetInt<&P::set_top_k>},
    {"min_p", SetFloat<&P::set_min_p>},
    {"max_tokens", SetInt<&P::set_max_tokens>},
    {"speculation", SetBool<P, Sampling, &P::set_speculation>},
    {"clamp_max_tokens", SetBool<P, Sampling, &P::set_clamp_max_tokens>},
    {"min_tokens", SetInt<&P::set_min_tokens>},
    {"seed", SetSeed},
    {"ignore_eos", SetBool<P, Sampling, &P::set_ignore_eos>},
    {"logprobs", SetInt<&P::set_logprobs>},
    {"prompt_logprobs", SetInt<&P::set_prompt_logprobs>},
    {"typical_p", SetFloat<&P::set_typical_p>},
    {"xtc_probability", SetFloat<&P::set_xtc_probability>},
    {"xtc_threshold", SetFloat<&P::set_xtc_threshold>},
    {"frequency_penalty", SetFloat<&P::set_frequency_penalty>},
    {"presence_penalty", SetFloat<&P::set_presence_penalty>},
    {"repetition_penalty", SetFloat<&P::set_repetition_penalty>},
    {"penalty_window", SetInt<&P::set_penalty_window>},
    {"logit_bias", SetLogitBias},
    {"bad_words", SetTexts<&P::mutable_bad_words>},
    {"dry_multiplier", SetFloat<&P::set_dry_multiplier>},
    {"dry_base", SetFloat<&P::set_dry_base>},
    {"dry_allowed_length", SetInt<&P::set_dry_allowed_length>},
    {"dry_penalty_last_n", SetInt<&P::set_dry_penalty_last_n>},
    {"dry_sequence_breakers", SetTexts<&P::mutable_dry_sequence_breakers>},
    {"json_schema", SetJsonSchema},
    {"json_object", SetBool<P, Sampling, &P::set_json_object>},
    {"regex", SetText<&P::mutable_regex>},
    {"choice", SetChoice},
    {"grammar", SetText<&P::mutable_grammar>},
    {"reasoning", SetReasoning},
    {"stop", SetTexts<&P::mutable_stop>},
    {"include_stop", SetBool<P, Sampling, &P::set_include_stop>},
    {"stop_token_ids", SetStopIds},
    {"add_special_tokens", SetBool<R, Whole, &R::set_add_special_tokens>},
    {"parse_special_tokens", SetBool<R, Whole, &R::set_parse_special_tokens>},
};

Setter FindSetter(const std::string& name) {
  for (const auto& field : kFields) {
    if (name == field.first) return field.second;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<v1::GenerateRequest> ParsePromptLine(const std::string& line,
                                                    const v1::GenerateRequest& defaults) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  if (object.contains("prompt") == object.contains("prompt_token_ids")) {
    return absl::InvalidArgumentError("needs either 'prompt' or 'prompt_token_ids'");
  }
  v1::GenerateRequest request = defaults;
  for (const auto& [name, value] : object.items()) {
    const Setter set = FindSetter(name);
    if (set == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("unknown field '", name, "'"));
    }
    TANDEM_RETURN_IF_ERROR(set(name, value, request));
  }
  return request;
}

absl::StatusOr<std::vector<v1::GenerateRequest>> ReadPrompts(std::istream& in,
                                                             const v1::GenerateRequest& defaults) {
  std::vector<v1::GenerateRequest> requests;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string name = absl::StrCat("line ", number);
    TANDEM_RETURN_IF_ERROR(CheckUtf8(name, line));
    absl::StatusOr<v1::GenerateRequest> request = ParsePromptLine(line, defaults);
    if (!request.ok()) return Annotate(request.status(), name);
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) return absl::InvalidArgumentError("there is no prompt in it");
  return requests;
}

}  // namespace tandem::client
