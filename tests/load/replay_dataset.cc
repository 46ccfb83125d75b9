#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "tests/load/dataset.h"

namespace tandem::load {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kHashedTokens = 512;  // that one of the `hash_ids` stands for
constexpr uint32_t kMaxTokens = 1 << 24;

absl::Status Wrong(const char* key, const char* needed) {
  return absl::InvalidArgumentError(absl::StrCat("'", key, "' must be ", needed));
}

absl::StatusOr<uint32_t> Length(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_unsigned()) return Wrong(key, "a whole number");
  const auto length = found->get<uint64_t>();
  if (length < 1 || length > kMaxTokens) return Wrong(key, "from 1 to 2^24");
  return static_cast<uint32_t>(length);
}

// Equal hashes give equal tokens, in every run of the same seed.
absl::Status AppendHashed(const Json& hashes, uint32_t length, uint64_t seed, const RandomIds& ids,
                          std::vector<int32_t>& prompt) {
  if (!hashes.is_array()) return Wrong("hash_ids", "a list of whole numbers");
  for (const Json& hash : hashes) {
    if (!hash.is_number_unsigned()) return Wrong("hash_ids", "a list of whole numbers");
    std::seed_seq sequence{seed, hash.get<uint64_t>()};
    std::mt19937_64 random(sequence);
    const auto left = static_cast<uint32_t>(length - prompt.size());
    ids.Append(std::min(kHashedTokens, left), random, prompt);
  }
  return absl::OkStatus();
}

absl::Status TokenPrompt(const Json& list, std::vector<int32_t>& prompt) {
  constexpr char kKey[] = "prompt_token_ids";
  if (!list.is_array() || list.empty()) return Wrong(kKey, "a list of token ids");
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
      return Wrong(kKey, "a list of token ids");
    }
    prompt.push_back(id.get<int32_t>());
  }
  return absl::OkStatus();
}

absl::Status SetPrompt(const Json& line, uint64_t seed, const RandomIds& ids,
                       std::mt19937_64& random, LoadRequest& request) {
  if (const auto text = line.find("prompt"); text != line.end()) {
    if (!text->is_string()) return Wrong("prompt", "text");
    request.text = text->get<std::string>();
    return absl::OkStatus();
  }
  if (const auto list = line.find("prompt_token_ids"); list != line.end()) {
    TANDEM_RETURN_IF_ERROR(TokenPrompt(*list, request.token_ids));
  } else {
    TANDEM_ASSIGN_OR_RETURN(const uint32_t length, Length(line, "input_length"));
    if (const auto hashes = line.find("hash_ids"); hashes != line.end()) {
      TANDEM_RETURN_IF_ERROR(AppendHashed(*hashes, length, seed, ids, request.token_ids));
    }
    ids.Append(static_cast<uint32_t>(length - request.token_ids.size()), random, request.token_ids);
  }
  request.prompt_tokens = static_cast<uint32_t>(request.token_ids.size());
  return absl::OkStatus();
}

absl::StatusOr<LoadRequest> ParseLine(const std::string& text, const DatasetOptions& options,
                                      const RandomIds& ids, std::mt19937_64& random) {
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return absl::InvalidArgumentError("it is not a JSON object");
  LoadRequest request;
  if (options.self_timed) {
    const auto timestamp = line.find("timestamp");
    if (timestamp == line.end() || !timestamp->is_number() ||
        !std::isfinite(timestamp->get<double>())) {
      return Wrong("timestamp", "a number of milliseconds");
    }
    request.at_s = timestamp->get<double>() / 1000;
  }
  TANDEM_ASSIGN_OR_RETURN(request.output_tokens, Length(line, "output_length"));
  TANDEM_RETURN_IF_ERROR(SetPrompt(line, options.seed, ids, random, request));
  return request;
}

}  // namespace

absl::StatusOr<std::vector<LoadRequest>> ReplayDataset(const DatasetOptions& options,
                                                       std::istream& file, const ModelFacts& model,
                                                       std::mt19937_64& random) {
  const RandomIds ids(model);
  std::vector<LoadRequest> requests;
  std::string text;
  for (size_t number = 1; requests.size() < options.num_prompts && std::getline(file, text);
       ++number) {
    if (text.empty()) continue;
    absl::StatusOr<LoadRequest> request = ParseLine(text, options, ids, random);
    if (!request.ok()) return Annotate(request.status(), absl::StrCat("line ", number));
    if (!requests.empty() && request->at_s < requests.back().at_s) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number,
                                                     ": its time is earlier than "
                                                     "that of the line before"));
    }
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) return absl::InvalidArgumentError("it has no line");
  const double first = requests.front().at_s;
  for (LoadRequest& request : requests) request.at_s -= first;
  return requests;
}

}  // namespace tandem::load
