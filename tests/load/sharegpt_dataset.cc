#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "tests/load/dataset.h"

namespace tandem::load {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMinTokens = 4;
constexpr uint32_t kMaxPromptTokens = 1024;
constexpr uint32_t kMaxTokens = 2048;

// The text of a turn; null if the conversation has none.
const std::string* Turn(const Json& conversation, size_t index) {
  if (!conversation.is_object()) return nullptr;
  const auto turns = conversation.find("conversations");
  if (turns == conversation.end() || !turns->is_array() || turns->size() <= index) return nullptr;
  const Json& turn = (*turns)[index];
  if (!turn.is_object()) return nullptr;
  const auto value = turn.find("value");
  if (value == turn.end() || !value->is_string()) return nullptr;
  return value->get_ptr<const std::string*>();
}

}  // namespace

absl::StatusOr<std::vector<LoadRequest>> ShareGptDataset(const DatasetOptions& options,
                                                         std::istream& file,
                                                         const TokenCounter& count_tokens,
                                                         std::mt19937_64& random) {
  const Json all = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!all.is_array()) return absl::InvalidArgumentError("it is not a JSON list of conversations");
  std::vector<const Json*> order;
  for (const Json& conversation : all) order.push_back(&conversation);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<LoadRequest> requests;
  for (const Json* conversation : order) {
    if (requests.size() == options.num_prompts) break;
    const std::string* prompt = Turn(*conversation, 0);
    const std::string* answer = Turn(*conversation, 1);
    if (prompt == nullptr || answer == nullptr) continue;
    LoadRequest request;
    request.text = *prompt;
    TANDEM_ASSIGN_OR_RETURN(request.prompt_tokens, count_tokens(*prompt));
    if (options.sharegpt_output_len.has_value()) {
      request.output_tokens = *options.sharegpt_output_len;
    } else {
      TANDEM_ASSIGN_OR_RETURN(request.output_tokens, count_tokens(*answer));
    }
    if (request.prompt_tokens < kMinTokens || request.prompt_tokens > kMaxPromptTokens) continue;
    if (request.prompt_tokens + request.output_tokens > kMaxTokens) continue;
    if (!options.sharegpt_output_len.has_value() && request.output_tokens < kMinTokens) continue;
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return absl::InvalidArgumentError("it has no usable conversation");
  return requests;
}

}  // namespace tandem::load
