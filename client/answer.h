// Answer: the complete result of one prompt, accumulated from the stream's messages.
#ifndef TANDEM_CLIENT_ANSWER_H_
#define TANDEM_CLIENT_ANSWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

struct Answer {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<v1::TokenLogprobs> logprobs;         // one per token id, if requested
  std::vector<v1::TokenLogprobs> prompt_logprobs;  // one per prompt token, the first one empty
  v1::FinishReason finish_reason = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage;
  absl::Status status;  // not OK: the request failed; text and ids are partial

  void Append(const v1::GenerateResponse& response);
};

// One JSON object on one line: text, token_ids, finish_reason (stop, length or cancelled) and
// usage; a failed answer has null for the last two, and `error` and `code`. If requested,
// `logprobs` and `prompt_logprobs`: lists of token_id, logprob (null: impossible), rank and top;
// the prompt's first token has null.
std::string ToJson(const Answer& answer);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_ANSWER_H_
