// TextStream: a request's tokens become text, with stop strings cut out, ready for the wire. Knows
// nothing of gRPC.
//
// The engine's thread writes; whoever sends takes what has gathered. What waits is bounded by the
// request's own length, however slow the client, and is one message, or a few where its
// log-probabilities are many. Thread-safe.
#ifndef TANDEM_COORDINATOR_API_TEXT_STREAM_H_
#define TANDEM_COORDINATOR_API_TEXT_STREAM_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/stop_matcher.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Log-probabilities (a token's own and its top ones count alike) that one Take hands out: about 1
// MB on the wire, where gRPC's clients refuse more than 4 MB.
inline constexpr size_t kMaxLogprobsPerTake = 50'000;

// What has gathered since the last Take.
struct TextDelta {
  std::string text;
  std::vector<TokenId> token_ids;
  std::vector<TokenLogprobs> logprobs;         // one per token id, when asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // the prompt's first token has one of rank 0
  FinishReason reason = FinishReason::kNone;   // not kNone: the last
  Usage usage;
  absl::Status status;  // not OK: the request failed; nothing follows
  bool last() const { return reason != FinishReason::kNone || !status.ok(); }
};

class TextStream : public TokenStream {
 public:
  // `model_tokenizer` must outlive the stream. INVALID_ARGUMENT for bad stop strings.
  static absl::StatusOr<std::shared_ptr<TextStream>> Create(
      const tokenizer::Tokenizer& model_tokenizer, const Sampling& sampling);

  // `wake` is called, on the engine's thread, whenever there is something to Take and nobody was
  // told yet. Set before the request is added.
  void OnReady(std::function<void()> wake);
  // Everything that has gathered, or its beginning where log-probabilities are many: then OnReady's
  // function is not called again for the rest. Nothing when that is nothing.
  std::optional<TextDelta> Take();
  // Whether the request's last word has been said (taken or not).
  bool ended() const;

  // --- TokenStream ---
  void OnPromptLogprobs(std::vector<TokenLogprobs> logprobs) override;
  bool OnToken(const GeneratedToken& token, FinishReason reason, const Usage& usage) override;
  void OnEnd(const absl::Status& status, FinishReason reason, const Usage& usage) override;

 private:
  TextStream(const tokenizer::Tokenizer& model_tokenizer, tokenizer::StopMatcher matcher,
             std::vector<TokenId> end_ids);

  // Text of `token`; the matcher decides what may be sent. mutex_ held.
  absl::Status AppendText(TokenId token);
  void Wake();

  mutable std::mutex mutex_;
  tokenizer::IncrementalDetokenizer detokenizer_;  // guarded by mutex_, as all below
  tokenizer::StopMatcher matcher_;
  const TokenId vocab_size_;            // ids from here on have no text
  const std::vector<TokenId> end_ids_;  // sorted; their text is not sent
  TextDelta gathered_;
  bool has_news_ = false;
  bool ended_ = false;
  std::function<void()> wake_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_STREAM_H_
