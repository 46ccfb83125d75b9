// A generation request as the engine takes it: tokens in, tokens out; and the stream that they go
// to.
#ifndef TANDEM_COORDINATOR_ENGINE_REQUEST_H_
#define TANDEM_COORDINATOR_ENGINE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/step/result.h"

namespace tandem::coordinator {

// Names one request for as long as the engine lives, rising in the order of arrival; request ids
// are free for others afterwards.
using RequestHandle = uint64_t;

// Validated sampling parameters with every default filled in.
struct Sampling {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;        // 0: off
  uint32_t max_tokens = 0;  // > 0
  uint32_t min_tokens = 0;
  uint64_t seed = 0;
  // Ids that end generation (eos, eot, eom unless ignore_eos; stop ids), sorted. The id is part of
  // the output.
  std::vector<TokenId> end_ids;
  std::vector<std::string> stop;  // the listener's business: it cancels by answering kStop
  // Log-probabilities of every generated token, or of every prompt token: the token's own and so
  // many of the likeliest (at most step::kMaxTopLogprobs and the vocabulary).
  std::optional<uint32_t> logprobs{};
  std::optional<uint32_t> prompt_logprobs{};
};

enum class FinishReason { kNone, kStop, kLength, kCancelled };

struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
};

// A token's log-probability in the raw distribution of its place, and the likeliest tokens there.
struct TokenLogprobs {
  step::TokenLogprob token;
  std::vector<step::TokenLogprob> top{};  // likeliest first
  bool operator==(const TokenLogprobs&) const = default;
};

// Implicit: most tokens are no more than an id.
struct GeneratedToken {
  GeneratedToken(TokenId token_id) : id(token_id) {}

  TokenId id;
  std::optional<TokenLogprobs> logprobs{};  // with Sampling::logprobs
};

// Where a request's tokens go. Called on the engine thread only; must not block.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  // Prompt tokens' log-probabilities, with Sampling::prompt_logprobs: from the second token on (the
  // first has nothing before it), in order, each once, all before the first generated token.
  virtual void OnPromptLogprobs(std::vector<TokenLogprobs> logprobs) = 0;
  // One more token. `reason` is not kNone on the last; `usage` is then complete. Returns true to go
  // on, false to end the request here as stopped (a stop string matched): no further call follows,
  // and the request's blocks are free.
  virtual bool OnToken(const GeneratedToken& token, FinishReason reason, const Usage& usage) = 0;
  // The end without a token: an error, or kCancelled at shutdown. No further call follows.
  virtual void OnEnd(const absl::Status& status, FinishReason reason, const Usage& usage) = 0;
};

struct Request {
  std::string id;               // unique among requests in flight
  std::vector<TokenId> prompt;  // not empty, ids in range
  Sampling sampling;
  std::shared_ptr<TokenStream> stream;
  bool want_logits = false;  // tests only: every sampled row's logits go to `logits_sink`
  std::vector<std::vector<float>>* logits_sink = nullptr;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_REQUEST_H_
