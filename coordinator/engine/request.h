// A generation request to the engine, tokens in and tokens out, and the stream for its tokens.
#ifndef TANDEM_COORDINATOR_ENGINE_REQUEST_H_
#define TANDEM_COORDINATOR_ENGINE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/step/result.h"
#include "common/step/sampling_ranges.h"
#include "coordinator/grammar/token_grammar.h"
#include "coordinator/speculation/draft_script.h"

namespace tandem::coordinator {

// Identifies one request for the engine's lifetime, increasing in order of arrival; request ids may
// be reused.
using RequestHandle = uint64_t;

// Validated sampling parameters with every default filled in.
struct Sampling {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;  // 0: off
  float typical_p = 1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
  step::SamplingPenalties penalties{};
  std::vector<std::pair<TokenId, float>> logit_bias{};   // ascending by id
  std::vector<std::vector<TokenId>> banned_sequences{};  // of ids; none is empty
  std::vector<TokenId> dry_breakers{};                   // sorted; no repetition goes across them
  // What the whole answer has to be, over ids of the head; null: anything.
  std::shared_ptr<grammar::TokenGrammar> grammar{};
  uint32_t max_tokens = 0;  // > 0 where anything is generated
  uint32_t min_tokens = 0;
  uint64_t seed = 0;
  // Ids that end generation (eos, eot, eom unless ignore_eos; stop ids), sorted. The id is part of
  // the output.
  std::vector<TokenId> end_ids;
  std::vector<std::string> stop;  // matched by the stream (Taken::stopped)
  bool speculation = true;        // allowed
  bool include_stop = false;      // the stop string that matched is part of the text
  // Log-probabilities of every generated token, or of every prompt token: the token's own and this
  // many of the most likely (at most kMaxTopLogprobs and the vocabulary).
  std::optional<uint32_t> logprobs{};
  std::optional<uint32_t> prompt_logprobs{};
};

enum class FinishReason { kNone, kStop, kLength, kCancelled };

struct Usage {
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
  uint32_t draft_tokens = 0;  // guessed and computed
  uint32_t accepted_draft_tokens = 0;
};

// A token's log-probability in the raw distribution at its position, and the most likely tokens
// there.
struct TokenLogprobs {
  step::TokenLogprob token;
  std::vector<step::TokenLogprob> top{};  // most likely first
  bool operator==(const TokenLogprobs&) const = default;
};

// How the final states of a prompt's tokens become its embedding: their mean, the first one's or
// the last one's.
enum class Pooling { kMean, kCls, kLast };

// Progress of a request since its last update: its next tokens, its end, or both.
struct StreamUpdate {
  // With Sampling::prompt_logprobs: from the second prompt token on (the first has nothing before
  // it), in order, each once, all before the first generated token; or of Request::targets.
  std::vector<TokenLogprobs> prompt_logprobs{};
  std::vector<TokenId> tokens{};
  std::vector<TokenLogprobs> logprobs{};      // one per token, with Sampling::logprobs
  std::vector<float> embedding{};             // with Request::pooling, on the last one
  FinishReason reason = FinishReason::kNone;  // not kNone on the last one
  absl::Status status{};                      // not OK on the last one of a request that failed
  Usage usage{};                              // up to and with `tokens`
  TimePoint scheduled_at{};  // when the request's first step was scheduled, on the system's clock

  bool last() const { return reason != FinishReason::kNone || !status.ok(); }
};

// What a stream made of an update.
struct Taken {
  // The request ends here, as stopped: a stop string matched. The engine learns of it later: until
  // then it samples more tokens, whose updates must be ignored, and the request holds its blocks.
  bool stopped = false;
  uint32_t num_dropped = 0;  // of the update's tokens, those behind the stop string
};

// Receiver of a request's updates, in order. Called by one thread at a time, a writer of EngineLoop
// or the thread that runs an EngineCore; must not block.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual Taken OnUpdate(StreamUpdate update) = 0;
  // Forwards the updates passed to OnUpdate. If the last was the end, the request's id is free by
  // now.
  virtual void Flush() = 0;
};

// The largest number of a priority; the smallest is its negative.
inline constexpr int32_t kMostPriority = 100;

struct Request {
  std::string id;               // unique among requests in flight
  std::vector<TokenId> prompt;  // not empty, ids in range
  // Not empty: nothing is generated (max_tokens is 0), but these ids' log-probabilities are given:
  // the last one's after the whole prompt, the one before's after the prompt but for its last
  // token, and so on; and with each Sampling::prompt_logprobs top ones. It ends with kLength.
  std::vector<TokenId> targets{};
  Sampling sampling;
  std::string cache_salt{};  // prefixes are shared only with requests of the same salt
  uint32_t adapter = 0;      // step::SequenceEntry::adapter
  // On the engine's clock. Nobody waits for an answer after it: the request ends then with
  // DEADLINE_EXCEEDED.
  TimePoint deadline = TimePoint::max();
  // A cancel so little before the deadline counts as one after it: clients cancel what takes too
  // long, and their clocks are ahead of the server's.
  Duration deadline_slack{};
  TimePoint arrived_at{};  // at the server, on the system's clock; TimePoint{}: not known
  std::string trace_id{};  // of W3C Trace Context; empty: the client sent none
  // A lower number goes first, from -kMostPriority to kMostPriority.
  int32_t priority = 0;
  std::shared_ptr<TokenStream> stream;
  // Nothing is generated (max_tokens is 0), but the prompt's embedding is given: not normalised. It
  // ends with kLength.
  std::optional<Pooling> pooling{};

  bool generates() const { return targets.empty() && !pooling.has_value(); }

  std::optional<DraftScript> draft_script{};  // measurements only: guesses instead of others
  bool want_logits = false;  // tests only: every sampled row's logits go to `logits_sink`
  std::vector<std::vector<float>>* logits_sink = nullptr;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_REQUEST_H_
